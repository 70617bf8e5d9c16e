"""Stage `settle`: readings become scores, and better answers become revisions in the queue."""

from collections.abc import Iterable, Sequence
from itertools import islice

from curation.duels.models import Duel
from curation.duels.score.models import Score, ScorePanel
from curation.duels.score.panels import make_panel
from curation.duels.score.readings import MARK
from curation.projects.models import AuditEntry
from curation.review.decisions.outcome import latest_revision
from curation.review.decisions.revise import add_revision
from curation.review.decisions.state import change
from curation.review.models import Pick, Revision, Suggestion, TextScore
from curation.review.queue.lease import lock_sample
from curation.review.refine.compare import Texts, judge_plan
from curation.review.refine.params import PanelParams
from curation.review.refine.suggest import UNDECIDED
from curation.runs.kinds import Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, ItemState, Run
from curation.samples.models import SampleStatus
from judging.panel.rubric import complete
from judging.panel.scoring import OrderedVerdict

CHUNK = 50
EQUAL = 50.0
JUDGED = (Suggestion.Outcome.WAITING, Suggestion.Outcome.BETTER, Suggestion.Outcome.KEPT, Suggestion.Outcome.UNJUDGED)
KING, PARENT = TextScore.Against.KING, TextScore.Against.PARENT


class SettleStage:
    """One item for some texts at a time. Repeating it changes nothing that a person has seen."""

    name = "settle"
    queue = "default"

    def __init__(self, params: PanelParams, texts: Texts) -> None:
        self._params, self._texts = params, texts

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        rows = iter(self._texts(run).order_by("pk").values_list("pk", flat=True))
        while ids := list(islice(rows, CHUNK)):
            yield PlannedItem(f"{ids[0]}-{ids[-1]}", None, {"texts": ids})

    def work(self, context: WorkContext, item: Item) -> Write:
        run = context.run
        plan = judge_plan(run, self._params)
        panel = make_panel(
            fingerprints={judge: mark[:MARK] for judge, mark in plan.fingerprints().items()},
            orders=plan.panel.orders,
            min_judges=plan.panel.min_judges,
            weights=complete(plan.panel.weights, plan.dimensions),
        )

        def write() -> Json:
            for row in self._texts(run).filter(pk__in=item.data["texts"]).order_by("pk"):
                scores = _compare(run, row, panel)
                if isinstance(row, Suggestion) and row.outcome != Suggestion.Outcome.BETTER:
                    _settle(run, row, scores, panel)
            return {"texts": len(item.data["texts"])}

        return write


def _compare(run: Run, row: Suggestion | Revision, panel: ScorePanel) -> dict[str, float | None]:
    """Save the run's scores of this text, and return them by the compared text."""
    readings: dict[str, list[Json]] = {against: [] for against in TextScore.Against.values}
    done = Item.objects.filter(run=run, stage="judge", target_id=row.pk, state=ItemState.DONE)
    for data, result in done.order_by("pk").values_list("data", "result"):
        readings[data["against"]].append({"judge": data["judge"], "order": data["order"], **result})
    found: dict[str, float | None] = {}
    for against, said in readings.items():
        score = panel.score([OrderedVerdict(one["judge"], one["order"], one["dimensions"] or None) for one in said])
        of = {"suggestion": row} if isinstance(row, Suggestion) else {"revision": row}
        TextScore.objects.update_or_create(
            run=run,
            against=against,
            **of,
            defaults={
                "panel": _stored(panel),
                "score": score.score,
                "metrics": dict(score.metrics),
                "flipped": score.flipped,
                "readings": said,
            },
        )
        found[against] = score.score
    return found


def _stored(panel: ScorePanel) -> Json:
    judges, weights = panel.fingerprints.items(), (panel.weights or {}).items()
    return {
        "digest": panel.digest,
        "judges": [*map(list, judges)],
        "orders": panel.orders,
        "min_judges": panel.min_judges,
        "weights": [*map(list, weights)],
    }


def _settle(run: Run, row: Suggestion, scores: dict[str, float | None], panel: ScorePanel) -> None:
    """Queue a suggestion that got better against both, or keep it with the reason."""
    row.outcome, row.reason = _verdict(row, scores, panel)
    if row.outcome == Suggestion.Outcome.BETTER:
        row.reason = _queue(run, row)
        row.outcome = Suggestion.Outcome.KEPT if row.reason else Suggestion.Outcome.BETTER
    row.save(update_fields=["outcome", "reason", "revision"])


def _verdict(row: Suggestion, scores: dict[str, float | None], panel: ScorePanel) -> tuple[str, str]:
    king, parent = scores[KING], scores[PARENT]
    if king is None or parent is None:
        where = " and ".join(against for against, score in scores.items() if score is None)
        return Suggestion.Outcome.UNJUDGED, f"Too few judges gave a verdict against the {where}."
    before = _parent_against_king(row, panel)
    reasons = []
    if king <= EQUAL:
        reasons.append(f"it does not beat the other answer ({king:.1f}, 50 is equal)")
    elif before is not None and king <= before:
        reasons.append(f"against the other answer it has {king:.1f}, the text before {before:.1f} by the same panel")
    if parent <= EQUAL:
        reasons.append(f"it does not beat the text before ({parent:.1f}, 50 is equal)")
    if reasons:
        return Suggestion.Outcome.KEPT, "; ".join(reasons)[:1].upper() + "; ".join(reasons)[1:] + "."
    return Suggestion.Outcome.BETTER, ""


def _parent_against_king(row: Suggestion, panel: ScorePanel) -> float | None:
    """Return the parent's newest score against the king by the same panel; None without one."""
    if row.parent_id is not None:
        rows = TextScore.objects.filter(revision=row.parent_id, against=KING, panel__digest=panel.digest)
        return rows.order_by("-created_at", "-pk").values_list("score", flat=True).first()
    duel = Duel.objects.filter(sample=row.sample_id)
    scores = Score.objects.filter(duel__in=duel, panel__digest=panel.digest)
    return scores.order_by("-scored_at", "-pk").values_list("score", flat=True).first()


def _queue(run: Run, row: Suggestion) -> str:
    """Make the suggestion the sample's newest revision, and the sample pending. Return why not, or ""."""
    sample = lock_sample(run.project, row.sample_id)
    if sample.status not in UNDECIDED:
        return "The revision scored higher, but the sample was decided meanwhile."
    parent = latest_revision(sample, Pick.CHALLENGER)
    if (parent.pk if parent else None) != row.parent_id:
        return "The revision scored higher, but the answer was revised meanwhile."
    note = f"Written by {row.model} with the judges' reasons, in run {run.pk}."
    revision = add_revision(row.model, sample=sample, parent=parent, of=Pick.CHALLENGER, text=row.text, note=note)
    if sample.status != SampleStatus.PENDING:
        change(sample, status=SampleStatus.PENDING.value)
    row.revision = revision
    TextScore.objects.filter(suggestion=row).update(revision=revision)
    data = {"revision": revision.pk, "number": revision.number, "of": revision.of, "model": row.model, "run": run.pk}
    AuditEntry.record(
        actor=run.created_by, action="sample.revise", subject=str(sample.pk), project=run.project, data=data
    )
    return ""


def outcomes(run: Run) -> dict[str, int]:
    found = dict.fromkeys(map(str, JUDGED), 0)
    rows: Sequence[str] = list(Suggestion.objects.filter(run=run).values_list("outcome", flat=True))
    for outcome in rows:
        found[outcome] += 1
    return found
