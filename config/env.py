"""Read settings from the environment. A wrong value stops the process with the name of the variable."""

import ipaddress
import os
import re
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from curation.llm.endpoints.keys import DEMO_KEY, KeyRule, read_rules
from sandbox.harbor.providers import SandboxProvider, read_providers

FLAGS = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}
# The values of `curation.projects.models.Role`, which cannot be imported before the settings.
ROLES = ("viewer", "reviewer", "curator", "admin")
HOST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.IGNORECASE)


def text(name: str, default: str) -> str:
    """The variable's value, or the default if it is unset or empty."""
    return os.environ.get(name, "") or default


def choice(name: str, default: str, allowed: Collection[str]) -> str:
    value = text(name, default)
    if value not in allowed:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be one of {', '.join(sorted(allowed))}")
    return value


def flag(name: str, *, default: bool) -> bool:
    value = text(name, "1" if default else "0").lower()
    if value in FLAGS:
        return FLAGS[value]
    raise ImproperlyConfigured(f"{name} is {value!r}; it must be 1 or 0")


def private_hosts(name: str, *, default: bool) -> bool | tuple[str, ...]:
    """Whether private hosts may be called: all, none, or those in a comma list of names, addresses and networks."""
    value = text(name, "1" if default else "0")
    if value.lower() in FLAGS:
        return FLAGS[value.lower()]
    entries = tuple(names(name))
    for entry in entries:
        try:
            if ipaddress.ip_network(entry).prefixlen == 0:
                raise ImproperlyConfigured(f"{name} names {entry!r}; write 1 to allow all private hosts")
        except ValueError as error:
            # Two letters at least: no mistyped flag becomes a host.
            if not HOST.fullmatch(entry) or len(entry) == 1 or re.fullmatch(r"[\d./:]+", entry):
                raise ImproperlyConfigured(
                    f"{name} names {entry!r} ({error}); it must be 1, 0, or a comma list of host names, "
                    "addresses and networks such as 10.0.0.0/8"
                ) from None
    return entries


def model_keys(name: str, default: str) -> tuple[KeyRule, ...]:
    """The rules for keys of models, and one for the key of `make demo`, which goes where the demo's model is."""
    try:
        rules = read_rules(text(name, default))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}") from None
    base, model = os.environ.get("WINNOW_DEMO_API_BASE", ""), os.environ.get("WINNOW_DEMO_MODEL", "")
    host = urlsplit(base).netloc.rpartition("@")[2] if base else f"provider:{model.partition('/')[0]}"
    return (*rules, KeyRule(DEMO_KEY, (host.lower(),), ("demo",)))


def key_rules(name: str) -> tuple[KeyRule, ...]:
    """Rules in the form of `MODEL_KEYS`. There are none by default: no variable is sent anywhere."""
    try:
        return read_rules(text(name, ""))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}") from None


def harbor_providers(name: str, default: str) -> tuple[SandboxProvider, ...]:
    try:
        return read_providers(text(name, default))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}") from None


def creators(name: str, default: str) -> tuple[str, ...]:
    """A comma list of `everyone`, `staff` and `group:NAME`."""
    entries = tuple(names(name, default))
    for entry in entries:
        if entry not in {"everyone", "staff"} and not re.fullmatch(r"group:.+", entry):
            raise ImproperlyConfigured(f"{name} names {entry!r}; it must be everyone, staff or group:NAME")
    return entries


def number(name: str, default: int, *, low: int, high: int) -> int:
    value = text(name, str(default))
    try:
        read = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be a whole number") from None
    if not low <= read <= high:
        raise ImproperlyConfigured(f"{name} is {read}; it must be between {low} and {high}")
    return read


def names(name: str, default: str = "") -> list[str]:
    """The entries of a comma list, without empty ones."""
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def folder(name: str, default: Path) -> Path:
    """An absolute, writable folder; if it is missing, it is created for its owner only."""
    path = Path(text(name, str(default))).expanduser().resolve()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"{name} is {str(path)!r}, which cannot be created: {error}") from None
    if not os.access(path, os.W_OK):
        raise ImproperlyConfigured(f"{name} is {str(path)!r}, which cannot be written")
    return path


