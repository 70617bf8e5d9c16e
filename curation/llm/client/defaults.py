"""Defaults that a model does not take: o-series models and others refuse any temperature but their own.

Neither LiteLLM's list nor a name behind a gateway tells which, so what counts is the refusal, LiteLLM's or the
server's, that names the parameter. A parameter that the endpoint sets is never left out: its refusal says so.
"""

import re
from collections.abc import Mapping

from curation.llm.client.completion import EndpointTarget
from curation.llm.client.errors import Refused
from curation.llm.client.tokens import ASKED

# Parameters that change how an answer is drawn, or what is said of its tokens. Limits, tools and forms of the answer
# are never left out.
DRAWING = frozenset(
    {
        *("temperature", "top_p", "top_k", "min_p", "seed", "stop"),
        *("frequency_penalty", "presence_penalty", "repetition_penalty"),
        *ASKED,
    }
)
_refused: dict[tuple[str, str], set[str]] = {}


def without_refused(target: EndpointTarget, params: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters without the defaults that the model has refused."""
    refused = _refused.get((target.model, target.api_base), set()) - target.params.keys()
    return {name: value for name, value in params.items() if name not in refused}


def note_refused(target: EndpointTarget, params: Mapping[str, object], error: Refused) -> bool:
    """Return whether a refusal names a default, which is left out from now on. Raises `Refused` with the reason in
    words if it names a parameter of the endpoint."""
    if type(error) is not Refused or error.status not in (400, 422):
        return False
    sent = DRAWING & {**target.params, **params}.keys()
    named = {name for name in sent if re.search(rf"(?<![\w-]){name}(?![\w-])", str(error))}
    if defaults := named - target.params.keys():
        _refused.setdefault((target.model, target.api_base), set()).update(defaults)
        return True
    if named:
        listed = ", ".join(f"`{name}`" for name in sorted(named))
        reason = f"{error} (the parameters of the endpoint set {listed}: change or remove what the model refuses)"
        raise Refused(reason, error.status) from error
    return False
