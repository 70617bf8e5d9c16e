"""The message beside a field, for people, which programs get as it is; and the problems behind errors of a database."""

import pytest
from django.db import IntegrityError
from psycopg.errors import ForeignKeyViolation, UniqueViolation

from curation.web.failures import problem_of
from curation.web.problems import FieldError


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("is taken", "This is taken."),
        ("contains a NUL character", "This contains a NUL character."),
        ("at most 60 characters", "Enter at most 60 characters."),
        ("1 to 365 days", "Enter 1 to 365 days."),
        ("a JSON object", "Enter a JSON object."),
        ("Input should be greater than 0", "This must be greater than 0."),
        ("no such filter; the filters are bucket, model", "No such filter; the filters are bucket, model."),
        ("openai/gpt does not exist", "openai/gpt does not exist."),
        ("Choose a model.", "Choose a model."),
    ],
)
def test_a_message_beside_a_field_is_a_sentence(message: str, sentence: str) -> None:
    error = FieldError("params.budget", message)
    assert error.sentence() == sentence
    assert str(error) == f"params.budget: {message}"


@pytest.mark.parametrize(
    ("said", "cause", "code"),
    [
        ("FOREIGN KEY constraint failed", None, "changed_meanwhile"),
        ("violates a constraint", ForeignKeyViolation(), "changed_meanwhile"),
        ("violates a constraint", UniqueViolation(), None),
        ("UNIQUE constraint failed: x.y", None, None),
    ],
)
def test_a_row_that_is_deleted_while_another_is_written_for_it_is_a_conflict(
    said: str, cause: Exception | None, code: str | None
) -> None:
    error = IntegrityError(said)
    error.__cause__ = cause
    found = problem_of(error)
    assert (found.code if found else None) == code
