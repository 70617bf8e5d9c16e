from dataclasses import replace
from typing import Any

import atif
import pytest
from django.test import Client
from django.urls import reverse

from curation.llm.client import pace
from curation.llm.client.completion import CompletionRequest
from curation.llm.client.errors import Unreachable
from curation.llm.client.tokens import Tokens
from curation.projects.models import Role
from curation.runs.control import retry_failed
from curation.runs.engine.waiting import wake_due
from curation.runs.engine.worker import drive
from curation.runs.launch import estimate
from curation.runs.models import Call, Item, Run
from curation.runs.workers import sandbox
from curation.runs.workers.sandbox import NoSandbox
from curation.samples.models import Flag, Sample, SampleKind, SampleStatus
from curation.trajectories.imported.document import atif_of
from curation.trajectories.models import Trajectory
from curation.web.problems import Invalid
from sandbox.agent.episode import AgentEpisode
from sandbox.errors import SandboxFailed, SandboxUnavailable
from tests.driving import end
from tests.factories import make_member, make_scenario
from tests.sandbox.fake import FakeBackend, ran
from tests.trajectories.rolling import (
    SOLVES,
    Operators,
    completion,
    fenced,
    has_greeting,
    make_stage,
    played,
    run_to_end,
    start,
)

pytestmark = pytest.mark.django_db(transaction=True)
PROSE = "THOUGHT: first I look, then I leave."


def rolled(**params: Any) -> Trajectory:
    """The one trajectory of a run over one scenario."""
    project = make_stage()
    scenario = make_scenario(project, bundle=params.pop("bundle", None))
    run = run_to_end(project, **params)
    return Trajectory.objects.select_related("text", "sample", "scenario").get(run=run, scenario=scenario)


def actions(episode: AgentEpisode) -> list[str]:
    return [turn.text for turn in episode.turns if turn.kind == "action"]


def test_a_solved_rollout_is_recorded_as_the_terminal_showed_it(operators: Operators, rooms: FakeBackend) -> None:
    row = rolled()
    assert (row.outcome, row.keep, row.terminal, row.checker_passed) == ("solved", True, "exit", True)
    assert (row.commands, row.tokens, row.backend, row.model) == (3, 4 * 110, "fake", "operator-a")
    assert row.text.turns == [
        {"kind": "orientation", "text": "Work is announced by: todo\nagent@host:~$ ", "prompt": "agent@host:~$ "},
        {"kind": "action", "text": "todo --help"},
        shown("usage: todo\nagent@host:~$ "),
        {"kind": "action", "text": "todo"},
        shown('write "hello world" to greeting.txt in your home\nagent@host:~$ '),
        {"kind": "action", "text": "echo 'hello world' > greeting.txt"},
        shown("agent@host:~$ "),
        {"kind": "action", "text": "exit"},
    ]
    session = rooms.sessions[0]
    assert session.closed
    assert session.terminal == "exit"
    assert (session.setup.labels["run"], session.setup.labels["item"]) == (str(row.run_id), str(Item.objects.get().pk))


def shown(text: str, **besides: object) -> dict[str, object]:
    given = {"kind": "output", "text": text, "prompt": "agent@host:~$ ", "exit_code": 0, "seconds": 0.01}
    return {**given, "truncated": False, **besides}


def test_its_sample_waits_for_review(operators: Operators, rooms: FakeBackend) -> None:
    sample = rolled().sample
    assert sample is not None
    assert (sample.kind, sample.status, sample.score, sample.bucket) == (
        SampleKind.TRAJECTORY,
        SampleStatus.PENDING,
        None,
        "",
    )
    assert (sample.source, sample.model, sample.flags) == ("scenarios", "operator-a", 0)
    assert sample.axes == {
        "documentation_read": "unknown",
        "provider_asked": "unknown",
        "task": "file-edit",
        "provider": "script",
        "announcement": "motd",
        "doc_depth": "help",
        "difficulty": "1",
    }
    assert sample.preview.startswith("todo --help; todo; echo")
    assert "greeting.txt in your home" in sample.text.body


