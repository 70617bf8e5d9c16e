"""The shipped scenarios cover the taxonomy, the gate proves each in a real sandbox, and half a solution is none."""

import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from curation import scenarios
from curation.llm import scripted
from curation.llm.scripted.operators import written_steps
from curation.llm.scripted.teacher import write_bundle
from curation.scenarios.bundles.document import Bundle, parse_bundle
from curation.scenarios.gate.stage import reference_of, subject_of, task_of
from curation.scenarios.taxonomy.axes import shipped_taxonomy
from curation.trajectories.models import ASKED, READ, FactState
from curation.trajectories.rollout.record import asked_facts
from sandbox.agent.episode import AgentEpisode, EpisodeLimits, Message, ModelReply, run_episode
from sandbox.agent.shell_environment import ShellEnvironment
from sandbox.choose import choose_backend
from sandbox.gate.gate import run_gate
from sandbox.gate.report import GateVerdict
from sandbox.protocol import SandboxBackend
from tests.sampled import one_of

FOLDER = Path(scenarios.__file__).parent / "shipped"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
# The part taken out of each reference solution: a trap that it no longer avoids, or a step that it forgets.
MUTANTS = {
    "bakery-oven-faults": (' && $5 != "TEST"', ""),
    "choir-roster": (' && $5 == ""', ""),
    "clinic-records-access": ("find public -type f -exec chmod 644 {} +\n", ""),
    "ferry-damaged-list": ("pier prove island\n", ""),
    "harbour-berth-plan": ("s/ 4 / 9 /;", ""),
    "kiln-idle": ("/opt/kiln/kilnctl ask FIRINGS\n", ""),
    "library-cards": ('        if ($i ~ /^Subtitle:/) title = title ": " value\n', ""),
    "lighthouse-no-oil": ("keeper gauge\n", ""),
    "museum-crate": ("--exclude='*.thumb' ", ""),
    "night-desk-quiet": ("nightdesk next\n", ""),
    "observatory-gaps": (" > 600", " >= 600"),
    "orchard-frost": ("orchard-spool close 0412-frost\n", ""),
    "parish-register": ('tolower($4) == "holm"', '$4 == "Holm"'),
    "press-void-proofs": ('[ "$(head -n 1 "$file")" = "status: void" ]', 'grep -qx "status: void" "$file"'),
    "radio-night-programme": ("echo LOUDNESS=-23 >> /opt/radio/station.env\n", ""),
    "seedbank-spring-release": ("echo 2026.1 > VERSION\n", ""),
    "theatre-locked-cues": ('[ "$(head -n 1 "$cue")" = "# open" ] || ', ""),
    "tram-signal-times": ("/^flash/d\n", ""),
    "vault-no-card": ("vault card\nvault seal 1848 || true\n", ""),
    "weaver-patterns": ('cmp -s "$file" "$folder/$new"', "true"),
}
SOME = NAMES[::7]
SLOW = pytest.mark.slow
# Sessions of Docker are slow, and the same as bubblewrap's by the tests of the sandbox.
IN_ROOMS = {"bubblewrap": pytest.mark.bubblewrap, "docker": pytest.mark.docker}
QUICK = {"bubblewrap": SOME, "docker": SOME[:1]}
EACH = [
    pytest.param(rooms, name, marks=mark if name in QUICK[rooms] else (mark, SLOW))
    for rooms, mark in IN_ROOMS.items()
    for name in NAMES
]
each_bundle = pytest.mark.parametrize(("rooms", "name"), EACH, indirect=["rooms"])


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
        pytest.param("docker", marks=(pytest.mark.docker, SLOW)),
    ],
)
def rooms(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SandboxBackend:
    return choose_backend(request.param, folder=tmp_path_factory.mktemp("sandbox"))


@cache
def bundle_named(name: str) -> Bundle:
    return parse_bundle(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


def gated(bundle: Bundle, rooms: SandboxBackend, *, repeats: int = 0) -> GateVerdict:
    return run_gate(
        task=task_of(bundle, labels={}),
        reference=reference_of(bundle),
        subject=subject_of(bundle),
        open_session=rooms.session,
        repeats=repeats,
    )


def told(verdict: GateVerdict) -> str:
    """The reason of the refusal, with the terminal of the failing check."""
    failed = [check for check in verdict.checks if not check.passed]
    return verdict.reason + "".join(f"\n{line.output}" for check in failed for line in check.transcript)


def test_the_bundles_cover_every_value_of_every_axis() -> None:
    bundles = [bundle_named(name) for name in NAMES]
    assert len(bundles) >= 16
    for axis, known in shipped_taxonomy().axes.items():
        assert {str(bundle.axes[axis]) for bundle in bundles} == set(known.values), axis
    for axis, value in (("task", "empty-queue"), ("task", "blocked"), ("provider", "fifo")):
        assert sum(bundle.axes[axis] == value for bundle in bundles) >= 2


@pytest.mark.parametrize("name", NAMES)
def test_a_bundle_is_named_as_its_file_and_announced_as_its_axes_say(name: str) -> None:
    bundle = bundle_named(name)
    assert bundle.name == name
    assert bundle.announcement.kind == bundle.axes["announcement"]
    assert bundle.provider.name in bundle.announcement.text or bundle.provider.name in str(bundle.fixtures)
    assert (bundle.expected_terminal == "panic") == (bundle.axes["task"] == "blocked")


def admitted(names: Sequence[str], rooms: SandboxBackend) -> None:
    """Gate bundles side by side, as a run does."""
    with ThreadPoolExecutor(4) as threads:
        verdicts = list(threads.map(lambda name: gated(bundle_named(name), rooms, repeats=1), names))
    assert {name: told(verdict) for name, verdict in zip(names, verdicts, strict=True) if not verdict.admitted} == {}


@pytest.mark.timeout(900)
def test_the_gate_admits_them(rooms: SandboxBackend) -> None:
    """The test of the demo, which is made with all of them, shows it of the others."""
    admitted(SOME, rooms)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_gate_admits_all_of_them(rooms: SandboxBackend) -> None:
    admitted(NAMES, rooms)


@each_bundle
def test_a_reference_that_forgets_one_thing_is_refused(name: str, rooms: SandboxBackend) -> None:
    bundle = bundle_named(name)
    old, new = MUTANTS[name]
    assert bundle.reference_solution.count(old) == 1
    mutant = bundle.model_copy(update={"reference_solution": bundle.reference_solution.replace(old, new)})
    verdict = gated(mutant, rooms)
    assert [check.name for check in verdict.checks if not check.passed] == ["reference"]
    assert verdict.reason == "reference: the checker fails after the reference solution"


def played(
    model: str, bundle: Bundle, rooms: SandboxBackend, limits: EpisodeLimits, command_seconds: float = 10
) -> AgentEpisode:
    """An episode of a scripted operator."""

    async def complete(messages: Sequence[Message]) -> ModelReply:
        return ModelReply(scripted.reply(model, messages).text)

    with ThreadPoolExecutor(1) as thread:
        task = task_of(bundle, labels={})
        return asyncio.run(
            run_episode(
                open_environment=lambda: ShellEnvironment(task, rooms.session, thread, command_seconds=command_seconds),
                complete=complete,
                instructions="You operate a terminal.",
                expected_terminal=bundle.expected_terminal,
                limits=limits,
            )
        )


@each_bundle
def test_the_scripted_solver_explores_and_solves_it(name: str, rooms: SandboxBackend) -> None:
    bundle = bundle_named(name)
    episode = played("operator-solver", bundle, rooms, EpisodeLimits(max_turns=30))
    outputs = "\n".join(turn.text for turn in episode.turns)
    assert episode.outcome == ("correct_panic" if bundle.expected_terminal == "panic" else "solved"), outputs
    runs = episode.checker.runs if episode.checker else None
    facts = asked_facts(bundle, runs)
    assert facts[ASKED] == FactState.YES and facts[READ] != FactState.NO, runs
    steps = next(steps for said, steps in written_steps().items() if said in bundle.announcement.text)
    assert episode.commands[-len(steps) + 1 :] == list(steps[:-1])


@pytest.mark.parametrize(
    ("model", "outcome"),
    [
        ("operator-quitter", "checker_failed"),
        ("operator-panicker", "wrong_terminal"),
        ("operator-looper", "no_terminal"),
        ("operator-mumbler", "format_error"),
        ("operator-sleeper", "timeout"),
    ],
)
def test_the_other_scripted_operators_fail_as_they_say(model: str, outcome: str, rooms: SandboxBackend) -> None:
    limits = EpisodeLimits(max_turns=6, episode_seconds=4.0 if outcome == "timeout" else 60.0)
    episode = played(model, bundle_named("harbour-berth-plan"), rooms, limits, command_seconds=3.0)
    assert episode.outcome == outcome
    assert not episode.keep


COMBINATIONS = list(product(shipped_taxonomy().axes["task"].values, shipped_taxonomy().axes["provider"].values))


@pytest.mark.bubblewrap
@pytest.mark.parametrize("number", one_of(40, range(0, len(COMBINATIONS), 3)))
def test_what_the_scripted_teacher_writes_is_admitted(number: int, tmp_path: Path) -> None:
    task, provider = COMBINATIONS[number]
    axes = shipped_taxonomy().axes
    rest = {axis: list(axes[axis].values)[number % len(axes[axis].values)] for axis in axes}
    bundle = parse_bundle(write_bundle({**rest, "task": task, "provider": provider}, number))
    verdict = gated(bundle, choose_backend("bubblewrap", folder=tmp_path))
    assert verdict.admitted, told(verdict)
