"""The repositories an export may be pushed to: those of the operator's tokens in `HUB_TOKENS`, as far as the project's
settings allow them."""

import os
import re

from django.conf import settings

from curation.llm.endpoints.keys import rules_of
from curation.projects.models import Project
from curation.web.outbound.addresses import HUB, refuse_private
from curation.web.problems import Invalid

# As the hub names users, organisations and repositories.
REPOSITORY = re.compile(r"(?P<namespace>[A-Za-z0-9][A-Za-z0-9._-]{0,95})/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


class TokenMissing(Exception):
    """The worker has no token under the allowed name."""


def check_push(project: Project, repository: str) -> None:
    """Raise `Invalid` unless this project may push to the repository."""
    if reason := why_refused(project, repository):
        raise Invalid.at("params.repository", reason)
    refuse_private(project.settings.hub.endpoint, HUB)


def why_refused(project: Project, repository: str) -> str:
    """Say why this project may not push to the repository, or return ''. Checked at launch and before each push."""
    hub = project.settings.hub
    found = REPOSITORY.fullmatch(repository)
    if found is None or ".." in repository or "--" in repository or repository.endswith(".git"):
        return f"{repository[:200]!r} is no repository: write namespace/name, as on the hub."
    if not hub.token:
        return "This project does not push exports. An admin allows it under Settings → Rules (hub.token)."
    if found["namespace"] not in hub.namespaces:
        allowed = ", ".join(hub.namespaces) or "none"
        return f"This project may push to the namespaces {allowed} (Settings → Rules, hub.namespaces)."
    if hub.endpoint.startswith("http://") and not HUB.allowed:
        return "A token is only sent over https. The hub's address under Settings → Rules begins with http://."
    rules = rules_of(hub.token, settings.HUB_TOKENS)
    if not any(rule.permits_project(project.slug) and rule.permits_host("", hub.endpoint) for rule in rules):
        return (
            f"The operator of this server has not allowed the token in {hub.token} for this project and this hub "
            "(HUB_TOKENS)."
        )
    return ""


def read_token(variable: str) -> str:
    """Return the token in an environment variable of this worker."""
    token = os.environ.get(variable, "").strip()
    if not token:
        raise TokenMissing(f"The environment variable {variable} is not set on this worker.")
    return token
