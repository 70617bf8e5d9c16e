"""A Harbor task is checked as files, written and changed, and says what Docker alone cannot run."""

import tomllib
from pathlib import Path

import pytest

from sandbox.harbor.tasks import TaskFile, TaskFolder, TaskRefused, dump_toml, read_task
from sandbox.harbor.terminal_bench import harbor_files
from tests.sandbox.harbor.tasks import TOML, task_files

STEPS = """
[[steps]]
name = "first"
[[steps]]
name = "second"
[steps.verifier]
environment_mode = "separate"
"""
# A billion texts when each alias is followed.
ALIASES = b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (level, level, b",".join([b"*a%d" % (level - 1)] * 10)) for level in range(1, 9)
)
# As many keys when each level merges those of the one before.
MERGES = b"b0: &b0 {k: 1}\n" + b"".join(
    b"b%d: &b%d\n  <<: [%s]\n" % (level, level, b",".join([b"*b%d" % (level - 1)] * 10)) for level in range(1, 10)
)


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


class TestTerminalBench:
    FILES = {
        "task.yaml": TaskFile(
            b"instruction: |\n  Say hello.\ndifficulty: easy\nmax_test_timeout_sec: 30\ntags: [text]\n"
        ),
        "Dockerfile": TaskFile(b"FROM ubuntu:24.04\n"),
        "data/in.txt": TaskFile(b"1\n"),
        "docker-compose.yaml": TaskFile(
            b"services:\n  client:\n    build:\n      dockerfile: Dockerfile\n    image: x\n    working_dir: /app\n"
            b"    environment:\n      - TEST_DIR=${T_BENCH_TEST_DIR}\n      - LEVEL=3\n"
        ),
        "run-tests.sh": TaskFile.script("#!/bin/bash\npytest $TEST_DIR/test_outputs.py\n"),
        "tests/test_outputs.py": TaskFile(b"def test(): pass\n"),
        "solution.sh": TaskFile(b"echo hello\n"),
    }

    def test_it_becomes_a_harbor_task(self) -> None:
        task = read_task(harbor_files(self.FILES))

        assert task.instruction == "Say hello.\n"
        assert task.config.verifier.timeout_sec == 30.0
        assert task.config.metadata == {"difficulty": "easy", "tags": ["text"]}
        assert task.files["environment/Dockerfile"].data == b'FROM ubuntu:24.04\nENV LEVEL="3"\nWORKDIR /app\n'
        assert {"environment/data/in.txt", "tests/test_outputs.py", "tests/run-tests.sh"} <= task.files.keys()
        assert task.solutions() == ["solution"]

    def test_the_template_as_terminal_bench_writes_it_is_read(self) -> None:
        compose = TaskFile(
            b"services:\n  client:\n    build:\n      dockerfile: Dockerfile\n"
            b"    image: ${T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME}\n"
            b"    container_name: ${T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME}\n"
            b'    command: [ "sh", "-c", "sleep infinity" ]\n    environment:\n      - TEST_DIR=${T_BENCH_TEST_DIR}\n'
            b"      - EMPTY=\n    volumes:\n      - ${T_BENCH_TASK_LOGS_PATH}:${T_BENCH_CONTAINER_LOGS_PATH}\n"
            b"      - ${T_BENCH_TASK_AGENT_LOGS_PATH}:${T_BENCH_CONTAINER_AGENT_LOGS_PATH}\n"
        )
        given = TaskFile(
            b"instruction: Do it.\nauthor_name: A\ndifficulty: hard\ncategory: debugging\ntags:\n  - git\n"
            b"parser_name: pytest\nmax_agent_timeout_sec: 900.0\nmax_test_timeout_sec: 180.0\n"
            b"run_tests_in_same_shell: false\ndisable_asciinema: false\nexpert_time_estimate_min: 45\n"
            b"estimated_duration_sec:\n"
            b"review: {by: B, at: null}\n"
        )
        task = read_task(harbor_files({**self.FILES, "docker-compose.yaml": compose, "task.yaml": given}))

        assert task.files["environment/Dockerfile"].data == b'FROM ubuntu:24.04\nENV EMPTY=""\n'
        known = {"author_name": "A", "difficulty": "hard", "category": "debugging", "tags": ["git"]}
        nested = {"expert_time_estimate_min": 45, "review": '{"by": "B", "at": null}'}
        assert task.config.metadata == {**known, **nested}
        assert (task.config.agent.timeout_sec, task.config.verifier.timeout_sec) == (900.0, 180.0)

    def test_an_image_gets_the_tests_that_it_copies(self) -> None:
        image = TaskFile(b"FROM ubuntu:24.04\nCOPY tests/ /checks/\n# solution.sh\n")
        files = harbor_files({**self.FILES, "Dockerfile": image})

        assert "environment/tests/test_outputs.py" in files
        assert "environment/solution.sh" not in files

    def test_typed_lines_become_a_script(self) -> None:
        typed = TaskFile(b"- command: cd /app\n- command: make\n  append_enter: true\n")
        files = {name: file for name, file in self.FILES.items() if name != "solution.sh"} | {"solution.yaml": typed}

        assert harbor_files(files)["solution/solve.sh"].text == "#!/bin/bash\ncd /app\nmake\n"

    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"docker-compose.yaml": b"services: {client: {}, db: {}}"}, "has several services"),
            ({"docker-compose.yaml": b"services: {client: {privileged: true}}"}, "nothing like privileged"),
            ({"docker-compose.yaml": b"services: {client: {build: {args: {A: 1}}}}"}, "nothing like build.args"),
            ({"docker-compose.yaml": b"{services: {client: {}}, networks: {n: {}}}"}, "nothing like networks"),
            ({"docker-compose.yaml": b"services: {client: {volumes: ['./d:/d']}}"}, "the volume ./d:/d"),
            ({"docker-compose.yaml": b"services: {client: {environment: [KEY]}}"}, "the variable KEY of its host"),
            ({"docker-compose.yaml": b"services: {client: {command: [nginx]}}"}, "the command 'nginx'"),
            ({"task.yaml": b"instruction: a\nparser_name: swebench"}, "parser_name: 'swebench' reads the verdict"),
            ({"task.yaml": b"difficulty: easy"}, "instruction: missing"),
            ({"task.yaml": b"a: [1"}, "is not YAML"),
            ({"task.yaml": b"a: " + b"[" * 500}, "is not YAML"),
            ({"task.yaml": b"a: 0001-01-01T00:00:00+99:99"}, "is not YAML"),
            ({"task.yaml": b"a: !!timestamp soon"}, "is not YAML"),
            ({"task.yaml": MERGES}, "too many merged keys"),
            ({"task.yaml": b"#" * 70_000}, "longer than 64 KiB"),
            ({"docker-compose.yaml": b"services: {client: [1]}"}, "services.client: Input should be"),
            ({"docker-compose.yaml": b"services: {client: {build: [1]}}"}, "services.client.build"),
            ({"docker-compose.yaml": b"services: {client: {environment: 3}}"}, "services.client.environment"),
            (
                {"docker-compose.yaml": ALIASES + b"services: {client: {environment: *a8}}"},
                "more than 64 levels or 10,000",
            ),
            (
                {"solution.yaml": b"- " + ALIASES.replace(b"\n", b"\n  ") + b"command: *a8", "solution.sh": None},
                "10,000 values",
            ),
            ({"docker-compose.yaml": b"services: &a {client: *a}"}, "more than 64 levels"),
        ],
    )
    def test_what_has_no_counterpart_is_refused_by_name(self, change: dict[str, bytes | None], reason: str) -> None:
        files = {name: file for name, file in self.FILES.items() if name not in change}
        files |= {name: TaskFile(data) for name, data in change.items() if data is not None}
        with pytest.raises(TaskRefused, match=reason):
            harbor_files(files)
