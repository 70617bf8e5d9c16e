"""A sample's trajectory as review shows it. While the review is blind it reveals nothing of the machine's verdict."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from curation.samples.models import Sample
from curation.trajectories.models import Outcome, ReplayState, Trajectory
from curation.trajectories.session.siblings import Siblings, compare_siblings
from curation.trajectories.session.steps import Session
from curation.web.problems import NotFound
from curation.web.text.markup import visible, with_signs, without_colours
from curation.web.text.transcript import Excerpt, Position, Recorded, Step


@dataclass(frozen=True, slots=True)
class Checked:
    """The machine's verdict, hidden until the decision. `model` is the endpoint that acted."""

    model: str
    outcome: Outcome
    keep: bool
    passed: bool | None
    output: SafeString
    replay: ReplayState


@dataclass(frozen=True, slots=True)
class Rollout:
    """The session with computed facts and its siblings. `pk` is the trajectory's.

    `session` ends where the compared sibling diverges; the comparison has the rest of both.
    """

    pk: int
    transcript: Session
    scenario_id: int | None
    scenario: str
    title: str
    axes: list[tuple[str, str]]
    terminal: str
    panic_reason: str
    commands: int
    repeated: int
    longest_repeat: int
    session: Excerpt[Step]
    siblings: Siblings
    checked: Checked | None

    @property
    def filter(self) -> str:
        """The filter with which a new rollout takes this scenario."""
        return json.dumps({"id": str(self.scenario_id)})


def rollout_of(sample: Sample, *, blind: bool, other_id: str = "", at: Position | None = None) -> Rollout | None:
    """Three queries; None if the sample has no trajectory. `other_id` is the sibling to compare with, `at` what of the
    session must be shown."""
    row = Trajectory.objects.with_text().filter(sample=sample).first()
    if row is None:
        return None
    siblings = compare_siblings(row, other_id=other_id, blind=blind, at=at)
    session = Session(row.text.turns, row.pk, at=at)
    until = siblings.comparison.shared if siblings.comparison else None
    return Rollout(
        pk=row.pk,
        transcript=session,
        scenario_id=row.scenario_id,
        scenario=row.scenario_name,
        title=with_signs(row.scenario.title if row.scenario else row.environment),
        axes=[(with_signs(axis), with_signs(str(value))) for axis, value in row.labels.items()],
        terminal=row.terminal,
        panic_reason=row.panic_reason,
        commands=row.commands,
        repeated=round(row.repeated_share * 100),
        longest_repeat=row.longest_repeat,
        session=session.opening(until=until),
        siblings=siblings,
        checked=None if blind else _checked(row),
    )


def turns_of(sample: Sample) -> Sequence[Recorded]:
    """The turns of a sample's trajectory; none if it has no trajectory."""
    row = Trajectory.objects.select_related("text").only("text__turns").filter(sample=sample).first()
    return row.text.turns if row else []


def sibling_of(sample: Sample, *, blind: bool, other_id: str, at: Position | None) -> Rollout:
    found = rollout_of(sample, blind=blind, other_id=other_id, at=at)
    if found is None:
        raise NotFound(f"Sample {sample.pk} has no trajectory.")
    return found


def _checked(row: Trajectory) -> Checked:
    return Checked(
        model=row.model,
        outcome=Outcome(row.outcome),
        keep=row.keep,
        passed=row.checker_passed,
        output=visible(without_colours(row.text.checker_output).rstrip()),
        replay=ReplayState(row.replay),
    )
