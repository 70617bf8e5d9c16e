"""An export's files can be imported into an empty project, and its export has the same rows and hashes."""

from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.test import Client

from curation.duels.models import AnswerText
from curation.exports.models import Export
from curation.projects.models import Project, Role
from curation.review.bulk.decide import decide_selected
from curation.review.models import Pick
from curation.runs.engine.worker import drive
from curation.runs.models import Run
from curation.samples.models import Sample, SampleStatus
from judging.messages import message_text
from tests.exports.exporting import (
    OF_ANSWERS,
    approve,
    content,
    drive_export,
    make_approved,
    make_kept,
    make_pair,
    run_export,
)
from tests.factories import (
    make_bearer,
    make_duel,
    make_member,
    make_project,
    make_scenario,
    make_trajectory,
    make_turns,
    set_history,
)
from tests.imports.bringing import bad_rows
from tests.review.importing import access_to, bring_samples
from tests.sampled import one_of

pytestmark = pytest.mark.django_db(transaction=True)
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]
RECIPE = {"near_duplicates": None, "reasoning": "keep"}


def call(name: str, command: str) -> dict[str, Any]:
    arguments = orjson.dumps({"timeout": 5, "command": command}).decode()
    return {"id": name, "type": "function", "function": {"name": "bash", "arguments": arguments}}


def make_samples() -> tuple[Project, User]:
    """Two plain turns, one of them with the king's answer kept, one with tools and reasoning, and a session with a
    pair."""
    project = make_project()
    user = make_member(project, role=Role.ADMIN)
    make_approved(
        project, by=user, king="THOUGHT: a\n\n```bash\nls a\n```", challenger="THOUGHT: b\n\n```bash\nls b\n```"
    )
    make_approved(project, by=user, pick=Pick.KING, king="THOUGHT: c\n\n```bash\ncat c\n```")
    duel = make_duel(project)
    assert duel.king is not None and duel.sample is not None
    history = [
        {"role": "system", "content": "You fix bugs."},
        {"role": "user", "content": "Fix the totals."},
        {"role": "assistant", "content": "", "reasoning_content": "First I look.", "tool_calls": [call("c1", "ls")]},
        {"role": "tool", "tool_call_id": "c1", "content": "totals.py"},
    ]
    set_history(duel.prompt, history, TOOLS)
    for answer, calls, thought in (
        (duel.challenger, [call("c2", "cat totals.py")], "It is short."),
        (duel.king, [], ""),
    ):
        text = message_text({"role": "assistant", "content": "I read it.", "tool_calls": calls})
        AnswerText.objects.filter(answer=answer).update(text=text, tool_calls=calls, thinking=thought)
    approve(duel.sample, by=user)
    scenario = make_scenario(project, status="admitted")
    kept = make_kept(project, scenario, by=user)
    make_pair(
        kept,
        make_trajectory(project, scenario, sample_index=1, outcome="checker_failed", keep=False, turns=other_turns()),
    )
    return project, user


def other_turns() -> list[dict[str, Any]]:
    turns = [dict(turn) for turn in make_turns()]
    first = next(turn for turn in turns if turn["kind"] == "action")
    first["text"] = "echo something else"
    return turns


def data_files(export: Export) -> dict[str, bytes]:
    return {file.name: content(export, file.name) for file in export.files.exclude(format="")}


def row_hashes(export: Export) -> list[str]:
    lines = [orjson.loads(line) for line in content(export, "frozen.jsonl").splitlines()]
    return [row["sha256"] for line in lines for row in line["rows"]]


def empty_project() -> tuple[Project, User]:
    project = make_project()
    return project, make_member(project, role=Role.ADMIN)


def approve_all(project: Project, user: User) -> None:
    pending = [str(pk) for pk in Sample.objects.filter(status=SampleStatus.PENDING).values_list("pk", flat=True)]
    if pending:
        decide_selected(access=access_to(project, user), action="approve", ids=pending)


# How rows are stored does not depend on their format: each format once, and each way with two of them.
FORMATS_STORED: list[tuple[str, dict[str, Any]]] = [
    # The others have whole sessions, which are imported as trajectories.
    *((name, {}) for name in OF_ANSWERS),
    *((name, {stored: True}) for name in ("sft-messages", "dpo") for stored in ("gzip", "parquet")),
]


@pytest.mark.parametrize("form", one_of(3, FORMATS_STORED))
def test_an_export_of_imported_rows_has_the_same_rows_and_hashes(form: tuple[str, dict[str, Any]]) -> None:
    name, stored = form
    source, author = make_samples()
    recipe = {**RECIPE, **stored, "formats": [name]}
    first = run_export(source, recipe, user=author)
    project, user = empty_project()

    ((file, data),) = data_files(first).items()
    run = bring_samples(
        project, user, data, file, decisions=True, trained="all" if name == "sft-messages" else "marked"
    )
    assert (run.state, bad_rows(run)) == ("succeeded", {})
    approve_all(project, user)
    second = run_export(project, recipe, user=user)

    assert len(row_hashes(first)) >= 3
    if name == "kto":  # an unwanted command of a session follows its own prompt, not the session's last row
        assert sorted(row_hashes(second)) == sorted(row_hashes(first))
    else:
        assert row_hashes(second) == row_hashes(first)
        assert data_files(second) == {file: data}


def test_the_round_trip_by_rest(client: Client) -> None:
    source, author = make_samples()
    project, user = empty_project()
    first, data = export_by_rest(client, source, author)

    headers = make_bearer(user)
    sent = {"kind": "samples", "options": '{"decisions": true}', "file": ContentFile(data, "dpo.jsonl")}
    run = client.post(f"/api/v1/projects/{project.slug}/imports", sent, headers=headers)
    assert run.status_code == 202
    drive(int(run.json()["id"]))
    result = client.get(f"/api/v1/runs/{run.json()['id']}", headers=headers).json()["result"]
    assert (result["samples"], result["approved"], result["bad_rows"]) == (4, 4, 0)

    second, same = export_by_rest(client, project, user)
    assert (row_hashes(second), same) == (row_hashes(first), data)


def export_by_rest(client: Client, project: Project, user: User) -> tuple[Export, bytes]:
    headers = make_bearer(user)
    recipe = {"recipe": {**RECIPE, "formats": ["dpo"]}}
    path = f"/api/v1/projects/{project.slug}/exports"
    run = client.post(path, recipe, content_type="application/json", headers=headers)
    export = drive_export(Run.objects.get(pk=run.json()["id"]))
    file = client.get(f"/api/v1/exports/{export.pk}/files/dpo.train.jsonl", headers=headers)
    return export, file.getvalue()
