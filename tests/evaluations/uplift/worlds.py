"""Two exports of one project: the rows as they came, half of them spoiled, and the curated ones."""

import hashlib
import json
import random
from collections.abc import Sequence
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage

from curation.exports.models import Export, ExportFile
from curation.exports.recipes.recipe import Recipe, save_recipe
from curation.projects.models import Project
from tests.evaluations.evaluating import make_split
from tests.factories import make_project, make_run, make_user
from tests.review.importing import access_to, bring_samples

Row = dict[str, Any]
RECIPE = {"formats": ["sft-prompt-completion"], "near_duplicates": None}


def spoiled(rows: Sequence[Row]) -> list[Row]:
    """Every second row with a planted flaw, which `flaw` names: a wrong answer, a duplicate with a wrong answer, or
    noise around it."""
    chance, found = random.Random(0), []
    for number, row in enumerate(rows):
        *prompt, answer = row["messages"]
        wrong = {"role": "assistant", "content": chance.choice(rows)["messages"][-1]["content"]}
        noise = f"Sure! Here is the command:\n```bash\n{answer['content']}\n```\nLet me know."
        flaw, messages = {
            1: ("wrong answer", [*prompt, wrong]),
            3: ("duplicate", [*rows[number % 60 // 6 * 2]["messages"][:-1], wrong]),
            5: ("noise", [*prompt, {"role": "assistant", "content": noise}]),
        }.get(number % 6, ("none", row["messages"]))
        found.append({**row, "messages": messages, "flaw": flaw})
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


def project_of(rows: Sequence[Row], held_out: Sequence[Row], **recipe: Any) -> tuple[Project, str]:
    """A project with all these rows as approved samples, in a file for each planted flaw; the recipes `raw`, and
    `curated` without the rows with a flaw; a split of `held_out`, whose id is returned."""
    user = make_user()
    project = make_project(user=user)
    for flaw in sorted({row["flaw"] for row in rows}):
        approved = [{**row, "label": True} for row in rows if row["flaw"] == flaw]
        brought = bring_samples(project, user, approved, f"{flaw}.jsonl", decisions=True)
        assert brought.state == "succeeded", brought.error
    access = access_to(project, user)
    for name, wanted in {"raw": {}, "curated": {"source": "none.jsonl"}}.items():
        given = {**RECIPE, **recipe, "filter": {"status": "approved", **wanted}}
        save_recipe(access=access, name=name, recipe=Recipe.model_validate(given))
    return project, str(make_split(project, held_out).pk)
