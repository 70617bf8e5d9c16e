"""Create, change and delete model endpoints. Admins only: an endpoint decides where the server's keys are sent."""

import re
from dataclasses import asdict, dataclass, field
from decimal import Decimal

from django.db import IntegrityError, transaction

from curation.llm.endpoints.keys import VARIABLE, why_no_base_url, why_refused
from curation.llm.endpoints.params import check_params, looks_secret
from curation.llm.models import Endpoint, EndpointPace
from curation.llm.scripted import SCRIPTED_MODELS
from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Project, Scope
from curation.projects.settings.patch import Json
from curation.web.outbound.addresses import MODELS, refuse_private, url_parts
from curation.web.problems import Conflict, FieldError, Invalid, NotFound, Stale
from curation.web.refusals import all_checks

NAME = re.compile(r"[A-Za-z0-9][\w.:-]{0,59}", re.ASCII)
MODEL = re.compile(r"[A-Za-z0-9][\w.:@+-]*(/[\w.:@+-]+)*", re.ASCII)
MAX_PRICE = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class EndpointValues:
    """The values of an endpoint that a person sets. Prices are US dollars per 1,000,000 tokens; None is unknown."""

    name: str
    model: str
    api_base: str = ""
    api_key_env: str = ""
    params: dict[str, Json] = field(default_factory=dict)
    max_concurrency: int = 16
    rpm: int | None = None
    tpm: int | None = None
    price_in: Decimal | None = None
    price_out: Decimal | None = None
    family: str = ""


def endpoint_of(project: Project, name: str) -> Endpoint:
    endpoint = Endpoint.objects.of(project).filter(name=name).first()
    if endpoint is None:
        raise NotFound(f"There is no model endpoint {name[:60]!r} in {project.slug}.")
    return endpoint


def values_of(endpoint: Endpoint) -> EndpointValues:
    return EndpointValues(**{key: getattr(endpoint, key) for key in EndpointValues.__dataclass_fields__})


def create_endpoint(*, access: Access, values: EndpointValues) -> Endpoint:
    """Create an endpoint. Raises `Invalid` with each wrong field, `Conflict` for a name that is taken."""
    access.require(Scope.ADMIN)
    check_values(values, access.project)
    try:
        with transaction.atomic():
            endpoint = Endpoint.objects.create(project=access.project, **asdict(values))
            _record(access, "model.create", endpoint, {"model": values.model, "api_base": values.api_base})
    except IntegrityError:
        raise _taken(values.name) from None
    return endpoint


def change_endpoint(*, access: Access, name: str, values: EndpointValues, seen_version: int | None = None) -> Endpoint:
    """Replace the endpoint's values. Raises `Stale` if `seen_version` is not the current version."""
    access.require(Scope.ADMIN)
    check_values(values, access.project)
    try:
        with transaction.atomic():
            endpoint = Endpoint.objects.select_for_update().get(pk=endpoint_of(access.project, name).pk)
            if seen_version is not None and seen_version != endpoint.version:
                raise Stale.version(seen_version, endpoint.version)
            before, after = asdict(values_of(endpoint)), asdict(values)
            changed = [key for key in after if after[key] != before[key]]
            if changed:
                for key in changed:
                    setattr(endpoint, key, after[key])
                endpoint.version += 1
                endpoint.save()
                EndpointPace.objects.end_outage(
                    endpoint.pk
                )  # it may be up at another address; items that wait for it go on
                moved: dict[str, object] = {key: [_shown(before[key]), _shown(after[key])] for key in changed}
                _record(access, "model.update", endpoint, moved)
    except IntegrityError:
        raise _taken(values.name) from None
    return endpoint


def delete_endpoint(*, access: Access, name: str) -> None:
    """Delete an endpoint. Recorded calls keep its name, their figures and their texts."""
    access.require(Scope.ADMIN)
    with transaction.atomic():
        endpoint = endpoint_of(access.project, name)
        _record(access, "model.delete", endpoint, {"model": endpoint.model})
        endpoint.delete()


def check_values(values: EndpointValues, project: Project) -> None:
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
        reason = "The base URL must not contain a query or a fragment."
        raise Invalid(reason, errors=[FieldError("api_base", reason)])
    refuse_private(api_base, MODELS)


def _refuse_secrets(values: EndpointValues) -> None:
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


def _wrong_fields(values: EndpointValues, project: Project) -> list[tuple[str, str]]:
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
        (
            "name",
            "" if NAME.fullmatch(values.name) else "1 to 60 letters, digits and . _ : -, first a letter or digit",
        ),
        ("model", model),
        ("api_base", base),
        ("api_key_env", key),
        ("family", "at most 60 characters" if len(values.family) > 60 else ""),
        *prices,
        *limits,
    ]


def _is_price(given: Decimal | None) -> bool:
    return given is None or (given.is_finite() and 0 <= given <= MAX_PRICE and given == round(given, 6))


def _taken(name: str) -> Conflict:
    reason = f"There is already a model endpoint {name!r}. Choose another name."
    return Conflict(reason, code="name_taken", errors=[FieldError("name", "is taken")])


def _shown(value: object) -> object:
    return str(value) if isinstance(value, Decimal) else value


def _record(access: Access, action: str, endpoint: Endpoint, data: dict[str, object]) -> None:
    record(actor=access.user, project=access.project, action=action, subject=endpoint.name, data=data)
