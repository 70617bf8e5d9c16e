"""Writes `winnow_client/schemas.py` from the OpenAPI document: the responses that the client reads.

`make client-schemas` runs it. The modules of the client name a response as `s.RunOut`; these and the objects inside
them are written. A field that may be null is None where a response lacks it, and a fixed set of texts is `str`, so that
the client reads the responses of a site of another version too.
"""

import json
import keyword
import os
import re
from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import django

CLIENT = Path(__file__).resolve().parent.parent / "winnow_client"
TARGET = CLIENT / "schemas.py"
HEAD = '''"""The responses that the client reads. `make client-schemas` writes this module from the OpenAPI document."""

from datetime import datetime
from typing import Any

from winnow_client.responses import Response
'''
NAMED = re.compile(r"\bs\.([A-Z]\w+)")
REFERENCE = "#/components/schemas/"
EMPTY = {"list[": "[]", "dict[": "{}", "str": '""'}
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
Schema = Mapping[str, Any]


def source(document: Schema) -> str:
    """Return the text of the module."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    modules = [path.read_text(encoding="utf-8") for path in sorted(CLIENT.glob("*.py")) if path != TARGET]
    waiting, inside = sorted({name for text in modules for name in NAMED.findall(text)}), dict[str, list[str]]()
    while waiting:
        name = waiting.pop()
        inside[name] = sorted({one for one in _references(schemas[name]) if schemas[one].get("properties")})
        waiting += [one for one in inside[name] if one not in inside]
    # A class comes after those of its fields.
    ordered = TopologicalSorter(dict(sorted(inside.items()))).static_order()
    return "\n\n".join([HEAD, *(_model(name, schemas) for name in ordered)])


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref":
                yield value.removeprefix(REFERENCE)
            elif not (key == "examples" and isinstance(value, list)):
                yield from _references(value)
    elif isinstance(schema, list):
        for one in schema:
            yield from _references(one)


def _model(name: str, schemas: Mapping[str, Schema]) -> str:
    lines = [f"class {name}(Response):"]
    for field, schema in schemas[name]["properties"].items():
        if keyword.iskeyword(field):
            raise ValueError(f"{name}.{field} is a word of Python, which no field of the client can be called.")
        kind = _type(schema, schemas)
        default = " = None" if kind.endswith(" | None") else ""
        # A list leaves out the texts and lists that its rows have only on request.
        if not default and field not in schemas[name].get("required", ()) and not schema.get("default"):
            default = next((f" = {empty}" for start, empty in EMPTY.items() if kind.startswith(start)), "")
        lines.append(f"    {field}: {kind}{default}")
    return "\n".join(lines) + "\n"


def _type(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    if reference := schema.get("$ref"):
        name = reference.removeprefix(REFERENCE)
        return name if schemas[name].get("properties") else _type(schemas[name], schemas)
    if either := schema.get("anyOf") or schema.get("oneOf"):
        kinds = list(dict.fromkeys(_type(one, schemas) for one in either))
        if "Any" in kinds:
            return "Any"
        named = " | ".join(kinds)
        return named.replace(" | None", "") + " | None" if "None" in kinds else named
    kind = schema.get("type", "string" if "enum" in schema or "const" in schema else "")
    if schema.get("format") == "date-time":
        return "datetime"
    if kind == "array":
        return f"list[{_type(schema.get('items', {}), schemas)}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {_type(values, schemas) if isinstance(values, Mapping) else 'Any'}]"
    return PLAIN.get(kind, "Any")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    # After the settings.
    from config.api import api

    TARGET.write_text(source(json.loads(json.dumps(api.get_openapi_schema(), default=str))), encoding="utf-8")
