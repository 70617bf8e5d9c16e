"""A Harbor task is checked as files, written and changed, and says what Docker alone cannot run."""

import tomllib
from pathlib import Path

import pytest

from sandbox.harbor.task_folder import TaskFile, TaskFolder, TaskRefused, dump_toml, read_task
from tests.sandbox.harbor.tasks import TOML, task_files

STEPS = """
[[steps]]
name = "first"
[[steps]]
name = "second"
[steps.verifier]
environment_mode = "separate"
"""


def reasons(files: dict[str, TaskFile]) -> str:
    with pytest.raises(TaskRefused) as refused:
        read_task(files)
    return str(refused.value)


def with_toml(*lines: str, toml: str = TOML) -> TaskFolder:
    return read_task(task_files(task_toml="\n".join([toml, *lines])))


@pytest.mark.parametrize("toml", ["a" + ".a" * 15_000 + " = 1", "[" + '"a".' * 15_000 + "a]", "x = {" + "a." * 15_000])
def test_a_key_of_thousands_of_parts_is_refused_at_once(toml: str) -> None:
    assert "more than 64 parts" in reasons(task_files(task_toml=toml))


def test_a_task_is_written_as_it_was_read(tmp_path: Path) -> None:
    task = read_task(task_files())
    task.write(tmp_path)

    assert (task.name, task.is_separate, task.not_run_here()) == ("acme/greet", False, [])
    assert (tmp_path / "solution/solve.sh").stat().st_mode & 0o777 == 0o755
    assert {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()} == set(task.files)


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.3", "1.4"])
def test_all_schemas_are_read(version: str) -> None:
    assert with_toml(toml=TOML.replace('"1.4"', f'"{version}"')).config.schema_version == version


def test_the_first_schema_called_its_version_so() -> None:
    assert with_toml(toml='version = "1.0"\n').config.schema_version == "1.0"


def test_all_that_is_wrong_is_said_at_once() -> None:
    said = reasons(task_files(instruction_md=None, tests__test_sh=None, environment__Dockerfile=None))

    assert "instruction.md: missing" in said
    assert "tests/test.sh: missing" in said
    assert "environment: missing: add environment/Dockerfile" in said


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../outside", "must be relative"),
        ("/etc/passwd", "must be relative"),
        ("environment//x", "must be relative"),
        ("environment/a\nb", "has characters"),
        ("task.toml/inside", "is below a path that is a file"),
        ("x/" + "y" * 400, "is too long"),
    ],
)
def test_hostile_names_are_refused(path: str, reason: str) -> None:
    assert reason in reasons({**task_files(), path: TaskFile(b"")})


def test_a_version_that_is_not_known_is_named() -> None:
    assert "schema_version: is not known; 1.0 to 1.4 are" in reasons(task_files(task_toml='schema_version = "2.0"'))


def test_steps_have_their_own_instructions_and_tests() -> None:
    files = task_files(task_toml=TOML + STEPS, instruction_md=None)
    assert "steps/second/instruction.md: missing" in reasons(files)

    said = {f"steps/{step}/instruction.md": TaskFile(f"Do {step}.".encode()) for step in ("first", "second")}
    own = {"steps/first/solution/solve.sh": TaskFile.script("true\n")}
    task = read_task({**files, **said, **own})

    assert "# second\n\nDo second." in task.instruction
    assert task.solutions() == ["steps/first/solution", "solution"]
    assert not task.is_separate  # the first step's verifier shares the machine


def test_a_separate_verifier_may_bring_its_tests_in_an_image() -> None:
    lines = ('[verifier]\nenvironment_mode = "separate"\n[verifier.environment]\ndocker_image = "acme/tests:1"',)
    task = read_task(task_files(task_toml="\n".join(lines), tests__test_sh=None))

    assert task.is_separate


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("[environment]\ngpus = 1", "It needs a GPU."),
        ('[environment.tpu]\ntype = "v6e"\ntopology = "2x2"', "It needs a TPU."),
        ('[environment]\nos = "Windows"', "It needs Windows."),
        ('[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["example.org"]', "It limits the network"),
        ('[verifier.env]\nKEY = "${JUDGE_KEY}"', "variables of the machine that runs it: JUDGE_KEY."),
    ],
)
def test_what_cannot_run_here_is_said(lines: str, reason: str) -> None:
    script = "tests__test_bat" if "Windows" in lines else "tests__test_sh"
    task = read_task(task_files(task_toml=lines, **{script: "x"}))

    assert [reason in said for said in task.not_run_here()] == [True]


def test_a_variable_with_a_default_needs_no_machine() -> None:
    assert with_toml('[verifier.env]\nKEY = "${JUDGE_KEY:-none}"', toml="").not_run_here() == []


def test_a_changed_copy_keeps_what_our_models_do_not_know() -> None:
    toml = (
        TOML
        + '\n[metadata]\nwhen = 2026-01-02\n[metadata.deep]\nquote = "a\\"b\\\\c"\n[[artifacts]]\nsource = "/app"\n'
    )
    task = with_toml(toml=toml).changed({"README.md": TaskFile(b"x")}, agent={"timeout_sec": 900.0})
    document = tomllib.loads(task.files["task.toml"].data.decode())

    before = tomllib.loads(toml)
    assert document == {**before, "agent": {"timeout_sec": 900.0}}
    assert tomllib.loads(dump_toml(before)) == before
