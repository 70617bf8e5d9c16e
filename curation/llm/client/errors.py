"""How a model call can fail: one flat type per answer to the question "what now"."""


class CallError(Exception):
    """A call without an answer; `kind` goes into the record and the reports."""

    kind = "error"


class RateLimited(CallError):
    """HTTP 429: the endpoint is asked again later, and this does not count as an attempt."""

    kind = "rate_limited"

    def __init__(self, detail: str, retry_after: float | None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Transient(CallError):
    """408, 409, 5xx, a lost connection, a body that is no JSON: worth another try."""

    kind = "transient"

    def __init__(self, detail: str, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class TimedOut(Transient):
    kind = "timeout"


class Refused(CallError):
    """The endpoint said no in a way that another try will not change (bad key, unknown model, too long)."""

    kind = "refused"


class Misconfigured(CallError):
    """The call cannot be made: a missing key variable, a private address, an unknown scripted model."""

    kind = "misconfigured"
