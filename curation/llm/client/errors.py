"""How a model call can fail: one type for each way to proceed."""


class CallError(Exception):
    """A call without an answer; `kind` is shown in the record and in reports."""

    kind = "error"


class RateLimited(CallError):
    """HTTP 429: the call is sent again later; this does not count as an attempt."""

    kind = "rate_limited"

    def __init__(self, detail: str, retry_after: float | None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Transient(CallError):
    """408, 409, 5xx, a lost connection, a body that is not JSON: worth a retry."""

    kind = "transient"

    def __init__(self, detail: str, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class TimedOut(Transient):
    kind = "timeout"


class Unreachable(Transient):
    """The request never left for the endpoint: no connection, name, route or TLS. It costs nothing and is no try."""

    kind = "unreachable"


class Refused(CallError):
    """The endpoint refused for a reason that a retry will not change (bad key, unknown model, too long)."""

    kind = "refused"

    def __init__(self, detail: str, status: int | None = None) -> None:
        super().__init__(detail)
        self.status = status


class OutOfQuota(Refused):
    """The endpoint's account has no credit left: only a person changes that."""

    kind = "out_of_quota"


class HalfAnswer(Refused):
    """The endpoint answered with half an answer, and a retry will not change that. Its cost is unknown."""


class Misconfigured(CallError):
    """The call cannot be made: a missing key variable, a private address, an unknown scripted model."""

    kind = "misconfigured"
