"""Import rows for evaluations: each import makes a split, with its rows in file order."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from django.urls import reverse

from curation.evaluations.models import Split, SplitRow, SplitRowText
from curation.evaluations.splits.rows import EvalRow, each_command, read_row
from curation.imports.row_kinds import ImportKind, ImportTarget, MappedOptions, RowPreview
from curation.imports.sources.rows import SourceRow
from curation.runs.kinds import ItemFailed, Json
from curation.runs.models import Run

TOGETHER = 500


Entry = tuple[int, list[EvalRow]]  # the line's number in the file, and its rows


class EvalRowKind(ImportKind[MappedOptions, Entry]):
    name = "eval_rows"
    title = "Evaluation rows"
    unit = "rows"
    columns = (
        "messages with the expected answer last, or any layout with an answer; task_id, tier or difficulty, source"
    )
    marks = frozenset({"task_id", "tier", "difficulty"})
    words: ClassVar[Mapping[str, str]] = {"eval_rows": "Rows of the split"}
    options = MappedOptions

    def begin(self, run: Run) -> Json:
        """Create the split; it gets the name of the file once that is read."""
        split = Split.objects.create(project=run.project, run=run, name=str(run.params.get("name") or "split"))
        return {"split": str(split.pk)}

    def links(self, run: Run) -> Sequence[tuple[str, str]]:
        slug, split = run.project.slug, run.result.get("split")
        if split is None:
            return []
        launch = f"{reverse('evaluation-new', args=[slug])}?split={split}"
        return [("Evaluate models on it", launch), ("Show the split", reverse("split-page", args=[slug, split]))]

    def claims(self, row: SourceRow) -> bool:
        """Rows of other layouts may be those of a benchmark, which only a person can tell."""
        return "messages" in row.value or not self.marks.isdisjoint(row.value)

    def parse(self, row: SourceRow, options: MappedOptions) -> Entry:
        return row.offset, each_command(read_row(row.value, options.mapping))

    def weight(self, entry: Entry) -> int:
        texts = (str(message.get("content") or "") for row in entry[1] for message in row.messages)
        return sum(map(len, texts)) + sum(len(str(row.fields)) for row in entry[1])

    def write(self, target: ImportTarget, entries: list[Entry]) -> dict[str, int]:
        split = Split.objects.select_for_update(no_key=True).filter(run=target.run).first()
        if split is None:
            raise ItemFailed("The split of this import was deleted.")
        existing = set(split.rows.filter(number__in=[number for number, _ in entries]).values_list("number", flat=True))
        fresh = [(number, row) for number, found in entries if number not in existing for row in found]
        rows = SplitRow.objects.bulk_create(
            [
                SplitRow(
                    split=split,
                    number=number,
                    turn=row.turn,
                    task_id=row.task_id,
                    repo=row.repo,
                    tier=row.tier,
                    source=row.source,
                    preview=row.preview,
                )
                for number, row in fresh
            ],
            batch_size=TOGETHER,
        )
        SplitRowText.objects.bulk_create(
            [
                SplitRowText(row=made, messages=row.messages, expected=row.expected, fields=row.fields)
                for made, (_, row) in zip(rows, fresh, strict=True)
            ],
            batch_size=TOGETHER,
        )
        # The commands of a session share its account.
        target.account_for(found[0].account for number, found in entries if number not in existing)
        split.rows_count += len(rows)
        split.name = split.name if target.run.params.get("name") else target.source[-180:]
        split.save(update_fields=["rows_count", "name"])
        return {"eval_rows": len(rows)}

    def preview(self, row: SourceRow, options: MappedOptions) -> RowPreview:
        read, *others = each_command(read_row(row.value, options.mapping))
        label = " · ".join(part for part in (read.task_id, read.tier, read.source) if part)
        return RowPreview(
            "sessions (messages)" if others else "chat rows (messages)",
            1 + len(others),
            [(label or f"row {row.offset + 1}", f"{read.preview}\n{read.expected}")],
            read.account,
        )