@pytest.mark.parametrize(
    ("script", "bundle", "outcome", "passed"),
    [
        (SOLVES, {}, "solved", True),
        (("panic no work",), {"expected_terminal": "panic"}, "correct_panic", True),
        (("todo", "exit"), {}, "checker_failed", False),
        (("panic too hard",), {}, "wrong_terminal", False),
        ((*SOLVES[:3], "panic"), {}, "wrong_terminal", True),
        (("ls",), {}, "no_terminal", False),
        (("",), {}, "format_error", False),
        (("```sh\nls",), {}, "format_error", False),
    ],
)
def test_outcomes(
    operators: Operators,
    rooms: FakeBackend,
    script: tuple[str, ...],
    bundle: dict[str, object],
    outcome: str,
    passed: bool,
) -> None:
    operators.scripts["operator-a"] = script
    if outcome == "correct_panic":
        rooms.passes = lambda session: session.panic_reason == "no work"
    found = played(operators, rooms, bundle, max_turns=6)
    assert (found.outcome, found.keep) == (outcome, outcome in ("solved", "correct_panic"))
    assert found.checker and found.checker.passed is passed  # it runs without a terminal, too
    assert found.terminal == ("" if outcome in ("no_terminal", "format_error") else script[-1].split()[0])


def test_prose_around_a_command_is_not_in_the_turns(operators: Operators, rooms: FakeBackend) -> None:
    operators.scripts["operator-a"] = [
        completion(f"{PROSE}\n\n```bash\n{command}\n```\nNow I wait.", thinking="Hidden thoughts") for command in SOLVES
    ]
    found = played(operators, rooms)
    assert actions(found) == list(SOLVES)
    recorded = str(found.turns)
    scaffold = str(found.exchange[0]["content"])
    for word in ("THOUGHT", "first I look", "Now I wait", "Hidden thoughts", "```", "operate a terminal"):
        assert word not in recorded
    assert scaffold not in recorded
    # The raw messages have it all; thinking is never sent back.
    assert found.exchange[0]["role"] == "system"
    assert found.exchange[2]["thinking"] == "Hidden thoughts"
    assert PROSE in str(found.exchange[2]["content"])
    assert "Hidden thoughts" not in str([request.messages for request in operators.asked])


def test_format_errors_go_back_to_the_model_and_are_not_in_the_turns(operators: Operators, rooms: FakeBackend) -> None:
    operators.scripts["operator-a"] = ("", "", "todo --help", "", *(fenced(step) for step in SOLVES[1:]))
    found = played(operators, rooms)
    assert (found.outcome, found.format_errors) == ("solved", 3)
    assert actions(found) == list(SOLVES)
    assert "holds no command" in str(operators.asked[1].messages[-1]["content"])
    assert "holds no command" not in str(found.turns)
    # Servers refuse empty messages, so the model is sent a notice instead; the raw messages keep its reply.
    assert operators.asked[1].messages[-2] == {"role": "assistant", "content": "(no reply)"}
    assert found.exchange[2]["content"] == ""


def test_three_format_errors_in_a_row_end_an_episode(operators: Operators, rooms: FakeBackend) -> None:
    operators.scripts["operator-a"] = ("todo", "", "", "", "exit")
    found = played(operators, rooms)
    assert (found.outcome, found.format_errors, actions(found)) == ("format_error", 3, ["todo"])
    assert len(operators.asked) == 4


def test_a_command_that_runs_out_of_time_is_a_turn(operators: Operators, rooms: FakeBackend) -> None:
    operators.scripts["operator-a"] = ("sleep 99", *SOLVES)
    rooms.answers = lambda session, command: ran("half", exit_code=0, timed_out=True) if "sleep" in command else ""
    found = played(operators, rooms)
    assert found.outcome == "solved"
    assert found.turns[2].as_json() == shown("half\nKilled\nagent@host:~$ ", exit_code=137)


def test_the_time_of_all_commands_is_bounded(operators: Operators, rooms: FakeBackend) -> None:
    operators.scripts["operator-a"] = ("sleep 1",)
    row = rolled(episode_timeout=0.025)  # a fake command takes 0.01 s
    assert (row.outcome, row.keep, row.commands) == ("timeout", False, 3)
    assert row.sample is not None
    assert row.sample.priority == 1000.0


def test_a_broken_sandbox_is_replaced_without_asking_the_model_again(operators: Operators, rooms: FakeBackend) -> None:
    def breaks_once(session: object, command: str) -> str | Exception:
        return SandboxFailed("went away") if command == "todo" and rooms.opened == 1 else ""

    rooms.answers = breaks_once
    row = rolled()
    assert row.outcome == "solved"
    assert rooms.opened == 2
    assert all(session.closed for session in rooms.sessions)
    # Turns before the break are answered from the record; after it the conversation is a new one.
    assert len({str(request.messages) for request in operators.asked}) == len(operators.asked) == 4


