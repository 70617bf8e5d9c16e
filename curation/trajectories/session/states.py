"""Marks of the source and of people on the steps of a session: what is learned from, labels, and where it ends."""

from collections.abc import Collection

from curation.projects.access import Access
from curation.samples.models import SampleStatus
from curation.trajectories.models import Marking, ProcessLabel, Trajectory
from curation.trajectories.recorded import RecordedTexts
from curation.web.text.transcript import StepState


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
