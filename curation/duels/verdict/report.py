"""The report of a duel run, for its page, for `report.md` and for REST (`Run.result`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.urls import reverse

from curation.duels.models import Exclusion
from curation.duels.score.models import ScorePanel
from curation.duels.score.panels import counting_panel
from curation.duels.verdict.leak_figures import leak_lines, leak_words
from curation.projects.instructions.texts import history_of, instructions_for
from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.runs.models import Run
from curation.samples.models import Bucket
from curation.web.text.figures import cost, counted, money, number, percent
from judging.statistics.acceptance import GateDecision
from judging.statistics.gate import CLUSTER_NAMES

REPORTED_KINDS = frozenset({"duel", "judge", "rescore"})
SELF_PREFERENCE = "of the same family as a model that it judged: possible self-preference"


class ReportName(NamedTuple):
    """What something is in words, and in full with its fingerprints."""

    name: str
    words: str
    full: str


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run's result (`curation.duels.verdict.stage`). `pairs` is empty before the verdict.

    `about` are opponents, panels and versions of the instructions, `judges` and `costs` as text, `skipped` (stage,
    reason, items). `counts`: samples have this run's
    scores or newer ones of its panel; None without scores.
    """

    run: Run
    about: tuple[ReportName, ...]
    counts: bool | None
    pairs: tuple[Json, ...]
    parsed: int
    done: int
    buckets: tuple[tuple[Bucket, int], ...]
    judges: tuple[Json, ...]
    costs: tuple[Json, ...]
    leaks: tuple[str, ...]
    skipped: tuple[tuple[str, str, int], ...]
    exclusions: tuple[Exclusion, ...]

    @property
    def models(self) -> list[tuple[str, str]]:
        sides = ((name, self.run.params.get(f"{name}_model")) for name in ("king", "challenger"))
        return [(name, str(model)) for name, model in sides if model]

    @property
    def fingerprinted(self) -> list[ReportName]:
        """Return each that has a fingerprint, once."""
        named = [*self.about, *(side for pair in self.pairs for side in pair["contestants"])]
        return [line for line in dict.fromkeys(named) if line.full != line.words]

    @property
    def cost(self) -> str:
        return cost(self.run.cost, self.run.cost_unknown_calls)


def conclusion_of(run: Run) -> str:
    """Return a sentence for each verdict, such as "Accepted: the challenger leads by 38.9 points; the lower bound
    is 31.8.", and how far the answers were checked for leaks."""
    verdicts = _verdicts(run)
    said = [_sentence(figures, _pair(run, figures), several=len(verdicts) > 1) for figures in verdicts]
    checked = leak_words(run.result)
    return " ".join([*said, *([f"{checked[0].upper()}{checked[1:]}."] if said and checked else [])])


def _verdicts(run: Run) -> list[Json]:
    return run.result.get("verdicts") or ([run.result] if run.result.get("accepted") is not None else [])


def _sentence(figures: Json, pair: Json, *, several: bool) -> str:
    word = f"{pair['word']} against the {pair['opponent']}" if several else pair["word"]
    margin = figures.get("margin")
    if margin is None:
        return f"{word}: no duel has a score."
    if round(margin, 1) == 0:
        return f"{word}: the challenger is level with its opponent; the lower bound is {pair['lcb']}."
    leads = "leads by" if margin > 0 else "is behind by"
    return f"{word}: the challenger {leads} {number(abs(margin), 1)} points; the lower bound is {pair['lcb']}."


def report_of(run: Run) -> RunReport:
    figures = run.result
    buckets = figures.get("buckets", {})
    pairs = tuple(_pair(run, verdict) for verdict in _verdicts(run))
    panels = list(ScorePanel.objects.filter(scores__run=run).distinct().order_by("id"))
    counting = counting_panel(run.project)
    opponents = list(dict.fromkeys(pair["opponent"] for pair in pairs)) or [_opponent(run)]
    return RunReport(
        run=run,
        about=_about(run, panels, opponents),
        counts=counting in panels if panels else None,
        pairs=pairs,
        parsed=figures.get("parsed", 0),
        done=figures.get("done", 0),
        buckets=tuple((bucket, buckets[bucket.value]) for bucket in Bucket if bucket.value in buckets),
        judges=tuple(_judge_row(judge) for judge in figures.get("judges", ())),
        costs=tuple(
            {**usage, "cost": cost(usage["cost_known"], usage["cost_unknown_calls"])}
            for usage in figures.get("costs", ())
        ),
        leaks=tuple(leak_lines(figures)),
        skipped=tuple(
            (stage, reason, count)
            for stage, reasons in figures.get("skipped", {}).items()
            for reason, count in reasons.items()
        ),
        exclusions=tuple(Exclusion.objects.filter(project=run.project).order_by("instance_id")),
    )


def report_section(run: Run) -> dict[str, object]:
    """The report on the run's page."""
    slug, of_run = run.project.slug, f"?run={run.pk}"
    return {
        "report": report_of(run),
        "samples_url": f"{reverse('sample-list', args=[slug])}{of_run}",
        "duels_url": f"{reverse('duel-list', args=[slug])}{of_run}",
        "panels_url": reverse("panel-list", args=[slug]),
        "report_url": f"/api/v1/runs/{run.pk}/report.md",
    }


