"""Trace: the sample, decision, answers, verdicts and model calls that an exported row was made of."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson
from django.core.files.storage import default_storage
from django.db.models import Q, QuerySet

from curation.duels.models import Answer, Duel, Order, Side, Verdict
from curation.exports.files.write import FROZEN
from curation.exports.models import Export
from curation.exports.rows.rivals import answers_of_same_prompts
from curation.projects.access import Access
from curation.review.models import Decision, Revision, Suggestion
from curation.runs.models import Call, Item, ItemState
from curation.samples.blind import refuse_pending
from curation.samples.models import Sample
from curation.trajectories.models import Pair, Trajectory
from curation.web.ids import IdList
from curation.web.problems import Conflict, NotFound

MOST_ROWS = 200
# The stages that write a scenario: the author, and the repairs of scenarios that the gate refused.
REPAIR = "repair-"
_BEGIN = b'{"sample":"'  # of a line of `frozen.jsonl`
WRITES = Q(stage="author") | Q(stage__startswith=REPAIR)


@dataclass(frozen=True, slots=True)
class FrozenLine:
    """A row as `frozen.jsonl` has it: `row` is its own entry, `sample` that of its sample."""

    sample: dict[str, Any]
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One thing that model calls made: `kind` (answer, revision, verdict, trajectory, scenario) and `id` name it.
    `calls` are all of its attempts; none where it was imported or written by a person, or where its calls were deleted.
    """

    kind: str
    id: str
    title: str
    calls: Sequence[Call]


@dataclass(frozen=True, slots=True)
class Trace(FrozenLine):
    """A row with its origin. `now` is its sample, unless that was deleted. `cost` is in US dollars, of the calls whose
    price is known; `unknown` counts the others."""

    export: Export
    now: Sample | None
    decisions: Sequence[Decision]
    revision: Revision | None
    steps: Sequence[TraceStep]

    @property
    def calls(self) -> list[Call]:
        """Each call once, even if it answered several steps."""
        return list({call.pk: call for step in self.steps for call in step.calls}.values())

    @property
    def cost(self) -> Decimal:
        return sum((call.cost for call in self.calls if call.cost is not None), Decimal(0))

    @property
    def unknown(self) -> int:
        return sum(call.cost is None for call in self.calls)


def first_rows(export: Export, *, limit: int = MOST_ROWS) -> list[FrozenLine]:
    found: list[FrozenLine] = []
    for entry in _entries(export):
        found += [FrozenLine(entry, row) for row in entry["rows"]]
        if len(found) >= limit:
            break
    return found[:limit]


def project_calls(access: Access) -> QuerySet[Call]:
    """All calls of the project. Refused to those who review blind while a sample is pending: the tokens of an answer
    tell which one it is."""
    refuse_pending(access, Sample.objects.filter(project=access.project), "the list of all calls")
    return Call.objects.filter(project=access.project, run__deleting_at=None)


def trace(*, export: Export, sha256: str) -> Trace:
    """Return the provenance of the row with that SHA-256, its newline included. Raises `NotFound` if the export has no
    such row."""
    line = _find(export, sha256)
    sample_id = int(line.sample["sample"])
    sample = Sample.objects.filter(pk=sample_id).first()
    deciding = [row["decision"] for row in line.sample.get("deciders", ())] or [line.sample["decision"]]
    decisions = Decision.objects.filter(pk__in=deciding).select_related("reviewer").order_by("id")
    revision = Revision.objects.filter(pk=line.sample["revision"]).select_related("author").first()
    steps = [
        *_duel_steps(line.sample),
        *_rejected_steps(line.row.get("against")),
        *_revision_steps(revision),
        *_trajectory_steps(sample_id, line.row.get("pair")),
    ]
    return Trace(line.sample, line.row, export, sample, list(decisions), revision, steps)


def _entries(export: Export) -> Iterator[dict[str, Any]]:
    with default_storage.open(_stored(export)) as opened:
        for line in opened:
            yield orjson.loads(line)


