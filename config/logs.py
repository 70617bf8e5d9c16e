"""Log lines as text or JSON, with the ids of the work in progress and without the secrets of invitation links.

The text of an exception may quote a transcript or a key. A line has it only where the exception is about a connection,
a file or a setting; of others it has the type and where it was raised.
"""

import copy
import logging
import re
import traceback
from types import TracebackType
from typing import Any

import redis
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest
from kombu.exceptions import KombuError
from pythonjsonlogger.json import JsonFormatter

from curation.web.telemetry import ID_NAMES, current_ids

ABOUT_MACHINES = (
    *(OSError, redis.RedisError, KombuError, OperationalError, InterfaceError),
    *(ImproperlyConfigured, CommandError),
)
LINE = "%(asctime)s %(levelname)s %(name)s %(message)s"
FIELDS = ("timestamp", "level", "logger", "message", *ID_NAMES, "exc_info", "stack_info")
# The secret of a link is a part of its path.
INVITATION = re.compile(r"(?<=/invitations/).+", re.DOTALL)
ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def hide_invitation(text: str) -> str:
    """Return the text without the path below `/invitations/`: with it, anyone could join the project."""
    return INVITATION.sub("[hidden]", text)


def describe(error: BaseException) -> str:
    """Return the type of an exception, and its text if that cannot quote data."""
    name = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    return hide_invitation(f"{name}: {error}") if isinstance(error, ABOUT_MACHINES) else name


def _discreet(arg: object) -> object:
    text = describe(arg) if isinstance(arg, BaseException) else arg
    return hide_invitation(text) if isinstance(text, str) else text


class Ids(logging.Filter):
    """Adds the ids to each record, puts `describe` in place of exceptions in its message, and hides invitations."""

    def filter(self, record: logging.LogRecord) -> bool:
        ids = dict(current_ids())
        if isinstance(record.args, tuple):
            record.args = tuple(map(_discreet, record.args))
        elif isinstance(record.args, dict):
            record.args = copy.copy(record.args)  # gunicorn's own type stays, which knows the headers
            record.args.update({name: _discreet(arg) for name, arg in record.args.items()})
        if not record.args and isinstance(record.msg, str):
            record.msg = hide_invitation(record.msg)
        if record.name == "gunicorn.access" and isinstance(record.args, dict):
            ids["request_id"] = record.args["{x-request-id}o"]
        if isinstance(request := getattr(record, "request", None), HttpRequest):  # Django logs it after the middleware
            ids.setdefault("request_id", request.META.get("winnow.request_id", ""))
        if isinstance(of_task := getattr(record, "data", None), dict) and "id" in of_task:
            ids["task_id"] = of_task["id"]
            if record.exc_info:  # Celery's own line repeats the exception and its trace
                record.msg = "Task %(name)s[%(id)s] %(description)s"
        for name in ID_NAMES:
            setattr(record, name, ids.get(name) or None)
        return True


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # another handler's formatter leaves its text here
        return super().format(record)

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802 - the name is logging's
        """Return the traces of an exception and its causes, each ended by `describe`."""
        parts: list[str] = []
        error, seen = ei[1], set[int]()
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            parts.insert(0, "".join(traceback.format_tb(error.__traceback__)) + describe(error))
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return "\n\nThen:\n\n".join(parts)


class Json(TextFormatter, JsonFormatter):
    """One object per line, with `FIELDS` and nothing else that a library may have attached to the record."""

    def __init__(self) -> None:
        super().__init__(
            "%(levelname)s %(name)s %(message)s " + " ".join(f"%({name})s" for name in ID_NAMES),
            rename_fields={"levelname": "level", "name": "logger"},
            timestamp=True,
        )

    def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
        return {name: log_data[name] for name in FIELDS if name in log_data}


def logging_config(form: str, level: str) -> dict[str, Any]:
    """The settings of `logging`, for Django, Celery and gunicorn; `form` is `text` or `json`."""
    formatter: dict[str, Any] = (
        {"()": "config.logs.Json"} if form == "json" else {"()": "config.logs.TextFormatter", "fmt": LINE}
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"ids": {"()": "config.logs.Ids"}},
        "formatters": {"line": formatter},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["ids"]}},
        "root": {"handlers": ["console"], "level": level},
        "loggers": {
            "axes": {"level": "WARNING"},
            # Django's own handlers would print each line again, without our filter.
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            "django.server": {"handlers": [], "level": "INFO", "propagate": True},
            "LiteLLM": {"level": "ERROR"},
            "httpx": {"level": "WARNING"},
            "gunicorn.error": {"level": "INFO", "propagate": True},
            "gunicorn.access": {"level": "INFO", "propagate": True},
        },
    }
