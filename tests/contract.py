"""What OpenAPI says about a call: whether there is one, and whether its query and its body are as declared."""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from jsonschema import Draft202012Validator

from config.api import api

V1 = "/api/v1"
ANY_START = "…"
JSON, FORM = "application/json", "multipart/form-data"


@functools.cache
def document() -> dict[str, Any]:
    """The document as it is sent."""
    found: dict[str, Any] = json.loads(json.dumps(api.get_openapi_schema(), default=str))
    return found


def operations(method: str, path: str) -> list[dict[str, Any]]:
    """Return the calls of a path with values or `{names}` in it; one that begins with `…` may be below any other.

    A call whose path has the same words comes before those that have a parameter there.
    """
    found = []
    for template, methods in document()["paths"].items():
        if method.lower() in methods and (words := _same(template.removeprefix(V1), path.removeprefix(V1))) >= 0:
            found.append((words, methods[method.lower()]))
    most = max((words for words, _ in found), default=0)
    return [operation for words, operation in found if words == most]


def why_wrong(method: str, address: str, *, body: Any = None, form: Mapping[str, Any] | None = None) -> str:
    """Return what OpenAPI has against a call, or ''. `address` has the path, and the query after a `?`."""
    path, _, query = address.partition("?")
    found = operations(method, path)
    if not found:
        return f"there is no call {method} {path}"
    reasons = [_why_refused(operation, query, body, form) for operation in found]
    return "" if "" in reasons else reasons[0]


def example(operation: Mapping[str, Any]) -> tuple[int, Any]:
    """Return the status of the answer when all goes well, and its example."""
    status = min(one for one in operation["responses"] if one.startswith("2"))
    shown: list[dict[str, Any]] = list(operation["responses"][status].get("content", {}).values())
    return int(status), shown[0].get("example") if shown else None


def _same(template: str, path: str) -> int:
    """Count the words that a template and a path share; -1 if it is not the path of the template."""
    parts, given = template.strip("/").split("/"), path.strip("/").split("/")
    if given[0] == ANY_START:
        given = given[1:]
        parts = parts[-len(given) or len(parts) :]
        if given and parts[0] != given[0] and not given[0].startswith("{"):
            return -1
    if len(parts) != len(given) or not all(map(_fits, parts, given)):
        return -1
    return sum(part == one for part, one in zip(parts, given, strict=True))


def _fits(part: str, given: str) -> bool:
    return part == unquote(given) or (part.startswith("{") and bool(given))


def _why_refused(operation: dict[str, Any], query: str, body: Any, form: Mapping[str, Any] | None) -> str:
    declared = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
    given = {name for name, _ in parse_qsl(query, keep_blank_values=True)}
    if unknown := sorted(given - declared):
        return f"{operation['operationId']} has no parameter {unknown[0]}"
    content = operation.get("requestBody", {}).get("content", {})
    for kind, value in ((JSON, body), (FORM, form)):
        if value is None:
            continue
        if kind not in content:
            return f"{operation['operationId']} takes no {kind}"
        schema = content[kind]["schema"]
        if wrong := next(_unknown_keys(schema, value), ""):
            return f"{operation['operationId']} knows no {wrong}"
        if kind == JSON:
            whole = {**schema, "components": document()["components"]}
            for error in Draft202012Validator(whole).iter_errors(value):
                return f"{operation['operationId']}: {error.json_path}: {error.message}"
    return ""


def _unknown_keys(schema: Mapping[str, Any], value: Any, at: str = "") -> Iterator[str]:
    """Yield the keys of objects that no schema names, also where others would be accepted."""
    kinds = list(_flat(schema))
    if isinstance(value, list):
        for one in value:
            for kind in kinds:
                if "items" in kind:
                    yield from _unknown_keys(kind["items"], one, at)
    if not isinstance(value, Mapping):
        return
    is_open = any(
        kind.get("additionalProperties") or (kind.get("type") == "object" and "properties" not in kind)
        for kind in kinds
    )
    known: dict[str, Any] = {}
    for kind in kinds:
        known |= kind.get("properties", {})
    for name, one in value.items():
        if name in known:
            yield from _unknown_keys(known[name], one, f"{at}{name}.")
        elif not is_open:
            yield f"{at}{name}"


def _flat(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and its alternatives, with references followed."""
    if reference := schema.get("$ref"):
        schema = document()["components"]["schemas"][re.sub(r".*/", "", reference)]
    yield schema
    for word in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(word, ()):
            yield from _flat(one)
