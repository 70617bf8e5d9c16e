"""The examples of OpenAPI's schemas: copied as they are, the schema allows them."""

from typing import Any

from jsonschema import Draft202012Validator

from curation.scenarios.filters import ScenarioFilter
from tests.contract import document


def test_the_examples_of_every_schema_are_valid_against_it() -> None:
    schemas: dict[str, Any] = document()["components"]["schemas"]
    wrong = [
        (name, error.message)
        for name, schema in schemas.items()
        for example in schema.get("examples", ())
        for error in Draft202012Validator({**schema, "components": {"schemas": schemas}}).iter_errors(example)
    ]
    assert not wrong and any(schema.get("examples") for schema in schemas.values())


def test_an_axis_with_two_values_means_either() -> None:
    found = ScenarioFilter.model_validate({"axes": "task=cleanup,task=archive"})
    assert found.axes == (("task=cleanup", "task=archive"),)
