"""What is in the files of an export."""

import orjson
import pytest

from curation.runs.models import RunState
from tests.exports.exporting import content, make_approved, rows, run_export
from tests.factories import CHALLENGER, HISTORY, KING, make_project

pytestmark = pytest.mark.django_db(transaction=True)
BOTH = {"formats": ["sft-messages", "dpo"]}


def test_an_approved_duel_becomes_one_row_in_each_format() -> None:
    project = make_project()
    make_approved(project)
    export = run_export(project, BOTH)
    export.run.refresh_from_db()
    assert export.run.state == RunState.SUCCEEDED, export.run.error
    answer = {"role": "assistant", "content": CHALLENGER}
    assert rows(export, "sft-messages.train.jsonl") == [{"messages": [*HISTORY, answer]}]
    other = {"role": "assistant", "content": KING}
    assert rows(export, "dpo.train.jsonl") == [{"prompt": HISTORY, "chosen": [answer], "rejected": [other]}]
    assert rows(export, "excluded.jsonl") == []
    manifest = orjson.loads(content(export, "manifest.json"))
    print(orjson.dumps(manifest, option=2).decode())
    print(content(export, "README.md").decode())
    print(rows(export, "frozen.jsonl"))
