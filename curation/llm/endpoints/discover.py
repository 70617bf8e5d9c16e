"""List the models that a server offers. The web process asks without a key: keys are for workers."""

import asyncio
import os
from urllib.parse import urlsplit

import httpx

from curation.llm.endpoints.check import check_base_url
from curation.llm.endpoints.keys import why_refused
from curation.web.outbound.addresses import MODELS
from curation.web.outbound.transport import AsyncCheckedTransport
from curation.web.problems import Invalid, Unavailable
from curation.web.text.storable import parse_inner

TIMEOUT_SECONDS = 5.0
MAX_BYTES = 2 * 1024 * 1024
# Where the list is if the base URL has no path, as LiteLLM has it for these.
ROOTS = {"azure": "/openai/v1", "anthropic": "/v1", "bearer": ""}


def served_models(*, api_base: str, key: str = "", style: str = "", api_version: str = "") -> tuple[str, ...]:
    """The ids that `GET {api_base}/models` lists, without embedding models.

    `style` is the endpoint's `key_style`; without it the host decides. Redirects are not followed: they could lead to
    an address that was not checked. Raises `Invalid` for the address, `Unavailable` if the server does not list its
    models.
    """
    check_base_url(api_base)
    return tuple(sorted(_ids(asyncio.run(_list_models(api_base, key, style or _style_of(api_base), api_version)))))


async def _list_models(api_base: str, key: str, style: str, api_version: str) -> bytes:
    """The body of the server's list. The deadline is for everything, so a server that drips holds no process."""
    headers = {"Accept": "application/json", **(_key_headers(style, key) if key else {})}
    url = api_base.rstrip("/") + ("" if urlsplit(api_base).path.strip("/") else ROOTS[style]) + "/models"
    query = {"api-version": api_version} if api_version else {}
    body = bytearray()
    try:
        async with (
            asyncio.timeout(TIMEOUT_SECONDS),
            httpx.AsyncClient(timeout=TIMEOUT_SECONDS, transport=AsyncCheckedTransport(MODELS)) as client,
            client.stream("GET", url, headers=headers, params=query) as response,
        ):
            if response.status_code in {401, 403} and not key:
                raise Unavailable(
                    "The server lists its models only with a key: name the variable with the key.", code="model_server"
                )
            if response.status_code != 200:
                raise Unavailable(f"The server answered {response.status_code} to GET /models.", code="model_server")
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise Unavailable("The server's list is longer than 2 MiB.", code="model_server")
    except TimeoutError:
        reason = f"The server did not list its models within {TIMEOUT_SECONDS:g} s."
        raise Unavailable(reason, code="model_server") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(f"The server does not answer: {error}", code="model_server") from None
    return bytes(body)


def provider_of(api_base: str) -> str:
    """The provider whose key header and paths the server has, as LiteLLM names it; openai for any other."""
    host = (urlsplit(api_base).hostname or "").rstrip(".").lower()
    if host.endswith((".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")):
        return "azure"
    return "anthropic" if host == "api.anthropic.com" else "openai"


def check_key(*, variable: str, api_base: str, project: str) -> None:
    """Raise `Invalid` if the key in the variable must not be sent there. `project` is the endpoint's, by its slug."""
    if reason := why_refused(variable=variable, model="", api_base=api_base, project=project):
        raise Invalid.at("api_key_env", reason)


def served_with_key(
    *, api_base: str, variable: str, project: str, style: str = "", api_version: str = ""
) -> tuple[str, ...]:
    """As `served_models`, with the key in a variable of this process, which is a worker's."""
    check_key(variable=variable, api_base=api_base, project=project)
    if not (key := os.environ.get(variable, "")):
        raise Unavailable(f"The workers that call models do not have the variable {variable}.", code="model_server")
    return served_models(api_base=api_base, key=key, style=style, api_version=api_version)


def _style_of(api_base: str) -> str:
    provider = provider_of(api_base)
    return provider if provider in ROOTS else "bearer"


def _key_headers(style: str, key: str) -> dict[str, str]:
    match style:
        case "azure":
            return {"api-key": key}
        case "anthropic":
            return {"x-api-key": key, "anthropic-version": "2023-06-01"}
        case _:
            return {"Authorization": f"Bearer {key}"}


def _ids(body: bytes) -> set[str]:
    try:
        document = parse_inner(body)
    except ValueError:
        raise Unavailable("The server's list of models is not JSON.", code="model_server") from None
    rows = document.get("data") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise Unavailable("The server's response contains no list of models.", code="model_server")
    ids = {row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)}
    return {name for name in ids if "embed" not in name.lower() and len(name) <= 180}
