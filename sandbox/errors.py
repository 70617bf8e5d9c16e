"""What can go wrong around a sandbox. A command that fails is none of these: it is a result like any other."""


class SandboxError(Exception):
    """Base of this package's errors."""


class SandboxUnavailable(SandboxError):
    """No backend can work on this machine; the message says what is missing and how to get it."""


class SandboxFailed(SandboxError):
    """The sandbox itself broke (would not start, died, went silent): infra. Retried in a new one, never a label."""


class SetupRefused(SandboxError):
    """What was to be put into the session is not allowed there (a fixture outside the roots, a NUL in a command)."""


class BuildFailed(SandboxError):
    """The image or folder that sessions stand on could not be made; the message says why."""


class EnvironmentFull(SandboxFailed):
    """The server has as many episodes open as it takes; there will be room later."""


class UnknownAction(SandboxError):
    """The server's action has no field that a command obviously goes into; a person has to name it."""
