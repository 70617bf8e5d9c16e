"""The OpenAPI document: adds the parts that all calls share, in the form that client generators expect."""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from inspect import unwrap
from itertools import chain
from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema, get_schema
from ninja.operation import Operation

from curation.web.http.responses import WITHOUT_ETAG
from curation.web.schemas import PROBLEM

Json = dict[str, Any]
REF = "#/components/schemas/"
CONDITIONAL = {"get", "head"}
REFUSALS = {
    "400": "The request cannot be understood",
    "401": "No valid token or session",
    "403": "The token or the role may not do this",
    "404": "There is nothing at this address, or nothing that the caller may see",
    "409": "The state does not allow it; `code` says why",
    "422": "A value is refused; `errors` names each",
    "429": "Too many requests; `Retry-After` says when to try again",
    "4XX": "Refused, with a reason for people and a `code` for programs",
    "503": "Something that the call needs is unavailable",
}
STALE = "`If-Match` names another version; `current` has the one that is there"
KEY = "The same key and body return the first answer again, for a day; with another body it is 409."
MATCH = "The version that was seen, as `ETag` gave it. Another one is 412, and nothing is changed."
NONE_MATCH = "An `ETag` of this address. If the answer is the same, it is 304 without a body."
PATHS = {"slug": "demo", "name": "example", "username": "ada", "rule": "email", "value_sha256": "9f86d081"}


class Api(NinjaAPI):
    """Names its calls after their functions, and completes the document."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__

    def get_openapi_schema(self, **values: Any) -> OpenAPISchema:
        return _document(self, self.get_root_path(values.get("path_params") or {}))

    def versioned(self) -> Iterator[str]:
        """Yield the calls that compare `If-Match` with the version of a row: those whose code names `seen_version`."""
        for _, router in self._routers:
            for operation in chain.from_iterable(path.operations for path in router.path_operations.values()):
                if "seen_version" in unwrap(operation.view_func).__code__.co_names:
                    yield operation.view_func.__name__


@cache
def _document(api: Api, prefix: str) -> OpenAPISchema:
    """Return the document of a process, which nobody changes: making it takes a second."""
    document = get_schema(api=api, path_prefix=prefix)
    _drop_empty_defaults(document)
    schemas: Json = document["components"]["schemas"]
    schemas["Problem"] = PROBLEM
    versioned = set(api.versioned())
    for path, operations in document["paths"].items():
        for method, shared in operations.items():
            # GET and HEAD of a call are one.
            operations[method] = operation = deepcopy(shared)
            operation["responses"] = {str(status): one for status, one in operation["responses"].items()}
            if method == "head":
                operation["operationId"] = f"head_{operation['operationId']}"
            _name_schemas(operation, schemas)
            if method == "patch":
                _drop_defaults_of_body(operation, schemas)
            _add_headers(method, operation, versioned)
            _add_refusals(operation)
            _add_examples(operation, schemas, path)
    return document


def _drop_empty_defaults(value: object) -> None:
    """Remove each `default: []`. Generated clients would send it, and an empty list is not a missing one."""
    if isinstance(value, dict):
        if value.get("default") == []:
            del value["default"]
        for one in value.values():
            _drop_empty_defaults(one)
    elif isinstance(value, list):
        for one in value:
            _drop_empty_defaults(one)


def _drop_defaults_of_body(operation: Json, schemas: Json) -> None:
    """A PATCH changes the fields that are sent. Generated clients would send each default, and change it too."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content["schema"]
        named = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        for field in named.get("properties", {}).values():
            field.pop("default", None)


