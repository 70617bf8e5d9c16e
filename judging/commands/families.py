"""Command families as data: what counts as a command, and which words name its service and its operation."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal


@dataclass(frozen=True, slots=True)
class CommandFamily:
    """A family by its rule.

    prefix  a command is a line that starts with `prefix` and a blank (`aws`, `kubectl`, `git`)
    block   a command is the script of the first fenced shell block; `prefix` is empty
    line    a command is typed as it is, as in a recorded session of a shell; `prefix` is empty
    action  no command: an action by the schema of a live environment; `prefix` is empty

    `service` and `operation` are the places, from 0, of the words that name them. An episode runs `fallback` when an
    answer has no command; a command with `hint` in it asks the environment for one.
    """

    name: str
    rule: Literal["prefix", "block", "line", "action"]
    prefix: str = ""
    service: int = 1
    operation: int = 2
    fallback: str = ""
    hint: str = ""

    def __post_init__(self) -> None:
        if (self.rule == "prefix") != bool(self.prefix.strip()):
            raise ValueError(f"family {self.name!r}: a prefix is what the rule `prefix` needs, and only that")

    @property
    def lead(self) -> str:
        """The beginning of a command's line; empty for blocks."""
        return f"{self.prefix.strip()} " if self.prefix else ""


AWS = CommandFamily("aws", "prefix", "aws", fallback="aws help", hint="--task-hint")
BASH_BLOCK = CommandFamily("bash block", "block", service=0, operation=1, fallback="true")
SHELL_SESSION = CommandFamily("shell session", "line", service=0, operation=1, fallback="true")
ENVIRONMENT = CommandFamily("environment", "action")
FAMILIES: Mapping[str, CommandFamily] = MappingProxyType(
    {family.name: family for family in (AWS, BASH_BLOCK, SHELL_SESSION, ENVIRONMENT)}
)


def prefix_family(name: str, prefix: str) -> CommandFamily:
    """A project's own family: its first two words after the program name service and operation."""
    return CommandFamily(name, "prefix", prefix, fallback=f"{prefix.strip()} --help")
