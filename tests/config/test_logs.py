"""Lines of the log: the ids of the work in progress in each, and never its content."""

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from billiard.einfo import ExceptionInfo
from celery.app.task import Context
from celery.app.trace import TraceInfo
from django.test import Client
from gunicorn.glogging import SafeAtoms

from config.celery import begin_task, end_task, send_request_id
from config.logs import Ids, Json, TextFormatter
from curation.web.telemetry import bind

TRANSCRIPT = "rm -rf /srv/of-a-transcript"


class Lines(logging.Handler):
    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.addFilter(Ids())
        self.setFormatter(formatter)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def read(self) -> dict[str, object]:
        assert len(self.lines) == 1
        assert "\n" not in self.lines[0]
        line: dict[str, object] = json.loads(self.lines[0])
        return line


@pytest.fixture
def log() -> logging.Logger:
    logger = logging.getLogger("tests.config.logs")
    logger.handlers, logger.propagate = [], False
    logger.setLevel("INFO")
    return logger


@pytest.fixture
def lines(log: logging.Logger) -> Lines:
    log.addHandler(written := Lines(Json()))
    return written


def test_a_line_has_the_ids_of_its_work(log: logging.Logger, lines: Lines) -> None:
    with bind(run_id=7), bind(item_id=8):
        log.info("item of %s", "a run", extra={"transcript": TRANSCRIPT})

    line = lines.read()
    assert line.pop("timestamp")
    assert line == {
        **{"level": "INFO", "logger": "tests.config.logs", "message": "item of a run"},
        **{"request_id": None, "task_id": None, "run_id": 7, "item_id": 8},
    }


@pytest.mark.parametrize("formatter", [Json(), TextFormatter("%(message)s")])
def test_the_text_of_an_exception_is_left_out_with_those_of_its_causes(
    log: logging.Logger, formatter: logging.Formatter
) -> None:
    log.addHandler(written := Lines(formatter))
    try:
        try:
            raise KeyError(TRANSCRIPT)
        except KeyError as error:
            raise ValueError(f"unexpected {TRANSCRIPT}") from error
    except ValueError as error:
        log.exception("item %s", 8)
        log.warning("item left: %s", error)

    assert "of-a-transcript" not in "".join(written.lines)
    assert "KeyError" in written.lines[0]
    assert "ValueError" in written.lines[0]
    assert "test_logs.py" in written.lines[0]
    assert "item left: ValueError" in written.lines[1]


def test_the_text_of_a_connections_error_is_kept(log: logging.Logger, lines: Lines) -> None:
    log.warning("no broker: %s", ConnectionRefusedError(111, "Connection refused"))

    assert lines.read()["message"] == "no broker: ConnectionRefusedError: [Errno 111] Connection refused"


def test_celerys_line_about_a_failed_task_leaves_out_its_text(lines: Lines) -> None:
    logger = logging.getLogger("celery.app.trace")
    logger.addHandler(lines)
    try:
        try:
            raise ValueError(TRANSCRIPT)
        except ValueError as error:
            request = Context(id="task-1", hostname="w", args=(), kwargs={}, delivery_info={})
            task = SimpleNamespace(name="work", throws=())
            failed: Any = TraceInfo("FAILURE", error)
            failed._log_error(task, request, ExceptionInfo())
    finally:
        logger.removeHandler(lines)

    line = lines.read()
    assert line["task_id"] == "task-1"
    assert str(line["message"]).startswith("Task work[task-1] raised unexpected")
    assert "transcript" not in lines.lines[0]


@pytest.mark.django_db
def test_lines_of_a_request_have_the_id_that_it_answers_with(client: Client, lines: Lines) -> None:
    logger = logging.getLogger("django.request")
    logger.addHandler(lines)
    try:
        answer = client.get("/there-is-no-such-page/")
    finally:
        logger.removeHandler(lines)

    assert lines.read()["request_id"] == answer["X-Request-Id"]


def test_a_task_knows_the_request_that_sent_it(log: logging.Logger, lines: Lines) -> None:
    headers: dict[str, object] = {}
    with bind(request_id="abc"):
        send_request_id(headers=headers)
    task = SimpleNamespace(name="curation.runs.tasks.work", request=headers)

    begin_task(task=task, task_id="task-1", args=(5, ""))
    log.info("working")
    end_task()

    line = lines.read()
    assert (line["request_id"], line["task_id"], line["run_id"]) == ("abc", "task-1", 5)


def test_access_lines_have_the_id_of_the_response(lines: Lines) -> None:
    logger = logging.getLogger("gunicorn.access")
    logger.addHandler(lines)
    logger.setLevel("INFO")
    try:
        logger.info("%(m)s %(s)s", {"m": "GET", "s": "200", "{x-request-id}o": "abc"})
    finally:
        logger.removeHandler(lines)

    assert lines.read()["request_id"] == "abc"


SECRET = "0fdj3-secret_of-a-link"


@pytest.mark.django_db
@pytest.mark.parametrize("formatter", [Json(), TextFormatter("%(message)s")])
@pytest.mark.parametrize("path", ["/invitations/{}", "/invitations/{}/x/", "/invitations/ {}/", "/invitations/\n{}"])
def test_no_line_has_the_secret_of_an_invitation(client: Client, formatter: logging.Formatter, path: str) -> None:
    path = path.format(SECRET)
    names = ("django.request", "django.server", "gunicorn.error", "gunicorn.access")
    written = Lines(formatter)
    for name in names:
        logging.getLogger(name).addHandler(written)
    try:
        client.put(path + "/nowhere/")
        logging.getLogger("django.server").info('"%s" %s %s', f"GET {path} HTTP/1.1", "200", "5")
        logging.getLogger("gunicorn.error").error("Error handling request %s", path)
        logging.getLogger("gunicorn.error").error(f"Error handling request {path}")
        logging.getLogger("gunicorn.error").error("Lost: %s", ConnectionError(f"no answer for {path}"))
        atoms = SafeAtoms({"U": path, "s": "200", "{x-request-id}o": "abc"})
        logging.getLogger("gunicorn.access").error("%(U)s %(s)s %(h)s", atoms)
    finally:
        for name in names:
            logging.getLogger(name).removeHandler(written)

    assert len(written.lines) == 6
    assert SECRET not in "".join(written.lines)
    assert "".join(written.lines).count("/invitations/[hidden]") == 6


def test_no_other_handler_prints_the_lines_of_django() -> None:
    """Django's own handlers do not hide what ours hides."""
    for name in ("django", "django.server"):
        assert logging.getLogger(name).handlers == []
