"""The parameters that an endpoint sends with every request: known keys, checked values, no secrets."""

import re
from collections.abc import Mapping
from typing import Literal

import orjson
from pydantic import Field, ValidationError

from curation.projects.settings.patch import Json
from curation.web.problems import FieldError, Invalid, fault_of
from curation.web.schemas import StrictModel
from curation.web.text.storable import refuse_unstorable

MAX_BYTES = 20_000
# The keys of known providers, and a bearer header.
SECRET_VALUE = re.compile(
    r"\b(sk|pk|rk|gsk|xai|hf|r8|nvapi|pplx|ghp|glpat|AKIA|AIza|wn)[-_][A-Za-z0-9_-]{12,}|\bAKIA[A-Z0-9]{12,}|\bAIza[\w-]{20,}"
    r"|\bBearer\s+\S{8,}|\beyJ[\w-]{10,}\.[\w-]{10,}"
)
SECRET_KEY = re.compile(r"api[-_]?key|authorization|secret|password|passwd|access[-_]?token|headers?$", re.IGNORECASE)


class Params(StrictModel):
    """The parameters that Winnow passes to LiteLLM. `extra_body` is sent to the server unchanged.

    `takes_json_schema` is not sent: it says whether the model takes the JSON schema that a run wants its answer in.
    Without it LiteLLM's list of models decides, which knows no self-hosted ones. Nor is `takes_tools`: without tools,
    a prompt that has some is refused, because an answer to it would look like one that chose no tool. With `stream`
    the answer arrives as a stream. With `max_completion_tokens` no request has `max_tokens`, which newer models refuse
    beside it. With `takes_max_tokens` false each request's own limit is sent as `max_completion_tokens`.

    `key_style` is the header in which the server wants its key when its models are listed: `Authorization: Bearer`,
    `api-key` (azure) or `x-api-key` (anthropic). Without it the host decides. `api_version` is Azure's.
    """

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
    stream: bool | None = None
    takes_json_schema: bool | None = None
    takes_tools: bool | None = None
    takes_max_tokens: bool | None = None
    key_style: Literal["bearer", "azure", "anthropic"] | None = None
    api_version: str | None = Field(None, pattern=r"^[\w.-]{1,40}$")
    extra_body: dict[str, object] | None = None


def check_params(params: Mapping[str, Json]) -> None:
    """Raise `Invalid` with each parameter that is unknown, of the wrong type, or looks like a secret.

    The message never repeats a secret.
    """
    refuse_unstorable(dict(params), path="params")
    if len(orjson.dumps(params)) > MAX_BYTES:
        raise Invalid.fields([FieldError("params", f"at most {MAX_BYTES:,} bytes")])
    secrets = [FieldError(path, "contains what looks like a secret") for path in _secrets(dict(params), "params")]
    if secrets:
        raise Invalid(
            "Parameters are stored and shown, so they must not contain keys or headers. "
            "Name the environment variable with the key in `api_key_env`. What you sent was not stored.",
            code="secret",
            errors=secrets,
        )
    try:
        Params.model_validate(params)
    except ValidationError as error:
        known = ", ".join(Params.model_fields)
        raise Invalid.fields(
            [
                FieldError(
                    ".".join(["params", *map(str, e["loc"])]),
                    f"unknown; known parameters are {known}" if e["type"] == "extra_forbidden" else fault_of(e),
                )
                for e in error.errors(include_input=False, include_url=False)
            ]
        ) from None


def looks_secret(text: str) -> bool:
    return SECRET_VALUE.search(text) is not None


def _secrets(value: Json, path: str) -> list[str]:
    if isinstance(value, dict):
        found = [f"{path}.{key}" for key in value if SECRET_KEY.search(key) or looks_secret(key)]
        # A key that is itself a secret must not be in the path either.
        found = [path if looks_secret(inner) else inner for inner in found]
        return found or [at for key, inner in value.items() for at in _secrets(inner, f"{path}.{key}")]
    if isinstance(value, list):
        return [at for number, inner in enumerate(value) for at in _secrets(inner, f"{path}.{number}")]
    return [path] if isinstance(value, str) and looks_secret(value) else []
