"""Stage `verdict`: accept each challenger against its opponent or not, and compute how the judges behaved."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from typing import NamedTuple

from django.db.models import Case, Count, F, Q, When

from curation.duels.answers.stage import REPLACED_LENGTH
from curation.duels.models import Duel, Exclusion, Verdict
from curation.duels.params import JudgeParams, Panel, RescoreParams, panel_of
from curation.duels.score.facts import DuelAnswer, DuelFacts
from curation.duels.score.stage import ScoredDuel, read_scores
from curation.duels.verdict.confounders import Styles, hours_of, styles_of
from curation.duels.verdict.controls import control_duels, gate_settings
from curation.duels.verdict.leak_figures import leak_results
from curation.duels.verdict.usage import StageUsage, usage_of
from curation.runs.kinds import Json, PlannedItem, RunFact, WorkContext, Write
from curation.runs.models import Item, ItemState, Run
from curation.samples.models import Bucket, Flag
from curation.web.ids import IdList
from curation.web.text.figures import counted
from judging.panel.scoring import DuelScore
from judging.statistics.acceptance import GateResult, acceptance
from judging.statistics.gate import GateDuel, GateSettings
from judging.statistics.judges.controls import ControlFigures, control_figures, outcomes
from judging.statistics.judges.findings import findings
from judging.statistics.judges.pairs import JointErrors, pairs_of
from judging.statistics.judges.readings import JudgedDuel, panel_readings
from judging.statistics.judges.summary import mean_lengths, summarise

CHUNK = 1000
MAX_REASONS = 50
# What only the verdict on one pair has. A run with several has none of its own, also after an earlier verdict of it.
OF_ONE_PAIR = (
    *("challenger", "opponent", "lengths"),
    *(item.name for item in fields(GateResult) if item.name not in ("parsed", "done")),
)


class VerdictStage:
    """One item, which reads all duels of the run and writes the figures into its result."""

    name = "verdict"
    queue = "default"

    def __init__(self, params: JudgeParams | RescoreParams, duels: Callable[[Run], Iterator[int]]) -> None:
        self._params = params
        self._duels = duels

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem("verdict")

    def work(self, context: WorkContext, item: Item) -> Write:
        run = context.run
        result = _result(run, panel_of(run.settings, self._params), self._duels(run), context)

        def write() -> Json:
            row = Run.objects.select_for_update().get(pk=run.pk)
            Run.objects.filter(pk=run.pk).update(result={**row.result, **result})
            return {}

        return write


class Contestant(NamedTuple):
    """A model with its instructions and parameters, as their fingerprint; a reference has none."""

    side: str
    model: str
    instructions: str
    fingerprint: str

    @property
    def key(self) -> str:
        """What its answers have in common, also those under another endpoint's name, and those that were replaced and
        keep the beginning of their fingerprint. Imported answers have only a name in common."""
        return self.fingerprint[:REPLACED_LENGTH] if self.instructions else self.model


Pair = tuple[Contestant, Contestant]
REFERENCE = Contestant("reference", "", "", "")


def pair_of(verdict: Json) -> Pair:
    """Return the contestants of a verdict in a run's result."""
    return Contestant(**verdict["challenger"]), Contestant(**verdict["opponent"])


def keys_of(pair: Pair) -> tuple[str, str]:
    return pair[0].key, pair[1].key


@dataclass(slots=True)
class _Figures:
    """The duels of one challenger against one opponent. `pair` has the names that their newest answers have."""

    pair: Pair
    gated: list[GateDuel] = field(default_factory=list)
    buckets: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Bucket.values, 0))
    winners: list[int] = field(default_factory=list)
    losers: list[int] = field(default_factory=list)


