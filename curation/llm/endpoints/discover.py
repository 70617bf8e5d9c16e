"""List the models that a server offers."""

import os

import httpx
import orjson

from curation.llm.endpoints.change import NOT_KEYS, VARIABLE, check_base_url
from curation.web.outbound.addresses import MODELS
from curation.web.outbound.transport import CheckedTransport
from curation.web.problems import FieldError, Invalid, Unavailable

TIMEOUT_SECONDS = 5.0
MAX_BYTES = 2 * 1024 * 1024


def served_models(*, api_base: str, api_key_env: str = "") -> tuple[str, ...]:
    """The ids that `GET {api_base}/models` lists, without embedding models.

    Raises `Invalid` for the address or variable, `Unavailable` if the server does not list its models. Redirects are
    not followed: they could lead to an address that was not checked.
    """
    check_base_url(api_base)
    headers = {"Accept": "application/json"}
    if api_key_env:
        headers["Authorization"] = f"Bearer {_key(api_key_env)}"
    body = b""
    try:
        with (
            httpx.Client(timeout=TIMEOUT_SECONDS, transport=CheckedTransport(MODELS)) as client,
            client.stream("GET", f"{api_base.rstrip('/')}/models", headers=headers) as response,
        ):
            if response.status_code != 200:
                raise Unavailable(f"The server answered {response.status_code} to GET /models.", code="model_server")
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise Unavailable("The server's list is longer than 2 MiB.", code="model_server")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise Unavailable(f"The server does not answer: {error}", code="model_server") from None
    return tuple(sorted(_ids(body)))


def _key(name: str) -> str:
    if not VARIABLE.fullmatch(name) or NOT_KEYS.fullmatch(name):
        raise Invalid("This is not a valid name of a key variable.", errors=[FieldError("api_key_env", "not valid")])
    key = os.environ.get(name, "")
    if not key:
        reason = f"The environment variable {name} is not set for the web server."
        raise Invalid(reason, errors=[FieldError("api_key_env", reason)])
    return key


def _ids(body: bytes) -> set[str]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Unavailable("The server's list of models is not JSON.", code="model_server") from None
    rows = document.get("data") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise Unavailable("The server's response contains no list of models.", code="model_server")
    ids = {row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)}
    return {name for name in ids if "embed" not in name.lower() and len(name) <= 180}
