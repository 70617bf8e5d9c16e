"""The views of a trajectory: a conversation of its steps, and for agents in a shell the terminal. The states in a
session's steps, such as passwords, may be hidden.
"""

from collections.abc import Collection, Sequence

from curation.imports.layouts.session import Json
from curation.projects.access import Access
from curation.samples.models import SampleStatus
from curation.trajectories.models import Marking, ProcessLabel, Trajectory
from curation.trajectories.recorded import RecordedTexts
from curation.trajectories.session.conversation import CONVERSATION, StepConversation, subagents_of
from curation.trajectories.session.steps import TERMINAL, TerminalTranscript
from curation.trajectories.shell import commands_of, is_shell, positions_of
from curation.web.problems import NotFound
from curation.web.text.transcript import StepState, TurnPosition


def labels_hidden(access: Access, row: Trajectory) -> frozenset[int]:
    """Return the positions of steps whose labels are other people's, while the review of the sample is blind."""
    sample = row.sample
    if sample is None or sample.status != SampleStatus.PENDING or not access.project.settings.review.blind:
        return frozenset()
    last: dict[str, int] = {}
    markings = Marking.objects.filter(trajectory=row, undone=False).order_by("id")
    for author, before, after in markings.values_list("author_id", "before", "after"):
        changed = (at for at, mark in after.items() if mark.get("label") != before.get(at, {}).get("label"))
        last |= dict.fromkeys(changed, author)
    return frozenset(int(position) for position, author in last.items() if author != access.user.pk)


def states_of(recorded: RecordedTexts, hidden: Collection[int] = ()) -> list[StepState]:
    """Return one state for each step, without the labels of the `hidden` positions."""
    learned, end = set(recorded.learned), len(recorded.kept)
    states: list[StepState] = []
    for position, step in enumerate(recorded.steps):
        mark = recorded.marks.get(str(position), {})
        label = ProcessLabel(mark["label"]) if mark.get("label") and position not in hidden else None
        is_agent, is_cut = step["source"] == "agent", position >= end
        is_end = position + 1 == end < len(recorded.steps)
        is_context = is_agent and position not in learned
        why_not = _why_not(step, is_cut=is_cut) if is_context else ""
        name, tone = (label.label, label.tone) if label else ("", "")
        states.append(StepState(position + 1, not is_context, why_not, name, tone, is_agent, is_end, is_cut))
    return states


def _why_not(step: dict[str, object], *, is_cut: bool) -> str:
    """Return why a model does not learn from a step of the agent."""
    if is_cut:
        return "after the end"
    if step.get("is_copied_context"):
        return "copied context"
    return "not by a model" if step.get("llm_call_count") == 0 else "not learned"


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
