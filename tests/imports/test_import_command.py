"""`manage.py import`: the import of a page or a call, from a terminal."""

import io
import json
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from curation.duels.models import Prompt
from curation.imports.models import SavedMapping
from curation.projects.models import AuditEntry
from curation.runs.models import Run
from curation.trajectories.models import Trajectory
from tests.factories import make_project, make_user
from tests.imports.bringing import as_lines, chat
from tests.imports.layouts.golden import GOLDEN

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    file = tmp_path / "turns.jsonl"
    file.write_bytes(as_lines([chat(1, turns=2), {"messages": []}, chat(2)]))
    return file


def test_a_file_is_imported_and_bad_rows_are_listed(turns: Path) -> None:
    make_project("acme")
    make_user("ada")
    out, err = io.StringIO(), io.StringIO()

    call_command("import", str(turns), project="acme", user="ada", stdout=out, stderr=err)

    printed = json.loads(out.getvalue())
    assert (printed["state"], printed["result"]["rows"], printed["result"]["bad_rows"]) == ("succeeded", 3, 1)
    assert Prompt.objects.count() == 3
    assert "row 2" in err.getvalue()
    assert AuditEntry.objects.get(action="run.launch").actor.username == "ada"  # type: ignore[union-attr]


def test_options_of_the_kind_are_taken(turns: Path) -> None:
    make_project("acme")

    call_command("import", str(turns), "--project=acme", "--kind=turns", "--option=count=1", stdout=io.StringIO())

    assert Prompt.objects.count() == 1


def test_a_strict_import_with_a_bad_row_imports_nothing(turns: Path) -> None:
    make_project("acme")

    with pytest.raises(CommandError, match="the import is strict"):
        call_command("import", str(turns), "--project=acme", "--strict", stdout=io.StringIO())

    assert not Prompt.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--project=none"], "There is no project 'none'"),
        (["--project=acme", "--user=nobody"], "There is no user 'nobody'"),
        (["--project=acme", "--kind=pr_records"], "None of the first 3 rows can be imported"),
        (["--project=acme", "--kind=nosuch"], "nosuch"),
        (["--project=acme", "--option=count"], "is not KEY=VALUE"),
        (["--project=acme", "--option=nosuch=1"], "nosuch"),
    ],
)
def test_what_is_wrong_is_said_before_the_launch(turns: Path, arguments: list[str], said: str) -> None:
    make_project("acme")

    with pytest.raises(CommandError, match=said):
        call_command("import", str(turns), *arguments)

    assert not Run.objects.exists()


def test_rows_of_several_kinds_are_refused_with_the_values_of_kind(tmp_path: Path) -> None:
    make_project("acme")
    answered = {"messages": chat(1)["messages"][:-1]}
    file = tmp_path / "answered.jsonl"
    file.write_bytes(as_lines([answered]))

    with pytest.raises(CommandError, match=r"imported as .* \(eval_rows\) or as .* or as “Agent turns” \(turns\)"):
        call_command("import", str(file), project="acme")


def test_a_file_that_is_missing_or_no_rows_is_refused(tmp_path: Path) -> None:
    make_project("acme")
    picture = tmp_path / "chart.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))

    for file, said in ((tmp_path / "none.jsonl", "No such file"), (picture, "PNG")):
        with pytest.raises(CommandError, match=said):
            call_command("import", str(file), project="acme")


def test_a_folder_of_trials_is_imported_with_all_options_of_trajectories() -> None:
    project = make_project("acme")
    SavedMapping.objects.create(project=project, name="ours", columns={"result.trial_name": "group"})

    call_command(
        *("import", str(GOLDEN / "harbor"), "--project=acme", "--kind=trajectories", "--option=trained=marked"),
        *("--option=mapping=ours", '--option=tools=[{"name": "bash", "input_schema": {"type": "object"}}]'),
        stdout=io.StringIO(),
        stderr=io.StringIO(),
    )

    run = Run.objects.get()
    assert run.params["options"]["mapping"]["columns"] == {"result.trial_name": "group"}
    assert Trajectory.objects.count() == run.result["trajectories"] > 0
    assert all(row.group for row in Trajectory.objects.all())