def _name_schemas(operation: Json, schemas: Json) -> None:
    """Move the schemas that bodies bring, and those in their `$defs`, to the document's one list of schemas."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content["schema"]
        for name, inner in schema.pop("$defs", {}).items():
            _add_schema(schemas, name, inner)
        _point_to_list(schema)
        if "title" in schema and "properties" in schema:
            _add_schema(schemas, schema["title"], schema)
            content["schema"] = {"$ref": REF + schema["title"]}


def _add_schema(schemas: Json, name: str, schema: Json) -> None:
    _point_to_list(schema)
    if schemas.setdefault(name, schema) != schema:
        raise ValueError(f"two schemas of the OpenAPI document have the name {name!r}")


def _point_to_list(value: object) -> None:
    if isinstance(value, dict):
        if str(value.get("$ref", "")).startswith("#/$defs/"):
            value["$ref"] = REF + value["$ref"].rpartition("/")[2]
        for inner in value.values():
            _point_to_list(inner)
    elif isinstance(value, list):
        for inner in value:
            _point_to_list(inner)


def _add_headers(method: str, operation: Json, versioned: set[str]) -> None:
    name = operation["operationId"]
    if method == "post":
        _add_header(operation, "Idempotency-Key", KEY, {"type": "string", "minLength": 1, "maxLength": 255})
    if name in versioned:
        _add_header(operation, "If-Match", MATCH, {"type": "string"})
        operation["responses"]["412"] = _problem(STALE)
    if not operation.pop(WITHOUT_ETAG, False) and method in CONDITIONAL and "200" in operation["responses"]:
        _add_header(operation, "If-None-Match", NONE_MATCH, {"type": "string"})
        operation["responses"]["304"] = {"description": "The answer is the one of `If-None-Match`"}


def _add_header(operation: Json, name: str, description: str, schema: Json) -> None:
    header = {"in": "header", "name": name, "required": False, "description": description, "schema": schema}
    operation.setdefault("parameters", []).append(header)


def _add_refusals(operation: Json) -> None:
    for status, reason in REFUSALS.items():
        operation["responses"].setdefault(status, _problem(reason))


def _problem(reason: str) -> Json:
    return {"description": reason, "content": {"application/problem+json": {"schema": {"$ref": f"{REF}Problem"}}}}


def _add_examples(operation: Json, schemas: Json, path: str) -> None:
    for parameter in operation.get("parameters", ()):
        # A list of examples is for schemas; a parameter has one, or a table of them.
        if given := parameter.pop("examples", ()):
            parameter["example"] = given[0]
        elif parameter["in"] == "path" and not parameter["schema"].get("examples"):
            parameter["example"] = PATHS.get(parameter["name"], "17")
    for content in operation.get("requestBody", {}).get("content", {}).values():
        content.setdefault("example", _example_of_body(content["schema"], schemas))
    for content in _answers(operation):
        if "schema" in content:
            content.setdefault("example", example_of(content["schema"], schemas))


def _answers(operation: Json) -> Iterator[Json]:
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            yield from response.get("content", {}).values()


def _example_of_body(schema: Json, schemas: Json) -> Any:
    """Return an example of the fields that are required or have one: not all fields go together in a request."""
    named = [part["$ref"].removeprefix(REF) for part in (schema, *schema.get("anyOf", ())) if "$ref" in part]
    body = schemas[named[0]] if named else schema
    if "properties" not in body or body.get("examples"):
        return example_of(body, schemas)
    fields, required = body["properties"].items(), body.get("required", ())
    return {name: example_of(one, schemas) for name, one in fields if "examples" in one or name in required}


def example_of(schema: Json, schemas: Json, inside: tuple[str, ...] = ()) -> Any:
    """Return the schema's own example, else one assembled from its parts.

    `inside` are the named schemas around this one: a list in a recursive schema ends empty.
    """
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REF)
        return example_of(schemas[name], schemas, (*inside, name))
    for given in ("examples", "enum"):
        if schema.get(given):
            return schema[given][0]
    for given in ("example", "const", "default"):
        if given in schema:
            return schema[given]
    if parts := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        free = [part for part in parts if part.get("$ref", "").removeprefix(REF) not in inside]
        return example_of((free or parts)[0], schemas, inside) if free else None
    return _example_of_type(schema, schemas, inside)


def _example_of_type(schema: Json, schemas: Json, inside: tuple[str, ...]) -> Any:
    kind = schema.get("type")
    if kind == "object":
        return {name: example_of(inner, schemas, inside) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        items = schema.get("items", {})
        again = items.get("$ref", "").removeprefix(REF) in inside
        return [] if again or not items else [example_of(items, schemas, inside)]
    if kind == "string":
        formats = {"date-time": "2026-01-31T09:30:00Z", "date": "2026-01-31", "binary": "rows"}
        return formats.get(schema.get("format", ""), "text".ljust(schema.get("minLength", 0), "-"))
    numbers: Json = {"integer": max(1, schema.get("minimum", 1)), "number": schema.get("minimum", 0.5)}
    return numbers.get(kind, True) if kind in {"integer", "number", "boolean"} else None
