"""Facts about the work in progress for log lines, spans and error reports: ids and names, never its content.

Without `OTEL_EXPORTER_OTLP_ENDPOINT` OpenTelemetry's API does nothing.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType

from opentelemetry import metrics, trace
from opentelemetry.trace import StatusCode

ID_NAMES = ("request_id", "task_id", "run_id", "item_id")
_ids: ContextVar[Mapping[str, str | int]] = ContextVar("ids", default={})  # noqa: B039 - a mapping that nobody changes
_tracer = trace.get_tracer("winnow")
_seconds = metrics.get_meter("winnow").create_histogram("winnow.duration", "s", "Time of a stage or a model call.")


def current_ids() -> Mapping[str, str | int]:
    """The ids that are bound here, by name; those of `ID_NAMES` that do not apply are missing."""
    return _ids.get()


@contextmanager
def bind(**ids: str | int) -> Iterator[None]:
    """Add ids to the log lines, spans and error reports of the block."""
    token = _ids.set({**_ids.get(), **ids})
    try:
        yield
    finally:
        _ids.reset(token)


def begin(**ids: str | int) -> None:
    """Bind these ids alone, until the next call: for a process that does one task after the other."""
    _ids.set(ids)


class TimedSpan:
    """A span and a measured duration of the block. `attributes` are names of few values, such as a stage's.

    Of an exception it has the type alone, because its text may quote the content of the work.
    """

    def __init__(self, name: str, **attributes: str) -> None:
        self._attributes = {"winnow.operation": name} | {f"winnow.{key}": text for key, text in attributes.items()}
        ids = {f"winnow.{key}": one for key, one in _ids.get().items()}
        self._span = trace.use_span(
            _tracer.start_span(name, attributes={**self._attributes, **ids}),
            end_on_exit=True,
            record_exception=False,
            set_status_on_exception=False,
        )

    def __enter__(self) -> None:
        self._started = time.perf_counter()
        self._span.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self._attributes["error.type"] = kind.__qualname__
            span = trace.get_current_span()
            span.set_attribute("error.type", kind.__qualname__)
            span.set_status(StatusCode.ERROR)
        self._span.__exit__(None, None, None)
        _seconds.record(time.perf_counter() - self._started, self._attributes)
