"""Two exports of one project: the rows as they came, half of them spoiled, and the curated ones."""

import hashlib
import json
import random
from collections.abc import Sequence
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from curation.exports.models import Export, ExportFile
from curation.projects.models import Project
from tests.factories import make_run

Row = dict[str, Any]


def spoiled(rows: Sequence[Row]) -> list[Row]:
    """Every second row with a planted flaw: a wrong answer, a duplicate with a wrong answer, or noise around it."""
    chance, found = random.Random(0), []
    for number, row in enumerate(rows):
        *prompt, answer = row["messages"]
        if number % 2 == 0:
            found.append(row)
            continue
        wrong = {"role": "assistant", "content": chance.choice(rows)["messages"][-1]["content"]}
        if number % 6 == 1:
            messages = [*prompt, wrong]
        elif number % 6 == 3:
            messages = [*rows[number % 60 // 6 * 2]["messages"][:-1], wrong]
        else:
            noise = f"Sure! Here is the command:\n```bash\n{answer['content']}\n```\nLet me know."
            messages = [*prompt, {"role": "assistant", "content": noise}]
        found.append({**row, "messages": messages})
    return found


def export_of(project: Project, rows: Sequence[Row], *, form: str = "sft-messages") -> Export:
    """An export that is written, with these rows in its file of the split `train`."""
    run = make_run(project, "export", state="succeeded")
    export = Export.objects.create(project=project, run=run, recipe={"formats": [form]}, ready=True)
    lines = [row if form == "sft-messages" else _completion(row) for row in rows]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    name = f"{form}.train.jsonl"
    stored = default_storage.save(f"exports/{export.pk}/{name}", ContentFile(data))
    sha256 = hashlib.sha256(data).hexdigest()
    columns = {"format": form, "split": "train", "rows": len(rows), "bytes": len(data), "sha256": sha256}
    ExportFile.objects.create(export=export, name=name, stored_as=stored, **columns)
    return export


def _completion(row: Row) -> Row:
    return {"prompt": row["messages"][:-1], "completion": row["messages"][-1:]}