def _pair(run: Run, figures: Json) -> Json:
    """The verdict on one challenger against one opponent, as text.

    Margins and lower confidence bounds (LCB) are in points, lengths are mean tokens. `undecided`: too little is known
    for a verdict, or judges decide it against others.
    """
    lengths, opponent = figures.get("lengths") or {}, figures.get("opponent")
    decision = decision_of(figures)
    sides = [(name, figures.get(name)) for name in ("challenger", "opponent")]
    return {
        "opponent": opponent["side"] if opponent else _opponent(run),
        "contestants": [_contestant(run, name, side) for name, side in sides if side],
        "accepted": decision == GateDecision.ACCEPTED,
        "undecided": decision == GateDecision.UNDECIDED,
        "word": decision.capitalize(),
        "reasons": figures.get("reasons") or [],
        "compared": figures.get("compared") or "",
        "clusters": _clusters(figures),
        # Of a verdict of an earlier version the number of parsed duels is not known.
        "without_flagged": [_without(figures, flag) for flag in ("leak", "injection") if figures.get("parsed") != 0],
        "basis": figures.get("basis") or "",
        **{name: number(figures.get(name), 1) for name in ("margin", "lcb", "lcb_unclustered")},
        **{name: figures.get(name, 0) for name in ("parsed", "done")},
        **{name: number(lengths.get(name), 1) for name in ("winners", "losers")},
    }


def decision_of(verdict: Mapping[str, object]) -> GateDecision:
    """Return the decision of a stored verdict; those of earlier versions have none."""
    if verdict.get("accepted"):
        return GateDecision.ACCEPTED
    undecided = verdict.get("decision") == GateDecision.UNDECIDED or verdict.get("undecided_without")
    return GateDecision.UNDECIDED if undecided else GateDecision.NOT_ACCEPTED


def _opponent(run: Run) -> str:
    return "reference" if run.params.get("mode") == 1 else "king"


def _contestant(run: Run, name: str, side: Json) -> ReportName:
    """Return a model with the version of its instructions and the beginning of its fingerprint."""
    if not side["model"]:
        return ReportName(name, "the reference", "the reference")
    words, full = _version(run.project, side["side"], side["instructions"])
    fingerprint = side["fingerprint"][:16]
    said = f"{side['model']}, instructions"
    return ReportName(name, f"{said} {words}", f"{said} {full}, fingerprint {fingerprint}")


def _version(project: Project, name: str, digest: str) -> tuple[str, str]:
    """Return the version of a stage's instructions by their SHA-256, in words and in full."""
    current = instructions_for(project, name)
    versions = {current.sha256: current.version} | {row.sha256: row.version for row in history_of(project, name)}
    found = versions.get(digest)
    return (digest[:12],) * 2 if found is None else (f"version {found}", f"version {found} ({digest[:12]})")


def _about(run: Run, panels: Sequence[ScorePanel], opponents: Sequence[str]) -> tuple[ReportName, ...]:
    against = f"the {' and the '.join(opponents)}"
    digests = {digest for judge in run.result.get("judges", ()) for digest in judge.get("instructions", ())}
    return (
        ReportName("compared with", against, against),
        *map(_panel, panels),
        *(ReportName("judge instructions", *_version(run.project, "judge", digest)) for digest in sorted(digests)),
    )


def _panel(panel: ScorePanel) -> ReportName:
    """Return a panel, in full such as "3f9a1c0b77de: judge-a (9c11…); both orders; 1 needed; equal weights"."""
    names = ", ".join(judge["name"] for judge in panel.judges)
    judges = ", ".join(f"{judge['name']} ({judge['fingerprint'] or 'unknown'})" for judge in panel.judges)
    orders = "both orders" if len(panel.orders) == 2 else "king first"
    weights = ", ".join(f"{name} {weight:g}" for name, weight in (panel.weights or {}).items()) or "equal weights"
    rule = f"{orders}; {panel.min_judges} needed; {weights}"
    return ReportName("panel", f"{names}; {rule}", f"{panel.digest}: {judges}; {rule}")


def _clusters(figures: Mapping[str, object]) -> str:
    """Name the clusters that the lower bound resamples, such as "repository, 12 of them"."""
    name, _ = CLUSTER_NAMES.get(str(figures.get("clustered_by")), CLUSTER_NAMES["instance_id"])
    return f"{name}, {figures['clusters']} of them" if "clusters" in figures else name


def _without(figures: Mapping[str, object], flag: str) -> str:
    flagged = f"{'an' if flag == 'injection' else 'a'} {flag} flag"
    if not figures.get(f"{flag}s"):
        return f"No parsed duel has {flagged}"
    margin, lcb = (number(figures.get(f"{name}_without_{flag}s"), 1) for name in ("margin", "lcb"))
    duels = int(str(figures[f"{flag}s"]))
    without = f"the duel that has {flagged}" if duels == 1 else f"the {duels:,} duels that have {flagged}"
    return f"Without {without}: margin {margin}, lower bound {lcb} points"


def _judge_row(judge: Json) -> Json:
    """One judge over the run, as text; `findings` are sentences."""
    rates = {name: percent(judge[name], 1) for name in ("win_rate", "flip_rate", "parse_rate")}
    return {
        "name": judge["name"],
        "duels": judge["n"],
        **rates,
        "agreement": percent(judge.get("panel_agreement", judge["agreement"]), 1),
        "tokens": judge["tokens"],
        "cost": money(judge["cost"]),
        "note": SELF_PREFERENCE if judge["same_family"] else "",
        "findings": sentences_of(judge),
    }


def sentences_of(judge: Json) -> list[str]:
    """Return what is unusual about a judge over the run, and why no verdict rests on it."""
    found = [finding["sentence"] for finding in judge.get("findings") or ()]
    if judge.get("controls"):
        right = f"right in {percent(judge['control_accuracy'], 1)} of {counted(judge['controls'], 'control duel')}"
        equal = percent(judge["false_preference"], 1)
        found.append(f"{right}; prefers one of two equal answers in {equal} of the readings")
    if judge.get("control_objection"):
        found.append(f"is not counted as informative: {judge['control_objection']}")
    return found
