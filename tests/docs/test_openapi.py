"""OpenAPI lists every call that scripts were promised, each body with an example."""

import functools
from typing import Any

import pytest
from ninja import Schema

from config.api import api
from curation.web.lists.filters import RowFilter

V1 = "/api/v1"
PROJECT = "/projects/{slug}"
PROMISED = {
    "/projects": "get post",
    PROJECT: "get patch delete",
    "/deletions": "get",
    "/deletions/{deletion_id}": "get",
    "/audit": "get",
    f"{PROJECT}/members": "get post",
    f"{PROJECT}/invitations": "get post",
    f"{PROJECT}/invitations/{{invitation_id}}": "delete",
    "/invitations": "get",
    "/invitations/accept": "post",
    "/tokens": "get post",
    "/tokens/{token_id}": "delete",
    f"{PROJECT}/models": "get post",
    f"{PROJECT}/models/{{name}}": "patch delete",
    f"{PROJECT}/models/{{name}}/test": "post",
    f"{PROJECT}/imports": "post",
    f"{PROJECT}/prompts": "get",
    f"{PROJECT}/exclusions": "get post delete",
    f"{PROJECT}/duels": "get",
    "/duels/{duel_id}": "get",
    f"{PROJECT}/samples": "get",
    "/samples/{sample_id}": "get",
    "/samples/bulk": "post",
    f"{PROJECT}/queue/next": "post",
    "/leases/{lease_id}/heartbeat": "post",
    "/leases/{lease_id}": "delete",
    "/samples/{sample_id}/decisions": "get post",
    "/samples/{sample_id}/undo": "post",
    "/samples/{sample_id}/findings": "get",
    "/samples/{sample_id}/clearances": "post",
    "/samples/{sample_id}/clearances/{rule}/{value_sha256}": "delete",
    "/samples/{sample_id}/revisions": "get post",
    f"{PROJECT}/runs": "get post",
    "/runs/{run_id}": "get patch delete",
    "/runs/{run_id}/items": "get",
    "/runs/{run_id}/events": "get",
    "/runs/{run_id}/cancel": "post",
    "/runs/{run_id}/resume": "post",
    "/runs/{run_id}/retry-failed": "post",
    "/runs/{run_id}/report.md": "get",
    f"{PROJECT}/exports": "get post",
    "/exports/{export_id}": "get patch delete",
    "/exports/{export_id}/preview": "get",
    "/exports/{export_id}/files/{name}": "get",
    "/exports/{before}/diff/{after}": "get",
    f"{PROJECT}/evaluations": "get post",
    "/evaluations/{evaluation_id}": "get patch delete",
    "/evaluations/{evaluation_id}/calls": "get",
    "/evaluations/{evaluation_id}/baseline": "post",
    "/evaluations/{before}/compare/{after}": "get",
    "/evaluations/{before}/compare/{after}/{name}": "get",
    f"{PROJECT}/leaderboard": "get",
    f"{PROJECT}/splits": "get post",
    "/splits/{split_id}": "get patch delete",
    "/splits/{split_id}/rows": "get",
    "/splits/{split_id}/contamination": "get post",
    "/splits/{split_id}/baseline": "delete",
    "/schemas/bundle.json": "get",
    f"{PROJECT}/taxonomy": "get",
    f"{PROJECT}/scenarios": "get post",
    f"{PROJECT}/scenarios/coverage": "get",
    f"{PROJECT}/scenarios/bundles.zip": "get",
    "/scenarios/{scenario_id}": "get put delete",
    "/scenarios/{scenario_id}/bundle.json": "get",
    "/scenarios/{scenario_id}/gate": "post",
    f"{PROJECT}/stats": "get",
    f"{PROJECT}/webhooks": "get post",
    f"{PROJECT}/webhooks/{{webhook_id}}": "delete",
    "/health": "get",
    "/ready": "get",
    "/metrics": "get",
}


@functools.cache
def document() -> dict[str, Any]:
    return api.get_openapi_schema()


@pytest.mark.parametrize("path", PROMISED)
def test_a_promised_call_is_listed(path: str) -> None:
    listed = document()["paths"].get(f"{V1}{path}", {})

    assert set(PROMISED[path].split()) <= set(listed)
    assert all(listed[method].get("summary") for method in PROMISED[path].split())


def test_every_body_has_an_example() -> None:
    schemas = document()["components"]["schemas"]
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body:
                found = example_of(body, schemas)
                name = body["schema"].get("$ref", "").split("/")[-1]
                assert found and set(schemas.get(name, {}).get("required", ())) <= set(found), f"{method} {path}"


def example_of(body: dict[str, Any], schemas: dict[str, Any]) -> Any:
    """The example of a body: its own, that of its schema, or one put together from the schema's fields."""
    if "example" in body:
        return body["example"]
    schema = body["schema"]
    found = [schema, *schema.get("anyOf", [])]
    name = next(one["$ref"].split("/")[-1] for one in found if "$ref" in one)
    if "examples" in schemas[name]:
        return schemas[name]["examples"][0]
    fields = schemas[name]["properties"]
    return {field: values["examples"][0] for field, values in fields.items() if "examples" in values}


def test_no_two_schemas_share_a_name() -> None:
    """OpenAPI has one list of schemas: of two with one name, only the second would be shown."""
    found = {one for one in _subclasses(Schema) if one.__module__.startswith("curation.")} - _subclasses(RowFilter)
    names = [one.__name__ for one in found]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("path", PROMISED)
def test_every_call_declares_its_refusals_as_problems(path: str) -> None:
    for operation in document()["paths"][f"{V1}{path}"].values():
        assert {"4XX", "503"} <= set(operation["responses"])
        assert list(operation["responses"]["4XX"]["content"]) == ["application/problem+json"]


def _subclasses(kind: type) -> set[type]:
    direct: list[type] = kind.__subclasses__()
    return {*direct, *(found for one in direct for found in _subclasses(one))}
