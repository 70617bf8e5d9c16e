"""The rules for the values of a model endpoint."""

import re
from decimal import Decimal

from django.urls.converters import StringConverter

from curation.llm.endpoints.keys import VARIABLE, why_no_base_url, why_refused
from curation.llm.endpoints.params import check_params, looks_secret
from curation.llm.endpoints.schemas import EndpointIn
from curation.llm.scripted import SCRIPTED_MODELS
from curation.projects.models import Project
from curation.web.outbound.addresses import MODELS, refuse_private, url_parts
from curation.web.problems import FieldError, Invalid
from curation.web.refusals import all_checks

# Pages and calls of an endpoint: `…/models/{name}/usage`.
BELOW = ("apply-test", "delete", "edit", "line-up", "served", "test", "usage")
MODEL = re.compile(r"[A-Za-z0-9][\w.:@+-]*(/[\w.:@+-]+)*", re.ASCII)
WORDS_OF_NAME = (
    f"1 to 60 letters, digits and . _ : - /, first a letter or digit; no part after a slash is {', '.join(BELOW)}"
)
MAX_PRICE = Decimal(1_000_000)


class EndpointName(StringConverter):
    """A name in an address, which may have slashes, as in `Qwen/Qwen3-8B`. No later part of it is a word of `BELOW`."""

    regex = rf"[A-Za-z0-9][\w.:-]*(?:/(?!(?:{'|'.join(BELOW)})(?:/|$))[A-Za-z0-9][\w.:-]*)*"


def check_values(values: EndpointIn, project: Project) -> None:
    """Raise `Invalid` with every wrong field. Secrets are checked first and never repeated."""
    _refuse_secrets(values)
    errors = [FieldError(path, reason) for path, reason in _wrong_fields(values, project) if reason]
    with all_checks() as check:
        with check():
            if errors:
                raise Invalid.fields(errors)
        with check():
            check_params(values.params)
        with check():
            if values.api_base and not any(error.path == "api_base" for error in errors):
                check_base_url(values.api_base)


def check_base_url(api_base: str) -> None:
    """Raise `Invalid` if this is no base URL, or one of a host that Winnow must not call."""
    parts = url_parts(api_base, MODELS)
    if parts.query or parts.fragment:
        raise Invalid.at("api_base", "The base URL must not contain a query or a fragment.")
    refuse_private(api_base, MODELS)


def _refuse_secrets(values: EndpointIn) -> None:
    if _is_pasted_key(values.api_key_env):
        raise Invalid(
            "This looks like a key. Give the *name* of the environment variable that contains it, such as "
            "MODEL_KEY_OPENAI, and set that variable on the workers. What you sent was not stored. "
            "If it was a real key, consider replacing it: it was sent to this server.",
            code="secret",
            errors=[FieldError("api_key_env", "a name such as MODEL_KEY_OPENAI, not the key itself")],
        )
    for path in ("name", "model", "api_base", "family"):
        if looks_secret(getattr(values, path)):
            raise Invalid(
                f"`{path}` contains what looks like a key. Keys are never stored; name a variable in `api_key_env`.",
                code="secret",
                errors=[FieldError(path, "contains what looks like a key")],
            )


def _is_pasted_key(given: str) -> bool:
    """Keys are long with lower-case letters, or one long run of capitals and digits; names of variables are not."""
    if VARIABLE.fullmatch(given):
        return looks_secret(given) or bool(re.fullmatch(r"(?=.*\d)[A-Z0-9]{20,}", given))
    return looks_secret(given) or len(given) >= 20 or given.startswith(("sk-", "sk_", "Bearer ", "hf_", "gsk_"))


def _wrong_fields(values: EndpointIn, project: Project) -> list[tuple[str, str]]:
    model = ""
    if not MODEL.fullmatch(values.model) or len(values.model) > 200:
        model = "a LiteLLM model string such as openai/gpt-4o-mini, or scripted/… for an offline model"
    elif values.model.startswith("scripted/") and values.model.removeprefix("scripted/") not in SCRIPTED_MODELS:
        model = f"unknown scripted model; there are {', '.join(f'scripted/{name}' for name in SCRIPTED_MODELS)}"
    elif values.api_base and "/" not in values.model:
        model = f"with a base URL, put the provider before the model, such as openai/{values.model}"
    key = ""
    if values.api_key_env and not VARIABLE.fullmatch(values.api_key_env):
        key = "the name of an environment variable: capital letters, digits and _"
    elif not model:
        key = why_refused(
            variable=values.api_key_env, model=values.model, api_base=values.api_base, project=project.slug
        )
    base = "at most 300 characters" if len(values.api_base) > 300 else ""
    if values.api_base and not base and not model:
        base = why_no_base_url(values.model)
    prices = [
        (path, "a number from 0 on with at most 6 decimals, in US dollars per 1,000,000 tokens")
        for path in ("price_in", "price_out")
        if not _is_price(getattr(values, path))
    ]
    limits = [
        (path, f"a whole number from 1 to {high:,}")
        for path, high in (("max_concurrency", 10_000), ("rpm", 10_000_000), ("tpm", 2_000_000_000))
        if (given := getattr(values, path)) is not None and not 1 <= given <= high
    ]
    return [
        ("name", "" if _is_name(values.name) else WORDS_OF_NAME),
        ("model", model),
        ("api_base", base),
        ("api_key_env", key),
        ("family", "at most 60 characters" if len(values.family) > 60 else ""),
        *prices,
        *limits,
    ]


def _is_name(given: str) -> bool:
    return len(given) <= 60 and re.fullmatch(EndpointName.regex, given, re.ASCII) is not None


def _is_price(given: Decimal | None) -> bool:
    return given is None or (given.is_finite() and 0 <= given <= MAX_PRICE and given == round(given, 6))
