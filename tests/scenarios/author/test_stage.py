"""A teacher writes bundles: the combinations, the fate of a wrong bundle, the scenarios in the end."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client

from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.projects.models import Project, Role
from curation.runs.control import retry_failed
from curation.runs.engine import llm_stage
from curation.runs.launch import estimate, launch
from curation.runs.models import Call, Item, Run
from curation.runs.workers import sandbox
from curation.runs.workers.sandbox import NoSandbox
from curation.scenarios.author.combinations import Pins, pick_combinations
from curation.scenarios.author.reply import OWN_KEYS
from curation.scenarios.models import GateReport, Scenario
from curation.scenarios.taxonomy.axes import shipped_taxonomy, with_additions
from curation.web.problems import Invalid
from sandbox.errors import SandboxUnavailable
from sandbox.protocol import SandboxBackend
from tests.driving import end
from tests.factories import BUNDLE, make_endpoint, make_member, make_project, make_scenario
from tests.sampled import one_of
from tests.sandbox.fake import FakeBackend

Picked = list[dict[str, str]]
WRITTEN: dict[str, Any] = {key: value for key, value in {**BUNDLE, "name": "tidy"}.items() if key not in OWN_KEYS}
PINS = {"announcement": "motd", "task": "file-edit", "provider": "script", "doc_depth": "help"}


def written(**changes: Any) -> str:
    return json.dumps({key: value for key, value in {**WRITTEN, **changes}.items() if value is not ...})


@dataclass
class Teacher:
    """Says `replies` one after the other, the last one for ever; `asked` keeps the prompts."""

    replies: list[str | Completion] = field(default_factory=lambda: [written()])
    asked: list[CompletionRequest] = field(default_factory=list)

    async def complete(self, target: EndpointTarget, request: CompletionRequest) -> Completion:
        said = self.replies[min(len(self.asked), len(self.replies) - 1)]
        self.asked.append(request)
        return said if isinstance(said, Completion) else completion(said)


def completion(text: str, finish: str = "stop") -> Completion:
    return Completion(text, "", finish, 100, 10, 0, None, 5)


@pytest.fixture
def teacher(monkeypatch: pytest.MonkeyPatch) -> Teacher:
    found = Teacher()
    monkeypatch.setattr(llm_stage, "client_for", lambda target: found)
    return found


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeBackend]:
    """A sandbox in which the greeting is there when a command has written it."""
    found = FakeBackend(
        lambda session, command: "usage: todo\n" if command.endswith(" --help") else "",
        passes=lambda s: any("hello world" in c for c in s.commands),
    )

    def choose(*_: object, **__: object) -> SandboxBackend:
        return found

    monkeypatch.setattr(sandbox, "choose_backend", choose)
    yield found
    assert all(session.closed for session in found.sessions)


@pytest.fixture
def project(storage: object, db: None) -> Project:
    project = make_project("shell")
    make_endpoint(project, "teacher", model="fake/teacher")
    return project


def authored(project: Project, **params: Any) -> Run:
    return end(launch(project=project, kind="author", params={"model": "teacher", **params}, user=None))


@pytest.mark.django_db(transaction=True)
class TestRun:
    @pytest.mark.parametrize(
        "said",
        one_of(
            3,
            [
                *('Not {{"this": 1}}, but {}', "Here it is: {}", "Here it is: {}. Tell me.", '{{"bundle": {}}}'),
                *("[{}]", "```\n{}\n```", 'With a line\nbreak: {{"note": "a\nb", "bundle": {}}}'),
            ],
        ),
    )
    def test_a_bundle_amid_prose_is_read(
        self, project: Project, teacher: Teacher, rooms: FakeBackend, said: str
    ) -> None:
        teacher.replies = [said.format(written())]
        run = authored(project, n=1, axes=PINS)
        assert (run.result["admitted"], len(teacher.asked)) == (1, 1)

    @pytest.mark.parametrize("said", ["{}\n\nI correct it:\n{}", "```json\n{}\n```\nCorrected:\n```json\n{}\n```"])
    def test_of_a_draft_and_a_correction_the_last_bundle_is_read(
        self, project: Project, teacher: Teacher, rooms: FakeBackend, said: str
    ) -> None:
        draft = json.dumps({**json.loads(written()), "title": "A draft."})
        teacher.replies = [said.format(draft, written())]
        authored(project, n=1, axes=PINS)
        assert Scenario.objects.with_bundle().get().title == json.loads(written())["title"]

    def test_a_bundle_is_written_gated_and_says_who_wrote_it(
        self, project: Project, teacher: Teacher, rooms: FakeBackend
    ) -> None:
        run = authored(project, n=1, axes=PINS)

        row = Scenario.objects.with_bundle().get()
        assert (row.status, row.authored_by, row.run_id) == ("admitted", "teacher", run.pk)
        assert {axis: str(value) for axis, value in row.axes.items()} == Item.objects.get(stage="author").data["axes"]
        assert row.axes["task"] == "file-edit" and set(row.axes) == set(shipped_taxonomy().axes)
        assert row.seed == Item.objects.get(stage="author").data["seed"]
        assert run.result["scenarios"] == run.result["admitted"] == 1

    def test_the_teacher_sees_what_exists_in_its_cell_and_is_told_to_differ(
        self, project: Project, teacher: Teacher, rooms: FakeBackend
    ) -> None:
        make_scenario(project, "in the cell", bundle={"reference_solution": "todo\ntouch a\nexit"})
        make_scenario(project, "in another cell", bundle={"axes": {**BUNDLE["axes"], "provider": "fifo"}})
        authored(project, n=1, axes=PINS)
        order = str(teacher.asked[0].messages[1]["content"])
        assert "in the cell" in order and "touch a" in order and "Write another one" in order
        assert "in another cell" not in order
        assert order.rindex("task: file-edit") > order.rindex("touch a")

    def test_the_teacher_gets_the_combination_and_the_schema(
        self, project: Project, teacher: Teacher, rooms: FakeBackend
    ) -> None:
        authored(project, n=1, axes={**PINS, "difficulty": 4})

        request = teacher.asked[0]
        order = str(request.messages[1]["content"])
        assert "task: file-edit (One file is to be written" in order and "difficulty: 4 (" in order
        assert request.schema is not None
        schema = json.dumps(request.schema)
        assert '"checker"' in schema and '"authored_by"' not in schema
        assert Call.objects.get().instructions_hash

    def test_without_structured_output_no_schema_is_sent(
        self, project: Project, teacher: Teacher, rooms: FakeBackend
    ) -> None:
        authored(project, n=1, axes=PINS, structured=False)
        assert teacher.asked[0].schema is None

    @pytest.mark.parametrize(
        ("reply", "told"),
        [
            (written(checker=...), "checker: missing"),
            (written(fixtures=[{"path": "/etc/passwd", "content": "x"}]), "fixtures.0.path: must be below"),
            (written(announcement={"kind": "env", "text": "x"}), "announcement.kind: motd was asked for"),
            ("I would rather not.", "not JSON"),
            ("[]", "not a JSON object"),
            (completion(written()[:50], finish="length"), "cut off by the token limit"),
        ],
    )
    def test_a_wrong_bundle_is_sent_back_with_its_reasons(
        self, project: Project, teacher: Teacher, rooms: FakeBackend, reply: str | Completion, told: str
    ) -> None:
        teacher.replies = [reply, f"```json\n{written()}\n```"]

        run = authored(project, n=1, axes=PINS)

        assert run.result["admitted"] == 1
        assert [message["role"] for message in teacher.asked[1].messages] == ["system", "user", "assistant", "user"]
        assert told in str(teacher.asked[1].messages[-1]["content"])
        assert Item.objects.get(stage="author").result["attempts"] == 2

    def test_what_stays_wrong_fails_its_item_and_not_the_run(
        self, project: Project, teacher: Teacher, rooms: FakeBackend
    ) -> None:
        teacher.replies = ["no", written()]
        run = authored(project, n=2, axes=PINS, attempts=1)

        failed = Item.objects.get(stage="author", state="failed")
        assert run.state == "succeeded" and run.items_failed == 1
        assert failed.reason.startswith("no valid bundle: the reply is not JSON")
        assert Scenario.objects.count() == 1

    def test_what_failed_is_tried_again_and_what_is_proven_stays_so(
        self, project: Project, teacher: Teacher, rooms: FakeBackend
    ) -> None:
        teacher.replies = ["no", written()]
        run = authored(project, n=2, axes=PINS, attempts=1)
        opened = len(rooms.sessions)

        retry_failed(run=run, user=None)
        end(run)

        assert (run.state, run.result["scenarios"], run.result["admitted"]) == ("succeeded", 2, 2)
        assert len(rooms.sessions) == 2 * opened
        assert GateReport.objects.count() == 2

    def test_a_name_that_is_taken_gets_a_number(self, project: Project, teacher: Teacher, rooms: FakeBackend) -> None:
        make_scenario(project, "tidy")
        authored(project, n=2, axes=PINS)
        assert set(Scenario.objects.values_list("name", flat=True)) == {"tidy", "tidy-2", "tidy-3"}

    def test_a_bundle_that_proves_nothing_is_kept_as_rejected(
        self, project: Project, teacher: Teacher, rooms: FakeBackend
    ) -> None:
        rooms.passes = lambda session: True
        run = authored(project, n=1, axes=PINS)
        assert Scenario.objects.get().status == "rejected"
        assert (run.state, run.result["rejected"]) == ("succeeded", 1)

    def test_a_dry_run_needs_no_sandbox_and_marks_what_it_made(
        self, project: Project, teacher: Teacher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.no_sandbox(monkeypatch)
        run = authored(project, n=1, axes=PINS, dry_run=True)
        assert (run.result["dry_run"], Scenario.objects.get().status) == (1, "dry_run")

    def test_without_a_sandbox_nothing_is_launched(
        self, project: Project, teacher: Teacher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.no_sandbox(monkeypatch)
        with pytest.raises(NoSandbox, match="install bubblewrap"):
            authored(project, n=1)
        assert not Run.objects.exists() and not teacher.asked

    def no_sandbox(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def choose(*_: object, **__: object) -> SandboxBackend:
            raise SandboxUnavailable("install bubblewrap")

        monkeypatch.setattr(sandbox, "choose_backend", choose)

    @pytest.mark.parametrize(
        ("params", "path"),
        [
            ({"axes": {"task": "dance"}}, "params.axes.task"),
            ({"axes": {"colour": "red"}}, "params.axes.colour"),
            ({"axes": {"task": []}}, "params.axes.task"),
            ({"n": 0}, "params.n"),
            ({"model": "nobody"}, "params.model"),
            ({"colour": 1}, "params.colour"),
        ],
    )
    def test_what_cannot_be_written_is_refused(
        self, project: Project, rooms: FakeBackend, params: dict[str, Any], path: str
    ) -> None:
        with pytest.raises(Invalid) as refused:
            authored(project, **params)
        assert refused.value.errors[0].path == path

    def test_the_launch_form_has_a_field_for_everything(
        self, project: Project, rooms: FakeBackend, client: Client
    ) -> None:
        client.force_login(make_member(project, role=Role.CURATOR))
        url = "/p/shell/runs/new/?kind=author"

        page = client.get(url).content.decode()
        form = {"model": "teacher", "n": "2", "axes": '{"task": "cleanup"}', "attempts": "2", "repeats": "0"}
        answer = client.post(url, {**form, "dry_run": "on"})

        assert all(f'name="{name}"' in page for name in ("model", "n", "axes", "structured", "seed", "dry_run"))
        assert answer.status_code == 302
        params = project.runs.get().params
        assert (params["axes"], params["n"], params["structured"]) == ({"task": "cleanup"}, 2, False)

    def test_the_estimate_says_calls_and_sandboxes(self, project: Project, rooms: FakeBackend) -> None:
        found = estimate(project=project, kind="author", params={"model": "teacher", "n": 10})
        assert (found.items, found.calls, found.unpriced) == (10, 13, ("teacher",))
        assert "140 sandboxes" in found.notes[0]

    def test_the_scripted_teachers_bundles_become_scenarios(self, storage: object) -> None:
        project = make_project()
        make_endpoint(project, "teacher", model="scripted/teacher")

        run = authored(project, n=12, dry_run=True)

        assert (run.result["dry_run"], run.items_failed) == (12, 0)
        assert len({json.dumps(axes, sort_keys=True) for axes in Scenario.objects.values_list("axes", flat=True)}) == 12
        tasks = {axes["task"] for axes in Scenario.objects.values_list("axes", flat=True)}
        assert len(tasks) > 6  # which ones depends on the run


def pick(count: int, there: Sequence[dict[str, Any]] = (), *, seed: str = "1", pins: Pins | None = None) -> Picked:
    return pick_combinations(taxonomy=shipped_taxonomy(), pins=pins or {}, existing=there, count=count, seed=seed)


class TestCombinations:
    def test_all_values_of_an_axis_are_picked_before_one_repeats(self) -> None:
        picked = pick(33)
        counts = {
            value: sum(axes["task"] == value for axes in picked) for value in shipped_taxonomy().axes["task"].values
        }
        assert min(counts.values()) >= 2 and max(counts.values()) <= 4

    def test_the_least_covered_cell_goes_first(self) -> None:
        cells = [(task, provider) for task in ("cleanup", "archive") for provider in ("mailbox", "spool")]
        there = [{"task": task, "provider": provider} for task, provider in cells[:3]]
        found = pick(1, there, pins={"task": ["cleanup", "archive"], "provider": ["mailbox", "spool"]})
        assert (found[0]["task"], found[0]["provider"]) == cells[3]

    def test_the_same_seed_gives_the_same_and_another_seed_others(self) -> None:
        assert pick(5) == pick(5) != pick(5, seed="2")

    def test_pins_hold_and_more_may_be_asked_for_than_there_are(self) -> None:
        pins = {name: [next(iter(axis.values))] for name, axis in shipped_taxonomy().axes.items()}
        assert pick(3, pins=pins) == [{name: words[0] for name, words in pins.items()}] * 3

    def test_a_projects_own_axis_is_covered_too(self) -> None:
        wider = with_additions(shipped_taxonomy(), {"shell": ["dash", "busybox"]})
        picked = pick_combinations(taxonomy=wider, pins={}, existing=[], count=4, seed="1")
        assert {axes["shell"] for axes in picked} == {"dash", "busybox"}