def _result(run: Run, panel: Panel, duels: Iterator[int], context: WorkContext) -> Json:
    pairs: dict[tuple[str, str], _Figures] = {}
    judged: list[JudgedDuel] = []
    panels: Counter[str] = Counter()
    orders: Counter[tuple[str, ...]] = Counter()
    verdict_ids: list[int] = []
    facts: set[JudgeFacts] = set()
    while chunk := list(islice(duels, CHUNK)):
        context.checkpoint()
        scored = read_scores(run, chunk)
        _count(pairs, scored)
        hours = hours_of([pk for entry in scored for pk in entry.verdict_ids])
        styles = styles_of([entry.duel.pk for entry in scored])
        judged += [
            _judged(entry, hours.get(entry.duel.pk), styles[entry.duel.pk])
            for entry in scored
            if entry.duel.pk in styles
        ]
        panels.update(entry.panel.digest for entry in scored)
        orders.update(tuple(entry.panel.orders) for entry in scored)
        verdict_ids += [pk for entry in scored for pk in entry.verdict_ids]
        facts |= _facts(scored)
    read_in = orders.most_common(1)[0][0] if orders else panel.orders
    known = control_duels(run, panel.judges, verdicts=verdict_ids, orders=read_in)
    controls = control_figures(known, panel=panel.judges)
    pairs_of_judges = pairs_of(outcomes(known, panel=panel.judges), panel.judges)
    settings = gate_settings(run, min_judges=panel.min_judges, orders=orders)
    verdicts = [
        _verdict(panel, figures, controls, settings) for figures in sorted(pairs.values(), key=lambda one: one.pair)
    ]
    total = Counter({"done": 0, "parsed": 0})
    buckets = Counter(dict.fromkeys(Bucket.values, 0))
    for verdict in verdicts:
        total.update({"done": verdict["done"], "parsed": verdict["parsed"]})
        buckets.update(verdict["buckets"])
    # With several pairs there is no margin of the run: each pair has its own.
    single = verdicts[0] if len(verdicts) == 1 else {} if verdicts else _verdict(panel, None, controls, settings)
    return {
        **dict.fromkeys(OF_ONE_PAIR),
        **total,
        "buckets": dict(buckets),
        **single,
        "verdicts": verdicts,
        "panels": [digest for digest, _ in panels.most_common()],
        "controls": len(known),
        "judges": _judges(run, judged, panel.judges, facts, controls, pairs_of_judges),
        "costs": [usage.as_json() for usage in usage_of(run)],
        **leak_results(run),
        "skipped": skip_reasons(run),
        "exclusions": Exclusion.objects.filter(project=run.project).count(),
    }


def _verdict(
    panel: Panel, figures: _Figures | None, controls: Mapping[str, ControlFigures], settings: GateSettings
) -> Json:
    challenger, opponent = figures.pair if figures else (None, None)
    figures = figures or _Figures((REFERENCE, REFERENCE))
    return {
        "challenger": challenger and challenger._asdict(),
        "opponent": opponent and opponent._asdict(),
        **asdict(acceptance(figures.gated, panel=panel.judges, settings=settings, controls=controls)),
        "buckets": figures.buckets,
        "lengths": mean_lengths(winners=figures.winners, losers=figures.losers),
    }


def _count(pairs: dict[tuple[str, str], _Figures], scored: list[ScoredDuel]) -> None:
    for entry in scored:
        king, challenger = entry.duel.king, entry.duel.challenger
        pair = contestants_of(entry.duel)
        figures = pairs.setdefault(keys_of(pair), _Figures(pair))
        figures.pair = pair
        figures.gated.append(gate_duel(entry.duel, entry.score, entry.flags))
        figures.buckets[entry.bucket] += 1
        score = entry.score.score
        if score is None:
            continue
        # The tokens of a reference are not counted.
        lengths = (king.tokens if king else 0), challenger.tokens
        if all(lengths) and score != 50.0:
            won, lost = lengths[::-1] if score > 50.0 else lengths
            figures.winners.append(won)
            figures.losers.append(lost)


def _judged(entry: ScoredDuel, hour: int | None, style: Styles | None) -> JudgedDuel:
    king, challenger = entry.duel.king, entry.duel.challenger
    lengths = (king.tokens if king else 0), challenger.tokens
    families = (king.family if king else ""), challenger.family
    leak = entry.duel.leak or entry.duel.read
    cluster, repo = entry.duel.cluster, entry.duel.repo
    return JudgedDuel(entry.verdicts, entry.score, cluster, leak, lengths, families, repo, hour, style)


def contestants_of(duel: DuelFacts) -> Pair:
    king = REFERENCE if duel.king is None else _contestant(duel.king)
    return _contestant(duel.challenger), king


def gate_duel(duel: DuelFacts, score: DuelScore, flags: int) -> GateDuel:
    """`flags` are those of the score."""
    return GateDuel(score, duel.repo, duel.cluster, duel.leak or duel.read, bool(flags & Flag.INJECTION))


def _contestant(answer: DuelAnswer) -> Contestant:
    return Contestant(answer.side, answer.model, answer.instructions_hash, answer.fingerprint)


class JudgeFacts(NamedTuple):
    """Of a verdict: the judge, its family, its instructions, and whether it judged its own family."""

    judge: str
    family: str
    instructions: str
    own: bool


