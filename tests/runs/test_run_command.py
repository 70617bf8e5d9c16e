"""`manage.py run`: the run of a page or a call, from a terminal."""

import io
import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from curation.projects.models import AuditEntry
from curation.runs.models import Run
from tests.factories import make_endpoint, make_project, make_prompt, make_user

pytestmark = pytest.mark.django_db(transaction=True)


def test_inline_it_works_without_a_worker_and_prints_the_run() -> None:
    project = make_project("acme")
    make_endpoint(project, "king", model="scripted/king")
    make_prompt(project)
    make_user("ada")
    out, err = io.StringIO(), io.StringIO()
    call_command(
        "run",
        "king",
        project="acme",
        user="ada",
        param=["model=king", "samples=2"],
        inline=True,
        stdout=out,
        stderr=err,
    )
    printed = json.loads(out.getvalue())
    assert (printed["state"], printed["items"]["done"]) == ("succeeded", 2)
    assert "Launched: 2 items" in err.getvalue()
    assert AuditEntry.objects.get(action="run.launch").actor.username == "ada"  # type: ignore[union-attr]


def test_without_following_it_prints_the_id() -> None:
    project = make_project("acme")
    make_endpoint(project, "king", model="scripted/king")
    make_prompt(project)
    out = io.StringIO()
    call_command("run", "king", project="acme", param=["model=king"], stdout=out)
    run = Run.objects.get()
    assert out.getvalue().strip() == str(run.pk)
    assert run.state == "queued"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"project": "none", "param": []}, "There is no project 'none'"),
        ({"project": "acme", "param": ["model=ghost"]}, "There is no model ghost"),
        ({"project": "acme", "param": ["model"]}, "is not KEY=VALUE"),
        ({"project": "acme", "param": ["model=king", "colour=red"]}, "params.colour"),
        ({"project": "acme", "param": ["model=king"], "budget": "cheap"}, "is not an amount"),
        ({"project": "acme", "param": ["model=king"], "user": "nobody"}, "There is no user"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_launched(arguments: dict[str, object], said: str) -> None:
    make_endpoint(make_project("acme"), "king", model="scripted/king")
    with pytest.raises(CommandError, match=said):
        call_command("run", "king", **arguments)
    assert not Run.objects.exists()


def test_a_test_call_is_not_launched_from_here() -> None:
    make_project("acme")
    with pytest.raises(CommandError):
        call_command("run", "test", project="acme", param=["model=king"])
