"""The result of reading one document."""

from collections.abc import Sequence
from dataclasses import dataclass

from curation.imports.layouts.account import Account
from curation.imports.layouts.session import AgentSession


@dataclass(frozen=True, slots=True)
class DocumentReading:
    """The sessions of a document and the account of its fields. `unreadable` has a reason for each part of it that is
    not readable. `without_trajectory` counts runs that have none, such as trials of Harbor's agent `oracle`."""

    sessions: Sequence[AgentSession]
    account: Account
    unreadable: Sequence[str] = ()
    without_trajectory: int = 0