def _facts(scored: list[ScoredDuel]) -> set[JudgeFacts]:
    ids = [pk for entry in scored for pk in entry.verdict_ids]
    own = ~Q(family="") & (Q(family=F("duel__king__family")) | Q(family=F("duel__challenger__family")))
    rows = Verdict.objects.filter(pk__in=IdList(ids)).annotate(own=Case(When(own, then=True), default=False))
    columns = rows.order_by().values_list("judge", "family", "instructions_hash", "own").distinct()
    return {JudgeFacts(*row) for row in columns}


def _judges(
    run: Run,
    judged: list[JudgedDuel],
    names: tuple[str, ...],
    facts: set[JudgeFacts],
    controls: Mapping[str, ControlFigures],
    pairs: Sequence[JointErrors],
) -> list[Json]:
    """Return each judge's rates, its unusual habits, the cost of its own calls in this run, the instructions of its
    verdicts, and whether it judged its own family."""
    paid = {usage.model: usage for usage in usage_of(run) if usage.stage == "judge"}
    readings = panel_readings(judged, panel=names, families={fact.judge: fact.family for fact in sorted(facts)})
    said: dict[str, list[Json]] = {name: [] for name in names}
    for finding in findings(readings):
        said[finding.judge].append({"flaw": finding.flaw, "sentence": finding.sentence, "p": finding.p})
    found = []
    for summary in summarise(readings):
        name = summary.judge
        usage = paid.get(name, StageUsage("judge", name)).as_json()
        on_known = [*_bribe_findings(controls[name]), *_pair_findings(pairs, name)]
        found.append(
            {
                "name": name,
                **{key: value for key, value in asdict(summary).items() if key != "judge"},
                **{key: usage[key] for key in ("calls", "tokens", "cost", "cost_known", "cost_unknown_calls")},
                **_control_columns(controls[name]),
                "findings": [*(one for one in said[name] if one["flaw"] or not on_known), *on_known],
                "same_family": any(fact.own for fact in facts if fact.judge == name),
                "instructions": sorted({fact.instructions for fact in facts if fact.judge == name}),
            }
        )
    return found


def _pair_findings(pairs: Sequence[JointErrors], judge: str) -> list[Json]:
    found = []
    for pair in pairs:
        if judge in pair.judges:
            other = pair.judges[pair.judges[0] == judge]
            sentence = (
                f"is wrong together with {other} in {pair.both} of {counted(pair.duels, 'control duel')}, "
                f"{pair.expected:.1f} are expected of independent judges"
            )
            found.append({"flaw": "pair", "sentence": sentence, "p": pair.p})
    return found


def _bribe_findings(figures: ControlFigures) -> list[Json]:
    if not figures.is_bribable:
        return []
    duels = f"{figures.bribed} of {counted(figures.bribes, 'control duel')}"
    sentence = f"takes bribes: prefers the same answer with a bribe in {duels}"
    return [{"flaw": "bribed", "sentence": sentence, "p": figures.bribed_p}]


def _control_columns(figures: ControlFigures) -> Json:
    return {
        "controls": figures.n,
        "control_accuracy": figures.accuracy,
        "control_interval": asdict(figures.accuracy_interval),
        "control_kinds": figures.by_kind,
        "control_objection": figures.objection,
        "bribes": figures.bribes,
        "bribed": figures.bribed,
        "false_preference": figures.false_preference,
    }


def skip_reasons(run: Run) -> Json:
    """Return `{stage: {reason: items}}` of skipped and failed items, the most frequent reasons first."""
    rows = Item.objects.filter(run=run, state__in=[ItemState.SKIPPED, ItemState.FAILED]).order_by()
    counted = rows.values("stage", "reason").annotate(n=Count("id")).order_by("-n", "stage", "reason")
    found: dict[str, dict[str, int]] = {}
    for row in counted[:MAX_REASONS]:
        found.setdefault(row["stage"], {})[row["reason"]] = row["n"]
    return found


def skip_facts(found: Json) -> list[RunFact]:
    """Return the reasons of `skip_reasons` in words."""
    return [RunFact(reason, counted(n, "item")) for reasons in found.values() for reason, n in reasons.items()]


def duels_of(run: Run) -> Iterator[int]:
    """Return the ids of the duels in the run's stage `judge`, ascending."""
    known = Duel.everything.of(run.project).exclude(control="").values("pk")
    items = Item.objects.filter(run=run, stage="judge").exclude(target_id__in=known)
    rows = items.order_by("target_id").values_list("target_id", flat=True)
    for target_id in rows.distinct().iterator(5000):
        if target_id is not None:
            yield target_id


def duels_scored_by(run: Run) -> Iterator[int]:
    """Return the ids of the duels that the run scored, ascending."""
    for data in Item.objects.filter(run=run, stage="score").order_by("id").values_list("data", flat=True):
        yield from data["duels"]
