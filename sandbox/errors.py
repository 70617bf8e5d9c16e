"""Errors of a sandbox. A command that fails is not an error: it is a result."""

from collections.abc import Mapping


class SandboxError(Exception):
    """Base of this package's errors."""


class SandboxUnavailable(SandboxError):
    """No backend can work on this machine; the message names the missing parts and how to get them."""


class SandboxFailed(SandboxError):
    """The sandbox itself broke (did not start, died, stopped responding). Tried again in a new one, never a label."""


class SandboxExhausted(SandboxFailed):
    """The sandbox ended or does not respond, and the kernel had killed processes in it for lack of memory: the agent's
    doing, once it is open."""


class SetupRefused(SandboxError):
    """The session does not accept this input (a fixture outside the roots, a NUL in a command)."""


class BuildFailed(SandboxError):
    """The image or root folder of sessions could not be built; the message says why."""


class EnvironmentFull(SandboxFailed):
    """The server has as many open episodes as it allows; try again later."""


class EnvironmentDown(SandboxFailed):
    """The server of an environment does not answer at all; its episodes wait."""


class ServerError(SandboxFailed):
    """The server replied with an error. `code` is the server's name for it."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class NoReply(SandboxFailed):
    """The server did not reply in time."""


class HungUp(SandboxFailed):
    """The server ended the session without a reply."""


class ReplayDiffers(SandboxError):
    """The state cannot be rebuilt: a command shows something else than when it was recorded."""


class UnknownAction(SandboxError):
    """The agent's actions are none that the server takes; the message says which field is the cause."""


class OtherTask(SandboxError):
    """The server says that it plays another task than the one asked for. The episode is an example of nothing.

    `asked` and `played` have the ids, the text and the tiers that are known of each.
    """

    def __init__(self, asked: Mapping[str, object], played: Mapping[str, object], reason: str) -> None:
        super().__init__(reason)
        self.asked, self.played = asked, played
