"""Generated calls over all operations: no internal error, and every response as the schema says.

Some, of a sixth of the operations, are the same in every test run. `make soak` sends 20,000 others to all of them;
`OPENAPI_CALLS` changes their number.
"""

import functools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from config.wsgi import application
from tests.factories import make_bearer
from tests.web.http.test_refusals import DOCUMENT, Rows
from tests.web.http.test_refusals import owner as owner
from tests.web.http.test_refusals import rows as rows

pytestmark = pytest.mark.django_db
SOME = 1  # of each operation
CALLS = int(os.environ.get("OPENAPI_CALLS", "20000"))
OPERATIONS = [f"{method.upper()} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods]

# Schemathesis is imported by the test: every process that collects tests would wait two seconds for it.
if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.schemas import BaseSchema


@functools.cache
def _schema() -> "BaseSchema":
    import schemathesis

    return schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application)


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """As Django's test client does: a request closes no connection, which has the transaction of the test."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def test_some_calls_are_answered_as_the_schema_says(rows: Rows, owner: Any) -> None:
    headers = make_bearer(owner)
    for name in OPERATIONS[::6]:
        with transaction.atomic():
            _send(name, rows, headers, count=SOME, derandomize=True)
            transaction.set_rollback(True)


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_call_is_answered_as_the_schema_says(rows: Rows, owner: Any, name: str) -> None:
    _send(name, rows, make_bearer(owner), count=max(1, CALLS // len(OPERATIONS)), derandomize=False)


def _send(name: str, rows: Rows, headers: dict[str, str], *, count: int, derandomize: bool) -> None:
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi import checks

    operation = _schema().find_operation_by_label(name)
    assert operation is not None
    conformance = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]
    cases = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))

    @settings(
        max_examples=count,
        derandomize=derandomize,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, real=st.sampled_from([True, True, True, False]))
    def send(case: "Case[Any]", real: bool) -> None:
        if real:
            case.path_parameters = {part: rows.value(case.path, part) for part in case.path_parameters or {}}
        case.call_and_validate(headers=headers, checks=conformance)

    send()