def _find(export: Export, sha256: str) -> FrozenLine:
    """Search `frozen.jsonl` for the hash before reading its line as JSON: a million lines take about a second."""
    wanted = sha256.lower().encode("utf-8", "replace")
    if len(wanted) == 64:
        with default_storage.open(_stored(export)) as opened:
            for line in opened:
                if wanted in line:
                    entry = orjson.loads(line)
                    for row in entry["rows"]:
                        if row["sha256"].encode() == wanted:
                            return FrozenLine(entry, row)
    raise NotFound(f"Export {export.pk} has no row with the SHA-256 {sha256[:64]}.", code="no_such_row")


def _stored(export: Export) -> str:
    file = export.files.filter(name=FROZEN).first() if export.ready else None
    if file is None:
        raise Conflict(f"Export {export.pk} is not written yet.", code="not_ready")
    return file.stored_as


def _duel_steps(entry: Mapping[str, Any]) -> Iterator[TraceStep]:
    """Yield the answers and verdicts that the export froze: a later run may have scored the duel again."""
    ids = [int(pk) for pk in entry.get("answers", ())]
    found = Answer.objects.select_related("call").in_bulk(ids)
    for answer in (found[pk] for pk in ids if pk in found):
        title = f"{Side(answer.side).label}'s answer by {answer.model}"
        yield TraceStep("answer", str(answer.pk), title, _attempts(answer.call))
    verdicts = Verdict.objects.filter(pk__in=entry.get("verdicts", ())).select_related("call")
    for verdict in verdicts.order_by("judge", "order"):
        title = f"Verdict by {verdict.judge}, {Order(verdict.order).label.lower()}"
        yield TraceStep("verdict", str(verdict.pk), title, _attempts(verdict.call))


def _rejected_steps(sample_id: str | None) -> Iterator[TraceStep]:
    duels = Duel.objects.filter(sample=int(sample_id)) if sample_id else Duel.objects.none()
    for answer in (duel.challenger for duel in duels.select_related("challenger__call")):
        yield TraceStep("answer", str(answer.pk), f"Rejected answer by {answer.model}", _attempts(answer.call))


def _revision_steps(revision: Revision | None) -> Iterator[TraceStep]:
    """Yield the approved revision and those that it revises, the newest first, as far as a model wrote their text."""
    while revision is not None:
        row = Suggestion.objects.filter(revision=revision).select_related("call").first()
        if row is not None:
            edited = "" if row.text == revision.text else ", edited"
            title = f"Revision {revision.number}, written by {row.model}{edited}"
            yield TraceStep("revision", str(revision.pk), title, _attempts(row.call))
        revision = revision.parent


def _trajectory_steps(sample_id: int, pair: str | None) -> Iterator[TraceStep]:
    trajectories = Q(sample_id=sample_id)
    if pair:
        trajectories |= Q(pk__in=Pair.objects.filter(pk=pair).values("rejected_id"))
    found = list(Trajectory.objects.filter(trajectories).select_related("run", "scenario__run").order_by("pk"))
    for trajectory in found:
        items = Item.objects.filter(run=trajectory.run, **trajectory.call_items)
        title = f"{'Rollout' if trajectory.scenario else 'Episode'} of {trajectory.subject} by {trajectory.model}"
        yield TraceStep("trajectory", str(trajectory.pk), title, _calls_of(items))
    for scenario in {row.scenario.pk: row.scenario for row in found if row.scenario}.values():
        written = Item.objects.filter(
            WRITES, run=scenario.run, state=ItemState.DONE, result__scenario=str(scenario.pk)
        ).order_by("pk")
        title = f"Scenario {scenario.name}, author: {scenario.authored_by or 'a person'}"
        yield TraceStep("scenario", str(scenario.pk), title, _calls_of(written))


def _attempts(call: Call | None) -> list[Call]:
    if call is None:
        return []
    return _calls_of(Item.objects.filter(pk=call.item_id)) if call.item_id is not None else [call]


def _calls_of(items: QuerySet[Item]) -> list[Call]:
    calls: list[Call] = []
    for item in items.select_related("run"):
        # By the index of a run's calls: there is none of an item's.
        made = Call.objects.filter(run_id=item.run_id, item=item)
        reused = Call.objects.filter(project_id=item.run.project_id, pk__in=item.reused_calls)
        calls += sorted({*made, *reused}, key=lambda call: call.pk)
    return calls