def test_three_broken_sandboxes_are_an_infrastructure_error(operators: Operators, rooms: FakeBackend) -> None:
    rooms.answers = {"todo --help": "usage: todo\n", "todo": SandboxFailed("went away")}
    project = make_stage()
    make_scenario(project)
    run = run_to_end(project)
    row = Trajectory.objects.select_related("sample", "text").get(run=run)
    assert (row.outcome, row.keep, row.checker_passed) == ("infra_error", False, None)
    assert rooms.opened == 3
    assert all(session.closed for session in rooms.sessions)
    assert row.sample is not None
    assert row.sample.flags == Flag.INFRA
    assert row.text.exchange[-1] == {"role": "sandbox", "content": "went away"}
    assert "infrastructure: went away" in run.error

    # "Retry failed" replaces it.
    rooms.answers = lambda session, command: ""
    end(retry_failed(run=run, user=None))
    again = Trajectory.objects.get(run=run)
    assert (again.pk, again.outcome, again.sample_id) == (row.pk, "solved", row.sample_id)
    assert Sample.objects.get().flags == 0


def test_a_session_that_never_opens_is_an_infrastructure_error(operators: Operators, rooms: FakeBackend) -> None:
    rooms.opening = [SandboxFailed("no room")] * 3
    row = rolled()
    assert (row.outcome, row.commands, rooms.opened) == ("infra_error", 1, 3)
    assert len(operators.asked) == 1  # it was asked beside the first opening, and never again


def test_each_sample_asks_the_model_again(operators: Operators, rooms: FakeBackend) -> None:
    operators.scripts["operator-a"] = lambda request: "exit" if request.sample_index else "panic"
    project = make_stage()
    make_scenario(project)
    run = run_to_end(project, samples=2)
    rows = Trajectory.objects.filter(run=run).order_by("sample_index")
    assert [row.outcome for row in rows] == ["wrong_terminal", "checker_failed"]
    assert run.result["outcomes"] == {"wrong_terminal": 1, "checker_failed": 1}


def test_a_rollout_that_the_record_answers_names_the_calls_of_the_other_run(
    operators: Operators, rooms: FakeBackend
) -> None:
    project = make_stage()
    make_scenario(project)
    first, second = run_to_end(project), run_to_end(project)
    made = list(Call.objects.filter(run=first).order_by("pk").values_list("pk", flat=True))
    assert made and not Call.objects.filter(run=second).exists()
    assert Item.objects.get(run=second, stage="rollout").reused_calls == made
    assert Item.objects.get(run=first, stage="rollout").reused_calls == []


def test_the_admitted_scenarios_that_a_filter_chooses_are_rolled_out(operators: Operators, rooms: FakeBackend) -> None:
    project = make_stage()
    make_scenario(project)
    for status in ("draft", "rejected", "dry_run"):
        make_scenario(project, bundle={"axes": {"task": "cleanup"}}, status=status)
    wanted = make_scenario(project, bundle={"axes": {"task": "cleanup"}})
    run = run_to_end(project, filter={"axes": {"task": "cleanup"}})
    assert list(Trajectory.objects.filter(run=run).values_list("scenario", flat=True)) == [wanted.pk]


def test_a_scenario_edited_after_the_launch_is_skipped(operators: Operators, rooms: FakeBackend) -> None:
    project = make_stage()
    scenario = make_scenario(project)
    run = start(project)
    scenario.status = "draft"
    scenario.save()
    assert end(run).items_skipped == 1
    assert not Trajectory.objects.exists()


def test_loops_are_flagged(operators: Operators, rooms: FakeBackend) -> None:
    operators.scripts["operator-a"] = ("todo", "todo", "todo", *SOLVES[2:])
    row = rolled()
    assert (row.outcome, row.repeated_share, row.longest_repeat) == ("solved", 0.5, 3)
    assert row.sample is not None
    assert row.sample.flags == Flag.LOOP
    assert row.sample.priority == -20.0  # kept though it went in circles: a person should look


