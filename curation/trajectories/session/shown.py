"""The views of a trajectory: a conversation of its steps, and for agents in a shell the terminal."""

from collections.abc import Sequence

from curation.imports.layouts.session import Json
from curation.projects.access import Access
from curation.trajectories.models import Trajectory
from curation.trajectories.recorded import RecordedTexts
from curation.trajectories.session.conversation import CONVERSATION, StepConversation, subagents_of
from curation.trajectories.session.states import labels_hidden, states_of
from curation.trajectories.session.steps import TERMINAL, TerminalTranscript
from curation.trajectories.shell import commands_of, is_shell, positions_of
from curation.web.problems import NotFound
from curation.web.text.transcript import TurnPosition

Shown = TerminalTranscript | StepConversation


def views_of(row: Trajectory) -> Sequence[str]:
    """Return the views that a trajectory has, the usual one first. Needs its text."""
    if not row.is_imported:
        return (TERMINAL, CONVERSATION)
    return (CONVERSATION, TERMINAL) if is_shell(row.text.steps) else (CONVERSATION,)


def view_named(row: Trajectory, name: str) -> str:
    usual = CONVERSATION if row.is_imported else TERMINAL
    return name if name not in ("", usual) and name in views_of(row) else usual


def shown_as(access: Access, row: Trajectory, view: str, *, at: TurnPosition | None = None) -> Shown:
    """Return a trajectory in one of its views. Needs its text and sample.

    The steps of a terminal are numbered from 0, the orientation; those of an imported run as its source counts them.
    """
    recorded = row.text.recorded
    states = states_of(recorded, labels_hidden(access, row))
    if view == TERMINAL:
        positions = positions_of(recorded.steps)
        return TerminalTranscript(
            row.text.turns, row.pk, at=at, positions=positions, states=states, commands=_commands(recorded)
        )
    return StepConversation(recorded, row.pk, first=int(row.is_imported), states=states, at=at)


def subagent_of(row: Trajectory, path: Sequence[str], *, at: TurnPosition | None = None) -> StepConversation:
    """Return the session of a subagent: its place in the trajectory, then that of its own subagent, and so on."""
    document: Json = row.text.document
    for place in path:
        inner = subagents_of(document)
        if not place.isdecimal() or int(place) >= len(inner):
            raise NotFound(f"Trajectory {row.pk} has no such subagent.")
        document = inner[int(place)]
    return StepConversation(RecordedTexts(document["steps"], document, {}), "-".join((str(row.pk), *path)), at=at)


def _commands(recorded: RecordedTexts) -> dict[int, str]:
    """Return the text of each step that only runs commands, by its position."""
    found = ((position, commands_of(step)) for position, step in enumerate(recorded.steps))
    return {position: "\n".join(commands) for position, commands in found if commands}
