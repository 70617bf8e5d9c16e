"""The stage of a contamination check: compare the rows of a split with the training data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing

from curation.evaluations.contamination.training import CheckParams, rows_of_split, training_data
from curation.evaluations.models import ContaminatedRow, ContaminationCheck
from curation.evaluations.splits.rows import EvalRow
from curation.exports.hygiene.embed import Paraphrases, Tasks, paraphrases
from curation.imports.sources.rows import SourceError
from curation.runs.kinds import ItemFailed, Json, PlannedItem, WorkContext, Write
from curation.runs.models import Item, Run
from judging.contamination.find import EvalRow as ComparedRow
from judging.contamination.find import Match, contamination
from judging.contamination.levels import Level, contaminates, in_order

SHOWN_CHARACTERS = 4000
SHOWN_MATCHES = 3
CHECKPOINT_EVERY = 1000
Found = dict[int, list[Match]]


class CheckStage:
    name = "contamination"
    queue = "default"

    def __init__(self, params: CheckParams) -> None:
        self._params = params

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem("check")

    def work(self, context: WorkContext, item: Item) -> Write:
        project = context.run.project
        check = ContaminationCheck.objects.select_related("split").get(run=context.run)
        row_ids = list(check.split.rows.order_by("number", "turn").values_list("pk", flat=True))
        rows = [row.compared() for row in rows_of_split(check.split)]
        if len(rows) != len(row_ids) or not rows:
            raise ItemFailed("The split has no rows, or its rows changed during the check.")
        found: Found = {}
        settings = context.run.settings.evaluation
        close = Paraphrases({})
        if self._params.embedding:
            close = paraphrases(context.run, tasks_of(context.run, self._params))
        with closing(training_data(project, self._params).rows()) as training:
            reader = _Reader(training, context)
            try:
                for match in contamination(rows, reader, volatile=settings.volatile, paraphrases=close.of):
                    found.setdefault(match.row, []).append(match)
            except SourceError as error:
                raise ItemFailed(str(error)) from None
        if reader.count == 0:
            raise ItemFailed("The training data has no row with messages and an answer.")
        embedded = {"embedded": close.embedded, "not_embedded": close.missing} if self._params.embedding else {}
        return lambda: _write(check, row_ids, found, {"training_rows": reader.count, **embedded})


def tasks_of(run: Run, params: CheckParams) -> Tasks:
    """Return the tasks of the split and those of the training data."""
    check = ContaminationCheck.objects.select_related("split").get(run=run)
    with closing(training_data(run.project, params).rows()) as rows:
        return Tasks.of((row.opening for row in rows_of_split(check.split)), (row.opening for row in rows))


class _Reader:
    """The training rows as they are compared."""

    def __init__(self, rows: Iterator[EvalRow], context: WorkContext) -> None:
        self._rows, self._context = rows, context
        self.count = 0

    def __iter__(self) -> Iterator[ComparedRow]:
        for row in self._rows:
            if self.count % CHECKPOINT_EVERY == 0:
                self._context.checkpoint()
            self.count += 1
            yield row.compared()


def _write(check: ContaminationCheck, row_ids: Sequence[int], found: Found, read: Mapping[str, int]) -> Json:
    counts: Json = {"rows": len(row_ids), **read, "contaminated": 0}
    counts |= {level.value: 0 for level in Level}
    ContaminatedRow.objects.filter(check_of=check).delete()
    entries = []
    for number, matches in found.items():
        levels = in_order(level for match in matches for level in match.levels)
        counts["contaminated"] += contaminates(levels)
        for level in levels:
            counts[level] += 1
        names = [level.value for level in levels]
        shown = [_match_json(match) for match in matches[:SHOWN_MATCHES]]
        entries.append(
            ContaminatedRow(check_of=check, row_id=row_ids[number], level=names[0], levels=names, matches=shown)
        )
    ContaminatedRow.objects.bulk_create(entries, batch_size=500)
    ContaminationCheck.objects.filter(pk=check.pk).update(counts=counts, ready=True)
    return counts


def _match_json(match: Match) -> Json:
    prompt, answer = match.training.prompt, match.training.answer
    return {
        "training_row": match.train_row + 1,
        "levels": [level.value for level in match.levels],
        "prompt": prompt[:SHOWN_CHARACTERS],
        "cut": len(prompt) > SHOWN_CHARACTERS,
        "answer": answer[:SHOWN_CHARACTERS],
    }
