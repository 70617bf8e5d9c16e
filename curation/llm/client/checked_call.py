"""The checks before each call: the host behind a proxy, and the key's variable."""

import asyncio
import os

from curation.llm.client.completion import Target
from curation.llm.client.errors import Misconfigured
from curation.llm.endpoints.keys import why_no_base_url, why_refused
from curation.web.outbound.addresses import MODELS, refuse_private
from curation.web.problems import Problem


async def check_host(api_base: str) -> None:
    """Behind a proxy the proxy connects, so the host is checked here. The look-up blocks: it runs in a thread."""
    try:
        await asyncio.to_thread(refuse_private, api_base, MODELS)
    except Problem as problem:
        raise Misconfigured(problem.detail) from problem


def key_of(target: Target) -> str:
    """The key in the endpoint's variable; a placeholder if the endpoint has none.

    Settings may have changed since the endpoint was saved, so both rules are checked with each call.
    """
    if target.api_base and (reason := why_no_base_url(target.model)):
        raise Misconfigured(reason)
    if reason := why_refused(
        variable=target.api_key_env, model=target.model, api_base=target.api_base, project=target.project
    ):
        raise Misconfigured(reason)
    if not target.api_key_env:
        return "none"  # with an empty key LiteLLM would search the environment for one
    key = os.environ.get(target.api_key_env, "")
    if not key:
        raise Misconfigured(f"the environment variable {target.api_key_env} of this endpoint is not set")
    return key