def exported_rows(call: Call) -> Iterator[tuple[Export, list[FrozenLine]]]:
    """Yield the written exports with rows that the call helped to make, the newest first, each with these rows: as an
    answer, a revision or a verdict that the export froze, a turn of a trajectory, or the author of its scenario."""
    of_call = Q(call=call) | Q(call__item=call.item_id, call__item__isnull=False)
    answers, verdicts = Answer.objects.filter(of_call), Verdict.objects.filter(of_call)
    made = {str(pk) for pk in answers.values_list("pk", flat=True)}
    judged = {str(pk) for pk in verdicts.values_list("pk", flat=True)}
    duels = Duel.objects.filter(Q(king__in=answers) | Q(challenger__in=answers) | Q(verdicts__in=verdicts))
    of_duels = set(duels.filter(sample__isnull=False).values_list("sample_id", flat=True))
    rolled_out = _rolled_out(call)
    revised = _revised(Revision.objects.filter(suggestion__in=Suggestion.objects.filter(of_call)))
    answered = set(duels.filter(challenger__in=answers, sample__isnull=False).values_list("sample_id", flat=True))
    samples = answers_of_same_prompts(sorted(of_duels)) | rolled_out | set(revised.values())
    found = Export.objects.filter(ready=True, frozen__sample_id__in=IdList(list(samples))).distinct().order_by("-pk")
    for export in found:
        rows = [
            line
            for line in rows_of(export, samples)
            if int(line.sample["sample"]) in rolled_out
            or not made.isdisjoint(line.sample.get("answers", ()))
            or not judged.isdisjoint(line.sample.get("verdicts", ()))
            or line.sample["revision"] in revised
            or int(line.row.get("against", 0)) in answered
        ]
        if rows:
            yield export, rows


def _revised(rows: QuerySet[Revision]) -> dict[str, int]:
    """Return the samples of these revisions and of all that revise them, by the revision's id."""
    found: dict[str, int] = {}
    while ids := list(rows.values_list("pk", "sample_id")):
        found |= {str(pk): sample for pk, sample in ids}
        rows = Revision.objects.filter(parent__in=[pk for pk, _ in ids])
    return found


def rows_of(export: Export, samples: Collection[int]) -> Iterator[FrozenLine]:
    wanted = {b"%d" % sample for sample in samples}
    with default_storage.open(_stored(export)) as opened:
        for line in opened:
            if line.startswith(_BEGIN) and line[len(_BEGIN) : line.index(b'"', len(_BEGIN))] in wanted:
                entry = orjson.loads(line)
                for row in entry["rows"]:
                    yield FrozenLine(entry, row)


def _rolled_out(call: Call) -> set[int]:
    """Return the samples of trajectories that a call helped to make, and those of trajectories that won against one."""
    samples: set[int] = set()
    for item in _items_with(call):
        ids = list(_trajectories_of(item).values_list("pk", flat=True))
        samples.update(Trajectory.objects.filter(pk__in=ids, sample__isnull=False).values_list("sample_id", flat=True))
        chosen = Pair.objects.filter(rejected_id__in=ids, chosen__sample__isnull=False)
        samples.update(chosen.values_list("chosen__sample_id", flat=True))
    return samples


def _items_with(call: Call) -> Iterator[Item]:
    """Yield the item that made the call, and those that the record answered with it: the same request comes from items
    with the same key only, but for repairs, whose key is the scenario."""
    if call.item is None:
        return
    yield call.item
    place = {"stage": call.item.stage}
    if not call.item.stage.startswith(REPAIR):
        place["key"] = call.item.key
    for item in Item.objects.filter(run__project=call.project_id, **place).exclude(pk=call.item.pk):
        if call.pk in item.reused_calls:
            yield item


def _trajectories_of(item: Item) -> QuerySet[Trajectory]:
    if item.stage == "rollout":
        scenario, _, index = item.key.partition(":")
        return Trajectory.objects.filter(run_id=item.run_id, scenario_id=scenario, sample_index=index or 0)
    if item.stage == "episodes":
        return Trajectory.objects.filter(run_id=item.run_id, scenario=None, item_key=item.key)
    if (item.stage == "author" or item.stage.startswith(REPAIR)) and item.result.get("scenario"):
        return Trajectory.objects.filter(scenario_id=item.result["scenario"])
    return Trajectory.objects.none()
