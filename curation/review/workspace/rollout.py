"""A sample's trajectory as review shows it. While blind nothing of it tells how the machine judged it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString

from curation.samples.models import Sample
from curation.trajectories.models import Outcome, ReplayState, Trajectory
from curation.trajectories.session.siblings import Beside, beside
from curation.trajectories.session.steps import Part, opening, places_of
from curation.web.problems import NotFound
from curation.web.text.markup import visible, with_signs, without_colours


@dataclass(frozen=True, slots=True)
class Checked:
    """The machine's judgement, hidden until the decision. `model` tells who acted."""

    model: str
    outcome: Outcome
    keep: bool
    passed: bool | None
    output: SafeString
    replay: ReplayState


@dataclass(frozen=True, slots=True)
class Rollout:
    """What was shown and typed, the facts computed of it, a sibling beside it. `pk` is the trajectory's.

    `parts` end where the sibling goes another way; from there on the comparison has both.
    """

    pk: int
    scenario_id: int
    scenario: str
    title: str
    axes: list[tuple[str, str]]
    terminal: str
    panic_reason: str
    commands: int
    repeated: int
    longest_repeat: int
    steps: int
    size: int
    parts: list[Part]
    beside: Beside
    checked: Checked | None

    @property
    def filter(self) -> str:
        """The scenario as a filter of a new rollout."""
        return json.dumps({"id": str(self.scenario_id)})


def rollout_of(sample: Sample, *, blind: bool, other_id: str = "") -> Rollout | None:
    """Three queries; None where the sample has no trajectory. `other_id` names the sibling to stand beside it."""
    row = Trajectory.objects.with_text().filter(sample=sample).first()
    if row is None:
        return None
    turns = row.text.turns
    found = beside(row, other_id=other_id, blind=blind)
    return Rollout(
        pk=row.pk,
        scenario_id=row.scenario_id,
        scenario=row.scenario_name,
        title=with_signs(row.scenario.title),
        axes=[(with_signs(axis), with_signs(str(value))) for axis, value in row.scenario.axes.items()],
        terminal=row.terminal,
        panic_reason=row.panic_reason,
        commands=row.commands,
        repeated=round(row.repeated_share * 100),
        longest_repeat=row.longest_repeat,
        steps=len(places_of(turns)),
        size=sum(len(str(turn.get("text") or "")) for turn in turns),
        parts=opening(turns, until=found.comparison.shared if found.comparison else None),
        beside=found,
        checked=None if blind else _checked(row),
    )


def turns_of(sample: Sample) -> list[Mapping[str, object]]:
    """The transcript of a sample's trajectory; none where it has no trajectory."""
    row = Trajectory.objects.select_related("text").only("text__turns").filter(sample=sample).first()
    return row.text.turns if row else []


def sibling_of(sample: Sample, *, blind: bool, other_id: str) -> Rollout:
    found = rollout_of(sample, blind=blind, other_id=other_id)
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