def test_figures_of_a_run(operators: Operators, rooms: FakeBackend) -> None:
    rooms.passes = lambda session: has_greeting(session) or session.terminal == "panic"
    operators.scripts["operator-a"] = lambda request: SOLVES[min(len(request.messages) // 2 - 1, 3)]
    project = make_stage()
    for task in ("file-edit", "file-edit", "empty-queue"):
        make_scenario(project, bundle={"axes": {"task": task}})
    result = run_to_end(project).result
    assert (result["trajectories"], result["kept"], result["outcomes"]) == (3, 3, {"solved": 3})
    assert result["balance"] == {"kept": 3, "exit": 1.0, "panic": 0.0, "empty_queue": 0.3333, "blocked": 0.0}
    assert "0 % of 3 kept trajectories end in panic, fewer than" in result["warnings"][0]


class TestLaunch:
    def test_is_refused_without_a_sandbox(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def none(*_: object, **__: object) -> None:
            raise SandboxUnavailable("Install bubblewrap: apt install bubblewrap.")

        monkeypatch.setattr(sandbox, "choose_backend", none)
        project = make_stage()
        make_scenario(project)
        with pytest.raises(NoSandbox, match="apt install bubblewrap") as refused:
            start(project)
        assert refused.value.status == 409
        assert not Run.objects.exists()

    def test_is_refused_without_an_admitted_scenario(self, rooms: FakeBackend) -> None:
        project = make_stage()
        make_scenario(project, status="draft")
        with pytest.raises(Invalid, match="passed the gate"):
            start(project)

    @pytest.mark.parametrize(
        ("params", "place"),
        [
            ({"model": "nobody"}, "params.model"),
            ({"filter": {"colour": "red"}}, "params.filter.colour"),
            ({"samples": 0}, "params.samples"),
            ({"command_timeout": 0}, "params.command_timeout"),
        ],
    )
    def test_is_refused_with_the_path_of_the_wrong_parameter(
        self, rooms: FakeBackend, params: dict[str, Any], place: str
    ) -> None:
        project = make_stage()
        make_scenario(project)
        with pytest.raises(Invalid) as refused:
            start(project, **params)
        assert [error.path for error in refused.value.errors] == [place]

    def test_estimates_an_upper_bound(self, rooms: FakeBackend) -> None:
        project = make_stage()
        make_scenario(project)
        found = estimate(project=project, kind="rollout", params={"model": "operator-a", "samples": 2, "max_turns": 5})
        assert (found.items, found.calls) == (2, 10)
        assert found.notes[0].startswith("At most 5 turns in each of 2 episodes")


def test_an_episode_waits_for_its_endpoint_and_is_no_infrastructure_error(
    operators: Operators, rooms: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint goes down in the middle of an episode."""
    monkeypatch.setattr(pace, "FIRST_PROBE", 0.0)
    is_down = False

    def operator(request: CompletionRequest) -> str | Exception:
        if is_down:
            return Unreachable("127.0.0.1:9 refused the connection")
        said = sum(message["role"] == "assistant" for message in request.messages)
        return SOLVES[said]

    operators.scripts["operator-a"] = operator
    project = make_stage()
    make_scenario(project)
    is_down = True
    run = start(project)
    drive(run.pk)
    assert not Trajectory.objects.exists()
    assert Item.objects.get(run=run).state == "waiting"
    assert all(session.closed for session in rooms.sessions), "it holds no sandbox"
    is_down = False
    wake_due()
    run = end(run)
    assert (run.state, run.items_failed) == ("succeeded", 0)
    assert Trajectory.objects.get(run=run).outcome == "solved"
    opened = rooms.opened
    monkeypatch.setattr(pace, "FIRST_PROBE", 60.0)
    is_down = True
    again = start(project, samples=3)
    Call.objects.all().delete()
    drive(again.pk)
    drive(again.pk)
    assert rooms.opened - opened <= 3, "while the endpoint is down, no sandbox is opened to find that out"


def test_token_ids_are_kept_with_their_steps_and_those_that_are_missing_are_counted(
    operators: Operators, rooms: FakeBackend, client: Client
) -> None:
    given: Tokens = {"prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-0.5]}
    said = [replace(completion(fenced(command)), tokens=given) for command in SOLVES[:2]]
    operators.scripts["operator-a"] = (*said, *map(fenced, SOLVES[2:]))
    row = rolled(token_ids=True)
    assert {"logprobs": True, "return_token_ids": True}.items() <= operators.asked[0].params.items()

    document = atif_of(row)
    read = atif.Trajectory.model_validate(document).steps[1].metrics
    assert read is not None and read.completion_token_ids == [3]
    assert [step.get("metrics") for step in document["steps"]] == [None, given, given, None, None]
    result = Run.objects.get(kind="rollout").result
    assert result["tokens"] == {"replies": 4, "completion_token_ids": 2, "logprobs": 2}
    client.force_login(make_member(row.project, role=Role.ADMIN))
    shown = client.get(reverse("run-page", args=[row.project.slug, row.run_id])).content.decode()
    assert "asked for 4 replies: 2 have ids, 2 log-probabilities. The endpoint did not give the others" in shown

    operators.asked.clear()
    rolled()
    assert "logprobs" not in operators.asked[0].params
