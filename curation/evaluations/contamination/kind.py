"""The run kind `contamination`: a split held against training rows, before anybody believes its scores."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

from pydantic import BaseModel, ConfigDict, Field

from curation.evaluations.contamination.training import rows_of_split, stored_rows, training_files
from curation.evaluations.models import ContaminatedRow, ContaminationCheck, Split
from curation.evaluations.splits.rows import ReadRow, prompt_text
from curation.exports.models import Export
from curation.imports.sources.rows import SourceError
from curation.imports.sources.stored import check_upload
from curation.projects.models import Project
from curation.runs.kinds import ItemFailed, Json, Kind, PlannedItem, Stage, WorkContext, Write
from curation.runs.models import Item, Run
from curation.web.ids import find
from curation.web.problems import FieldError, Invalid, NotFound
from judging.commands.contamination import EvalRow, Level, Match, contamination

SHOWN_CHARACTERS = 4000
SHOWN_MATCHES = 3
CHECKPOINT_EVERY = 1000
WAYS = "Give `export`, `upload` or `training_split`, one of them."


class CheckParams(BaseModel):
    """`split` is checked against an export's train files, a stored upload, or another split's rows."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    split: str
    export: str = ""
    upload: str = Field("", max_length=300)
    training_split: str = ""


class CheckStage:
    name = "contamination"
    queue = "default"

    def __init__(self, params: CheckParams) -> None:
        self._params = params

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem("check")

    def work(self, context: WorkContext, item: Item) -> Write:
        project, params = context.run.project, self._params
        split = find(Split.objects.of(project), params.split, "split")
        check = ContaminationCheck.objects.get(run=context.run)
        numbers = list(split.rows.order_by("number").values_list("pk", flat=True))
        rows = [row.compared() for row in rows_of_split(split)]
        if len(rows) != len(numbers) or not rows:
            raise ItemFailed("The split has no rows, or its rows changed meanwhile.")
        volatile = project.settings.evaluation.volatile
        found: dict[int, list[tuple[Match, ReadRow]]] = {}
        with ExitStack() as stack:
            reading = _Reading(_training(project, params, stack), context)
            try:
                for match in contamination(rows, reading, volatile=volatile):
                    found.setdefault(match.row, []).append((match, reading.current))
            except SourceError as error:
                raise ItemFailed(str(error)) from None
        if reading.read == 0:
            raise ItemFailed("The training data holds no row with messages and an answer.")
        return lambda: _write(check, numbers, found, len(rows), reading.read)


class _Reading:
    """The training rows as they are compared; `current` is the one that the last match came from."""

    def __init__(self, rows: Iterator[ReadRow], context: WorkContext) -> None:
        self._rows, self._context = rows, context
        self.read = 0
        self.current = ReadRow([], "", "", "", "")

    def __iter__(self) -> Iterator[EvalRow]:
        for row in self._rows:
            if self.read % CHECKPOINT_EVERY == 0:
                self._context.checkpoint()
            self.read += 1
            self.current = row
            yield row.compared()


def _training(project: Project, params: CheckParams, stack: ExitStack) -> Iterator[ReadRow]:
    if params.training_split:
        yield from rows_of_split(find(Split.objects.of(project), params.training_split, "split"))
        return
    keys = [params.upload]
    if params.export:
        keys = training_files(find(Export.objects.of(project), params.export, "export"))
    for key in keys:
        yield from stack.enter_context(stored_rows(key))


def _write(
    check: ContaminationCheck,
    pks: Sequence[int],
    found: dict[int, list[tuple[Match, ReadRow]]],
    rows: int,
    read: int,
) -> Json:
    counts: Json = {"rows": rows, "training_rows": read, "contaminated": len(found)}
    counts |= {level.value: 0 for level in Level}
    ContaminatedRow.objects.filter(check_of=check).delete()
    entries = []
    for number, matches in found.items():
        levels = [level.value for level in Level if any(level in match.levels for match, _ in matches)]
        for level in levels:
            counts[level] += 1
        shown = [_shown(match, row) for match, row in matches[:SHOWN_MATCHES]]
        entries.append(
            ContaminatedRow(check_of=check, row_id=pks[number], level=levels[0], levels=levels, matches=shown)
        )
    ContaminatedRow.objects.bulk_create(entries, batch_size=500)
    ContaminationCheck.objects.filter(pk=check.pk).update(counts=counts, ready=True)
    return counts


def _shown(match: Match, row: ReadRow) -> Json:
    prompt = prompt_text(row.messages)
    return {
        "training_row": match.train_row + 1,
        "levels": [level.value for level in match.levels],
        "prompt": prompt[:SHOWN_CHARACTERS],
        "cut": len(prompt) > SHOWN_CHARACTERS,
        "answer": row.expected[:SHOWN_CHARACTERS],
    }


class ContaminationRun(Kind[CheckParams]):
    name = "contamination"
    title = "Contamination of a split"
    params = CheckParams
    launch_page = "split-list"

    def stages(self, params: CheckParams) -> Sequence[Stage]:
        return [CheckStage(params)]

    def check(self, project: Project, params: CheckParams) -> None:
        if sum(map(bool, (params.export, params.upload, params.training_split))) != 1:
            raise Invalid(WAYS, errors=[FieldError("params.export", WAYS)])
        _known(project, params)
        if params.upload:
            check_upload(project, params.upload)
        if params.training_split == params.split:
            reason = "A split always contains its own rows."
            raise Invalid(reason, errors=[FieldError("params.training_split", reason)])

    def begin(self, run: Run, params: CheckParams) -> Json:
        check = ContaminationCheck.objects.create(
            split=find(Split.objects.of(run.project), params.split, "split"),
            run=run,
            against=_against(run.project, params)[:200],
            created_by=run.created_by,
        )
        return {"check": str(check.pk), "split": params.split}

    def finish(self, run: Run, params: CheckParams) -> Json:
        return dict(ContaminationCheck.objects.get(run=run).counts)


def _known(project: Project, params: CheckParams) -> None:
    try:
        split = find(Split.objects.of(project), params.split, "split")
        if params.training_split:
            find(Split.objects.of(project), params.training_split, "split")
        if params.export and not training_files(find(Export.objects.of(project), params.export, "export")):
            reason = f"Export {params.export} has no file of the split `train`."
            raise Invalid(reason, errors=[FieldError("params.export", reason)])
    except NotFound as missing:
        raise Invalid(missing.detail, errors=[FieldError("params", missing.detail)]) from None
    if split.rows_count == 0:
        raise Invalid("The split has no rows yet.", errors=[FieldError("params.split", "has no rows")])


def _against(project: Project, params: CheckParams) -> str:
    if params.export:
        return f"export {params.export}"
    if params.training_split:
        return f"split {find(Split.objects.of(project), params.training_split, 'split').name}"
    return params.upload.rsplit("/", 1)[-1]
