"""Which environment variables are keys of models, and where each key may go: the operator's rules in `MODEL_KEYS`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
DEMO_KEY = "WINNOW_DEMO_API_KEY"
# Variables of the server itself: no rule makes one of them a key.
NOT_KEYS = re.compile(
    r"SECRET_KEY|DATABASE_URL|CELERY_.*|DJANGO_.*|WINNOW_.*|REDIS_.*|PG.*|POSTGRES.*|MYSQL.*|AWS_.*|FILES_URL"
    r"|MODEL_KEYS|.*PASSWORD.*|.*PASSWD.*|PATH|HOME|USER|SHELL|PWD|HOSTNAME|LANG|BIND|PORT|HTTPS?_PROXY|ALL_PROXY|NO_PROXY"
)
# LiteLLM calls these with credentials of the worker's machine, with any key or none.
OWN_CREDENTIALS = frozenset(
    {
        *("bedrock", "sagemaker", "sagemaker_chat", "vertex_ai", "vertex_ai_beta", "watsonx", "watsonx_text"),
        *("oci", "sap", "gigachat", "github_copilot", "chatgpt"),
    }
)
HOST = re.compile(
    r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*(:\d{1,5})?|\[[0-9a-f:.]+\](:\d{1,5})?|provider:[\w.:@-]+", re.ASCII
)
SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
SHORTEST_PREFIX = 4


@dataclass(frozen=True, slots=True)
class KeyRule:
    """A variable, or a prefix with `*`. Empty `hosts` and `projects` mean all.

    A host is `api.example.org`, `*.example.org` or `host:port`, or `provider:openai` for an endpoint of that LiteLLM
    provider without a base URL.
    """

    variable: str
    hosts: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()

    @property
    def is_prefix(self) -> bool:
        return self.variable.endswith("*")

    def names(self, variable: str) -> bool:
        return variable.startswith(self.variable[:-1]) if self.is_prefix else variable == self.variable

    def permits_host(self, model: str, api_base: str) -> bool:
        return not self.hosts or any(_is_host(host, model, api_base) for host in self.hosts)

    def permits_project(self, slug: str) -> bool:
        return not self.projects or slug in self.projects


def read_rules(text: str) -> tuple[KeyRule, ...]:
    """Read `NAME=host|host@project|project; PREFIX_*; …`. Raises `ValueError` with the mistake in a rule."""
    return tuple(_read_rule(entry.strip()) for entry in re.split(r"[;\n]", text) if entry.strip())


def why_refused(*, variable: str, model: str, api_base: str, project: str) -> str:
    """Say why an endpoint must not have the key in a variable, or return ''. Checked on save and on each call."""
    if not variable:
        return ""
    rules = rules_of(variable, settings.MODEL_KEYS)
    if not rules:
        return (
            f"{variable} is not a variable that this server sends as a key. The operator of the server allows names "
            f"with the setting MODEL_KEYS ({', '.join(dict.fromkeys(rule.variable for rule in settings.MODEL_KEYS))})."
        )
    of_project = [rule for rule in rules if rule.permits_project(project)]
    if not of_project:
        return f"The operator of this server has not allowed the key in {variable} for this project (MODEL_KEYS)."
    if not any(rule.permits_host(model, api_base) for rule in of_project):
        hosts = ", ".join(dict.fromkeys(host for rule in of_project for host in rule.hosts))
        where = urlsplit(api_base).hostname or "the provider's own address"
        return (
            f"The key in {variable} goes to {hosts} only, not to {where}. "
            "The operator of this server can change MODEL_KEYS."
        )
    return ""


def why_no_base_url(model: str) -> str:
    """Say why an endpoint of this model must not have a base URL, or return ''."""
    provider = model.partition("/")[0]
    if provider in OWN_CREDENTIALS:
        return f"LiteLLM calls {provider} with credentials of the worker's machine, so the endpoint has no base URL"
    return ""


def rules_of(variable: str, rules: Sequence[KeyRule]) -> Sequence[KeyRule]:
    """The rules that name the variable, else those with the longest prefix of it."""
    found = [rule for rule in rules if rule.names(variable)]
    if exact := [rule for rule in found if not rule.is_prefix]:
        return exact
    if NOT_KEYS.fullmatch(variable):
        return []
    longest = max((len(rule.variable) for rule in found), default=0)
    return [rule for rule in found if len(rule.variable) == longest]


def _read_rule(entry: str) -> KeyRule:
    before, has_projects, projects = entry.partition("@")
    variable, has_hosts, hosts = before.partition("=")
    name = variable.strip()
    if not VARIABLE.fullmatch(name.removesuffix("*")):
        raise ValueError(f"{name[:40]!r} is not the name of a variable; write NAME=host|host@project, or PREFIX_*")
    if name.endswith("*") and len(name) <= SHORTEST_PREFIX:
        raise ValueError(f"the prefix {name!r} is too short")
    if not name.endswith("*") and NOT_KEYS.fullmatch(name):
        raise ValueError(f"{name} belongs to the server and is never sent to a model")
    return KeyRule(
        name,
        _parts(name, hosts.lower(), HOST, "a host") if has_hosts else (),
        _parts(name, projects, SLUG, "a project's slug") if has_projects else (),
    )


def _parts(name: str, text: str, form: re.Pattern[str], what: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split("|"))
    for part in parts:
        if not form.fullmatch(part):
            raise ValueError(f"{part!r} of {name} is not {what}")
    return parts


def _is_host(allowed: str, model: str, api_base: str) -> bool:
    if allowed.startswith("provider:"):
        return not api_base and (model.partition("/")[0]).lower() == allowed.removeprefix("provider:")
    try:
        given, rule = urlsplit(api_base), urlsplit(f"//{allowed}")
        port = given.port or (443 if given.scheme == "https" else 80)
    except ValueError:
        return False
    host, wanted = (given.hostname or "").rstrip("."), rule.hostname or ""
    if rule.port and rule.port != port:
        return False
    return host.endswith(wanted[1:]) if wanted.startswith("*.") else host == wanted
