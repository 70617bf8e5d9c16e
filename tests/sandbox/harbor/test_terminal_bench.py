"""A task of Terminal-Bench becomes one of Harbor, or is refused by name."""

import pytest

from sandbox.harbor.task_folder import TaskFile, TaskRefused, read_task
from sandbox.harbor.terminal_bench import harbor_files

# A billion texts when each alias is followed.
ALIASES = b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (level, level, b",".join([b"*a%d" % (level - 1)] * 10)) for level in range(1, 9)
)
# As many keys when each level merges those of the one before.
MERGES = b"b0: &b0 {k: 1}\n" + b"".join(
    b"b%d: &b%d\n  <<: [%s]\n" % (level, level, b",".join([b"*b%d" % (level - 1)] * 10)) for level in range(1, 10)
)
FILES = {
    "task.yaml": TaskFile(b"instruction: |\n  Say hello.\ndifficulty: easy\nmax_test_timeout_sec: 30\ntags: [text]\n"),
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


def test_it_becomes_a_harbor_task() -> None:
    task = read_task(harbor_files(FILES))

    assert task.instruction == "Say hello.\n"
    assert task.config.verifier.timeout_sec == 30.0
    assert task.config.metadata == {"difficulty": "easy", "tags": ["text"]}
    assert task.files["environment/Dockerfile"].data == b'FROM ubuntu:24.04\nENV LEVEL="3"\nWORKDIR /app\n'
    assert {"environment/data/in.txt", "tests/test_outputs.py", "tests/run-tests.sh"} <= task.files.keys()
    assert task.solutions() == ["solution"]


def test_the_template_as_terminal_bench_writes_it_is_read() -> None:
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
    task = read_task(harbor_files({**FILES, "docker-compose.yaml": compose, "task.yaml": given}))

    assert task.files["environment/Dockerfile"].data == b'FROM ubuntu:24.04\nENV EMPTY=""\n'
    known = {"author_name": "A", "difficulty": "hard", "category": "debugging", "tags": ["git"]}
    nested = {"expert_time_estimate_min": 45, "review": '{"by": "B", "at": null}'}
    assert task.config.metadata == {**known, **nested}
    assert (task.config.agent.timeout_sec, task.config.verifier.timeout_sec) == (900.0, 180.0)


def test_an_image_gets_the_tests_that_it_copies() -> None:
    image = TaskFile(b"FROM ubuntu:24.04\nCOPY tests/ /checks/\n# solution.sh\n")
    files = harbor_files({**FILES, "Dockerfile": image})

    assert "environment/tests/test_outputs.py" in files
    assert "environment/solution.sh" not in files


def test_typed_lines_become_a_script() -> None:
    typed = TaskFile(b"- command: cd /app\n- command: make\n  append_enter: true\n")
    files = {name: file for name, file in FILES.items() if name != "solution.sh"} | {"solution.yaml": typed}

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
def test_what_has_no_counterpart_is_refused_by_name(change: dict[str, bytes | None], reason: str) -> None:
    files = {name: file for name, file in FILES.items() if name not in change}
    files |= {name: TaskFile(data) for name, data in change.items() if data is not None}
    with pytest.raises(TaskRefused, match=reason):
        harbor_files(files)
