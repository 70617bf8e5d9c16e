"""Which environment servers may be called: the same hosts as model servers."""

from curation.llm.endpoints.addresses import refuse_private
from curation.web.problems import FieldError, Invalid, Problem

SCHEMES = ("ws://", "wss://")


def check_address(address: str) -> None:
    """Raises `Invalid` for what is no address of a server, or one that this Winnow must not call."""
    if not address.startswith(SCHEMES):
        reason = "An environment is `sandbox`, or the ws:// or wss:// address of an OpenEnv server."
        raise Invalid(reason, errors=[FieldError("params.environment", reason)])
    try:
        refuse_private(address.replace("ws", "http", 1))
    except Problem as problem:
        raise Invalid(
            problem.detail, code=problem.code, errors=[FieldError("params.environment", problem.detail)]
        ) from None
