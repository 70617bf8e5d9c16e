"""The kind of a project's data, and the words for it. It selects the shipped instructions and rubric."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from curation.projects.settings.fields import SettingsSection, words

TURNS, TRAJECTORIES, CHAT, PREFERENCES = "turns", "trajectories", "chat", "preferences"
KINDS = {TURNS: "Agent turns", TRAJECTORIES: "Whole trajectories", CHAT: "Chat", PREFERENCES: "Preferences"}


@dataclass(frozen=True, slots=True)
class Words:
    """The words for the two answers of a sample (`candidate`, `opponent`), and for the two together (`pair`)."""

    candidate: str
    opponent: str
    pair: str


_WORDS = {
    CHAT: Words("Answer B", "Answer A", "Comparison"),
    PREFERENCES: Words("Chosen", "Rejected", "Preference"),
    TRAJECTORIES: Words("After", "Before", "Comparison"),
}
OF_TURNS = Words("Challenger", "King", "Duel")


class Data(SettingsSection):
    """The kind of the samples. It selects the shipped instructions to models, the rubric, and the words on pages."""

    kind: Literal["", "turns", "trajectories", "chat", "preferences"] = Field(
        "",
        title="Kind of data",
        description="Empty: recognised at the next import whose rows tell it; until then as agent turns.",
        json_schema_extra=words("Not known yet", *KINDS.values()),
    )

    @property
    def words(self) -> Words:
        return _WORDS.get(self.kind, OF_TURNS)

    @property
    def is_agent(self) -> bool:
        """Whether an answer is a turn with a thought and one command."""
        return self.kind in ("", TURNS)

    @property
    def variants(self) -> tuple[str, ...]:
        """The endings of shipped texts for this kind, the most special first."""
        return {PREFERENCES: (PREFERENCES, CHAT)}.get(self.kind, (self.kind,) if self.kind else ())
