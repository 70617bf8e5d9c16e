"""The values that a session accepts, and the division of its limits: the same in every backend."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from sandbox.errors import SetupRefused
from sandbox.protocol import HOME, MEBIBYTE, ROOTS, USER, Fixture, SessionLimits, Setup

UID = 1000
HOSTNAME = "host"
# Shares of `limits.disk`, in 64ths: each writable folder is its own tmpfs. /run has the motd and the banner, to which
# /etc/motd and /etc/issue point.
SHARES = {HOME: 32, "/tmp": 16, "/srv": 4, "/opt": 4, "/usr/local": 4, "/var": 3, "/run": 1}  # noqa: S108
MODES = {"/tmp": 0o1777}  # noqa: S108
MOTD, BANNER = "/run/motd", "/run/issue"
# Folders in a fresh tmpfs that programs and scenarios rely on.
FOLDERS = {
    "/usr/local/bin": 0o755,
    "/usr/local/lib": 0o755,
    "/usr/local/share": 0o755,
    "/var/lib": 0o755,
    "/var/log": 0o755,
    "/var/mail": 0o755,
    "/var/spool": 0o755,
    "/var/tmp": 0o1777,  # noqa: S108
}
ENVIRONMENT = {
    "HOME": HOME,
    "LANG": "C.UTF-8",
    "LOGNAME": USER,
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    "SHELL": "/bin/sh",
    "USER": USER,
}
NOWHERE = "/nonexistent"
# The checker's environment, beside TERMINAL, PANIC_REASON, PWD and TMPDIR. Its programs find no settings, modules or
# plugins where an agent can write: PATH is read-only, HOME is not set, and these variables replace other defaults.
CHECK_ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
    **dict.fromkeys(("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR"), NOWHERE),
    **{"TERMINFO": "/usr/share/terminfo", "AWKPATH": "/usr/share/awk"},
    **dict.fromkeys(("PYTHONSAFEPATH", "PYTHONNOUSERSITE", "PYTHONDONTWRITEBYTECODE"), "1"),
    **dict.fromkeys(("PYTHONPYCACHEPREFIX", "GEM_HOME", "GEM_PATH"), NOWHERE),
    **{"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_ATTR_NOSYSTEM": "1"},
    # These overrule a repository's own settings, which would start programs.
    **{"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "false"},
    **{"GIT_CONFIG_KEY_1": "core.hooksPath", "GIT_CONFIG_VALUE_1": "/dev/null"},
}
MAX_COMMAND_BYTES = 120 * 1024  # one argument of exec() is 128 KiB at most
MAX_ENVIRONMENT_BYTES = 64 * 1024
MAX_FIXTURES_BYTES = 16 * MEBIBYTE
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def tmpfs_sizes(limits: SessionLimits) -> dict[str, int]:
    """Bytes of each writable folder; their sum is `limits.disk`."""
    return {path: limits.disk * share // 64 for path, share in SHARES.items()}


def tmpfs_options(limits: SessionLimits) -> dict[str, str]:
    """The mount options of each writable folder. An empty file takes kernel memory that no size limits."""
    return {
        path: f"size={size},nr_inodes={max(256, size // 4096)},mode={MODES.get(path, 0o755):o}"
        for path, size in tmpfs_sizes(limits).items()
    }


def memory_bound(limits: SessionLimits) -> int:
    """Memory of the whole sandbox in bytes. Files on a tmpfs count, so a full disk must fit."""
    return limits.memory + limits.disk


def check_setup(setup: Setup) -> None:
    """Raise `SetupRefused` for the first input that a session does not accept."""
    seen: set[str] = set()
    for fixture in setup.fixtures:
        _check_fixture(fixture)
        if fixture.path in seen:
            raise SetupRefused(f"Fixture {fixture.path} appears twice.")
        seen.add(fixture.path)
    if sum(len(fixture.content) for fixture in setup.fixtures) > MAX_FIXTURES_BYTES:
        raise SetupRefused(f"The fixtures are larger than {MAX_FIXTURES_BYTES} bytes together.")
    check_environment(setup.env)
    for name, text in (("motd", setup.motd), ("banner", setup.banner)):
        if len(text) > 64 * 1024:
            raise SetupRefused(f"The {name} is longer than 65536 characters.")
    encoded("motd", setup.motd)
    encoded("banner", setup.banner)


def check_environment(env: Mapping[str, str]) -> None:
    for name, value in env.items():
        if not _NAME.match(name):
            raise SetupRefused(f"{name!r} is not a valid name for an environment variable.")
        checked_text(f"variable {name}", value)
    if sum(len(name) + len(value.encode()) for name, value in env.items()) > MAX_ENVIRONMENT_BYTES:
        raise SetupRefused(f"The environment is larger than {MAX_ENVIRONMENT_BYTES} bytes.")


def checked_text(what: str, text: str, most: int = MAX_COMMAND_BYTES) -> bytes:
    """Encode a command, checker or value; refuse text that cannot be passed to a process."""
    data = encoded(what, text)
    if b"\0" in data:
        raise SetupRefused(f"The {what} contains a NUL byte.")
    if len(data) > most:
        raise SetupRefused(f"The {what} is {len(data)} bytes long; the limit is {most}.")
    return data


def encoded(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise SetupRefused(f"The {what} is not valid text: it contains half of a surrogate pair.") from None


def _check_fixture(fixture: Fixture) -> None:
    path = fixture.path
    checked_text("path of a fixture", path, most=4000)
    normal = path == str(PurePosixPath(path)) and ".." not in PurePosixPath(path).parts and not path.startswith("//")
    if not normal or not any(path.startswith(f"{root}/") for root in ROOTS):
        raise SetupRefused(f"Fixture {path!r}: the path must be plain, absolute and inside one of {', '.join(ROOTS)}.")
    if not 0 <= fixture.mode <= 0o777:
        raise SetupRefused(f"Fixture {path}: mode {fixture.mode:o} is not between 0 and 777.")