def allowed_sources(name: str) -> list[str]:
    """The entries of a comma list of existing absolute folders, resolved, and `s3://bucket/prefix/` addresses."""
    found = []
    for entry in names(name):
        if entry.startswith("s3://"):
            if not entry.endswith("/"):
                raise ImproperlyConfigured(f"{name} names {entry!r}; an s3:// prefix must end in a slash")
            found.append(entry)
            continue
        path = Path(entry).expanduser()
        if not path.is_absolute() or not path.is_dir():
            raise ImproperlyConfigured(f"{name} names {entry!r}, which is not an absolute folder that exists")
        found.append(str(path.resolve()))
    return found


def watched_folder(name: str) -> Path | None:
    """An existing absolute folder, resolved; None if the variable is unset or empty."""
    value = text(name, "")
    path = Path(value).expanduser()
    if value and not (path.is_absolute() and path.is_dir()):
        raise ImproperlyConfigured(f"{name} is {value!r}, which is not an absolute folder that exists")
    return path.resolve() if value else None


def url(name: str, default: str, *, schemes: Collection[str]) -> str:
    value = text(name, default)
    if urlsplit(value).scheme not in schemes:
        raise ImproperlyConfigured(f"{name} must be a URL that starts with one of {', '.join(sorted(schemes))}")
    return value


def issuer(name: str) -> str:
    """An OpenID Connect issuer, or nothing. Only one on this machine may be without TLS."""
    value = text(name, "")
    parts = urlsplit(value)
    local = parts.scheme == "http" and parts.hostname in {"localhost", "127.0.0.1", "::1"}
    if value and not (parts.hostname and (parts.scheme == "https" or local)):
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be an https:// URL")
    if value:
        require_extra("oidc", "authlib", for_=f"{name} names an OpenID Connect provider")
    return value


def group_roles(name: str) -> dict[str, dict[str, frozenset[str]]]:
    """`GROUP=ROLE@project|project`, separated by `;`: {project: {role: groups that give it}}."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for rule in text(name, "").split(";"):
        if not rule.strip():
            continue
        group, _, given = rule.strip().rpartition("=")
        role, _, projects = given.partition("@")
        slugs = [slug.strip() for slug in projects.split("|") if slug.strip()]
        if not group or role not in ROLES or not slugs:
            raise ImproperlyConfigured(
                f"{name} has the rule {rule.strip()!r}; write GROUP=ROLE@project|project, with {', '.join(ROLES)}"
            )
        for slug in slugs:
            roles = found.setdefault(slug, {})
            roles[role] = roles.get(role, frozenset()) | {group}
    return found


def require_extra(extra: str, *modules: str, for_: str) -> None:
    """Stop if a module of an extra is not installed; `for_` names the feature that needs it."""
    if any(find_spec(module) is None for module in modules):
        raise ImproperlyConfigured(f"{for_}, which needs: pip install 'winnow-curation[{extra}]'")


def database_url(name: str, default: str) -> str:
    value = url(name, default, schemes={"sqlite", "postgres", "postgresql"})
    if not value.startswith("sqlite:"):
        require_extra("postgres", "psycopg", for_=f"{name} names a PostgreSQL server")
    return value


def storage(name: str, value: str) -> tuple[str, dict[str, Any]]:
    """Return `MEDIA_ROOT` and the default storage for `file:///folder` or `s3://bucket/prefix`."""
    scheme, _, rest = value.partition("://")
    if scheme == "file":
        if not rest.startswith("/"):
            raise ImproperlyConfigured(f"{name} must name an absolute folder: file:///folder")
        return rest, {"BACKEND": "curation.web.files.CleanFileSystemStorage"}
    bucket, _, prefix = rest.partition("/")
    if not bucket:
        raise ImproperlyConfigured(f"{name} must name a bucket: s3://bucket or s3://bucket/prefix")
    require_extra("s3", "storages", "boto3", for_=f"{name} names a bucket")
    options = {"bucket_name": bucket, "location": prefix.strip("/"), "default_acl": None}
    return "", {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}
