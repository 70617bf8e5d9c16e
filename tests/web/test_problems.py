"""The message beside a field, for people. Programs get it as it is."""

import pytest

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
