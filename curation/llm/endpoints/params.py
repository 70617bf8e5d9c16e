"""The parameters that an endpoint may send with every request: known keys with checked values, and no secrets."""

import re
from collections.abc import Mapping
from typing import TypeAlias

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from curation.web.problems import FieldError, Invalid
from curation.web.text.storable import holds_nul

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
MAX_BYTES = 20_000
# The shapes of the keys that providers hand out, and of a bearer header.
SECRET_VALUE = re.compile(
    r"\b(sk|pk|rk|gsk|xai|hf|r8|nvapi|pplx|ghp|glpat|AKIA|AIza|wn)[-_][A-Za-z0-9_-]{12,}|\bAKIA[A-Z0-9]{12,}|\bAIza[\w-]{20,}"
    r"|\bBearer\s+\S{8,}|\beyJ[\w-]{10,}\.[\w-]{10,}",
)
SECRET_KEY = re.compile(r"api[-_]?key|authorization|secret|password|passwd|access[-_]?token|headers?$", re.IGNORECASE)


class Params(BaseModel):
    """LiteLLM's parameters that Winnow passes on. `extra_body` goes to the server as it is."""

    model_config = ConfigDict(extra="forbid", strict=False)

    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=1)
    min_p: float | None = Field(None, ge=0, le=1)
    max_tokens: int | None = Field(None, ge=1, le=1_000_000)
    max_completion_tokens: int | None = Field(None, ge=1, le=1_000_000)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    repetition_penalty: float | None = Field(None, gt=0, le=10)
    seed: int | None = Field(None, ge=0)
    stop: str | list[str] | None = None
    timeout: float | None = Field(None, gt=0, le=3600)
    reasoning_effort: str | None = Field(None, max_length=20)
    thinking: dict[str, object] | None = None
    response_format: dict[str, object] | None = None
    extra_body: dict[str, object] | None = None


def check_params(params: Mapping[str, Json]) -> None:
    """Raises `Invalid` naming each parameter that is unknown, of the wrong type, or holds what looks like a secret.

    A refused secret is never repeated in the message.
    """
    if len(orjson.dumps(params)) > MAX_BYTES:
        raise _refusal([FieldError("params", f"at most {MAX_BYTES:,} bytes")])
    if holds_nul(dict(params)):
        raise _refusal([FieldError("params", "holds a NUL character")])
    secrets = [FieldError(path, "holds what looks like a secret") for path in _secrets(dict(params), "params")]
    if secrets:
        raise Invalid(
            "Parameters are stored and shown, so they must not hold keys or headers. "
            "Name the environment variable with the key in `api_key_env`; what you sent was not stored.",
            code="secret",
            errors=secrets,
        )
    try:
        Params.model_validate(params)
    except ValidationError as error:
        known = ", ".join(Params.model_fields)
        raise _refusal(
            [
                FieldError(
                    ".".join(["params", *map(str, e["loc"])]),
                    f"unknown; there are {known}" if e["type"] == "extra_forbidden" else e["msg"],
                )
                for e in error.errors(include_input=False, include_url=False)
            ]
        ) from None


def looks_secret(text: str) -> bool:
    return SECRET_VALUE.search(text) is not None


def _secrets(value: Json, path: str) -> list[str]:
    if isinstance(value, dict):
        found = [f"{path}.{key}" for key in value if SECRET_KEY.search(key) or looks_secret(key)]
        # A key that is itself a secret must not stand in the path either.
        found = [path if looks_secret(place) else place for place in found]
        return found or [place for key, inner in value.items() for place in _secrets(inner, f"{path}.{key}")]
    if isinstance(value, list):
        return [place for number, inner in enumerate(value) for place in _secrets(inner, f"{path}.{number}")]
    return [path] if isinstance(value, str) and looks_secret(value) else []


def _refusal(errors: list[FieldError]) -> Invalid:
    return Invalid.fields(errors)
