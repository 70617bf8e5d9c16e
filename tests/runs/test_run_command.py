"""`manage.py run`: the run of a page or a call, from a terminal."""

import io
import json
import time
from decimal import Decimal
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from curation.projects.models import AuditEntry
from curation.runs.models import Item, Run
from tests.factories import make_endpoint, make_project, make_prompt, make_run, make_user
from tests.model_server import ModelServer
from tests.runs.asking import make_asked

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


def test_a_run_that_fails_ends_with_status_1_and_its_reason(server: ModelServer) -> None:
    server.behave(error=1, status=400, detail="too long")
    make_prompt(make_asked(server, "king", make_project("acme")))
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("run", "king", project="acme", param=["model=king"], inline=True, stdout=out, stderr=io.StringIO())
    printed = json.loads(out.getvalue())
    assert (ended.value.code, printed["state"]) == (1, "failed")
    assert "too long" in printed["error"]


def test_params_may_come_from_a_file_and_options_win(tmp_path: Path) -> None:
    project = make_project("acme")
    make_endpoint(project, "king", model="scripted/king")
    make_prompt(project)
    given = tmp_path / "params.json"
    given.write_text('{"model": "king", "samples": 3}')
    call_command("run", "king", project="acme", params_json=given, param=["samples=2"], stdout=io.StringIO())
    assert Run.objects.get().params["samples"] == 2


def test_who_waits_no_longer_gets_the_run_as_it_is(server: ModelServer) -> None:
    make_prompt(make_asked(server, "king", make_project("acme")))
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command(
            "run",
            "king",
            project="acme",
            param=["model=king"],
            follow=True,
            wait_timeout=0.2,
            stdout=out,
            stderr=io.StringIO(),
        )
    assert json.loads(out.getvalue())["state"] == Run.objects.get().state == "queued"


def test_an_interrupt_cancels_where_it_was_asked_for(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    make_prompt(make_asked(server, "king", make_project("acme")))

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    for cancels, state in ((False, "queued"), (True, "cancelled")):
        with monkeypatch.context() as patched, pytest.raises(SystemExit):
            patched.setattr(time, "sleep", interrupt)
            call_command(
                "run",
                "king",
                project="acme",
                param=["model=king"],
                follow=True,
                cancel_on_interrupt=cancels,
                stdout=io.StringIO(),
                stderr=io.StringIO(),
            )
        assert Run.objects.order_by("-id")[0].state == state


def test_one_round_of_the_reaper_from_a_terminal() -> None:
    run = make_run(make_project(), kind="asking", stage="ask", items_total=1, state="running")
    Item.objects.create(run=run, stage="ask", key="0", state="claimed", lease_owner="a", lease_until=timezone.now())
    call_command("reap")
    assert Item.objects.get().state == "pending"


def test_a_file_gives_the_keys_of_the_api_and_options_go_first(tmp_path: Path) -> None:
    project = make_project("acme")
    make_endpoint(project, "king", model="scripted/king")
    make_prompt(project)
    file = tmp_path / "run.toml"
    file.write_text('project = "acme"\nkind = "king"\nbudget = "2.50"\n[params]\nmodel = "king"\nsamples = 2\n')

    call_command("run", config=file, param=["samples=3"], stdout=io.StringIO())

    run = Run.objects.get()
    assert (run.kind, run.params["model"], run.params["samples"], run.budget) == ("king", "king", 3, Decimal("2.5"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('project = "acme"\n', "Give the kind of run"),
        ('project = "acme"\nkind = "king"\nparam = 1\n', "param: Extra inputs"),
        ("kind =", "run.toml"),
    ],
)
def test_a_file_that_launches_nothing_says_why(tmp_path: Path, text: str, said: str) -> None:
    make_project("acme")
    file = tmp_path / "run.toml"
    file.write_text(text)

    with pytest.raises(CommandError, match=said):
        call_command("run", config=file)
    assert not Run.objects.exists()
