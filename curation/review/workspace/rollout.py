"""A sample's trajectory as review shows it. While the review is blind it reveals nothing of the machine's verdict."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from curation.projects.access import Access
from curation.projects.models import Scope
from curation.review.models import Action, Decision
from curation.runs.launch import launch
from curation.runs.models import Run
from curation.samples.blind import hides, record_unblinding
from curation.samples.models import Sample
from curation.trajectories.models import Outcome, ReplayState, Trajectory
from curation.trajectories.session.conversation import Exchange
from curation.trajectories.session.shown import Shown, shown_as, view_named, views_of
from curation.trajectories.session.siblings import Siblings, compare_siblings
from curation.trajectories.session.steps import TERMINAL
from curation.web.problems import NotFound
from curation.web.text.markup import visible, with_signs, without_colours
from curation.web.text.transcript import Excerpt, Recorded, TerminalStep, TurnPosition

MOST_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class RolloutView:
    """The session with computed facts and its siblings. `pk` is the trajectory's.

    `session` ends where the compared sibling diverges; the comparison has the rest of both. `views` are the names and
    addresses of its views. `source` is the file of an imported run, whose `task` has no scenario.
    """

    pk: int
    imported: bool
    source: str
    task: str
    transcript: Shown
    views: list[tuple[str, str]]
    scenario_id: int | None
    scenario: str
    title: str
    axes: list[tuple[str, str]]
    terminal: str
    panic_reason: str
    commands: int
    repeated: int
    longest_repeat: int
    steps: int
    session: Excerpt[TerminalStep] | Excerpt[Exchange]
    siblings: Siblings
    checked: dict[str, object] | None
    attempts: list[dict[str, object]]
    run_again: bool

    @property
    def filter(self) -> str:
        """The filter with which a new rollout takes this scenario."""
        return json.dumps({"id": str(self.scenario_id)})


def rollout_of(
    access: Access, sample: Sample, *, blind: bool, other_id: str = "", view: str = "", at: TurnPosition | None = None
) -> RolloutView | None:
    """None if the sample has no trajectory. `other_id` is the sibling to compare with, `at` the part of the session to
    show."""
    row = Trajectory.objects.with_text().select_related("run").filter(sample=sample).first()
    if row is None:
        return None
    row.sample = sample
    session = shown_as(access, row, view_named(row, view), at=at)
    # A conversation is long and wide: it is read alone until somebody compares it.
    by_default = session.view == TERMINAL and not row.is_imported
    siblings = compare_siblings(access, row, session, other_id=other_id, blind=blind, by_default=by_default)
    until = siblings.comparison.shared if siblings.comparison else None
    sibling = reverse("sample-sibling", args=[access.project.slug, sample.pk])
    return RolloutView(
        pk=row.pk,
        imported=row.is_imported,
        source=with_signs(row.source),
        task=with_signs(row.task),
        transcript=session,
        views=[(name, f"{sibling}?view={name}") for name in sorted(views_of(row))],
        scenario_id=row.scenario_id,
        scenario=row.scenario_name,
        title=with_signs(row.scenario.title if row.scenario else row.environment),
        axes=[(with_signs(axis), with_signs(str(value))) for axis, value in row.labels.items()],
        terminal=row.terminal,
        panic_reason=row.panic_reason,
        commands=row.commands,
        repeated=round(row.repeated_share * 100),
        longest_repeat=row.longest_repeat,
        steps=row.steps,
        session=session.opening(until=until),
        siblings=siblings,
        checked=None if blind else _checked(row),
        attempts=[] if blind else _attempts(access, sample, row),
        run_again=row.scenario_id is not None and row.run is not None and row.run.kind == "rollout",
    )


def _attempts(access: Access, sample: Sample, row: Trajectory) -> list[dict[str, object]]:
    """Return the trajectory and those that were made of its scenario since the first decision that it needs a new
    rollout; none without such ones."""
    asked = Decision.objects.filter(sample=sample, action=Action.REFINE).not_undone().order_by("id").first()
    if asked is None:
        return []
    since = Trajectory.objects.siblings_of(row).filter(created_at__gt=asked.created_at).select_related("sample")
    newer = list(since[:MOST_ATTEMPTS])
    record_unblinding(access, [one.sample_id for one in newer])
    row.sample = sample
    return [
        {
            "row": one,
            "hidden": one is not row and one.sample is not None and hides(access, one.sample),
            "outcome": Outcome(one.outcome),
            "score": one.sample.score if one.sample else None,
        }
        for one in ([row, *newer] if newer else [])
    ]


def roll_out_again(access: Access, sample: Sample) -> Run:
    """Launch one more rollout of a trajectory's scenario, by the same model and with the same limits.

    Raises `Invalid` where the launch does, `NotFound` for a sample that no rollout of a run made.
    """
    access.require(Scope.RUN)
    row = Trajectory.objects.select_related("run").filter(sample=sample, scenario__isnull=False).first()
    if row is None or row.run is None or row.run.kind != "rollout":
        raise NotFound(f"Sample {sample.pk} comes from no rollout whose run is still there. Launch a rollout instead.")
    params = row.run.params | {"model": row.model, "samples": 1, "filter": {"id": str(row.scenario_id)}}
    return launch(project=access.project, kind="rollout", params=params, user=access.user, cloned_from=row.run)


def turns_of(sample: Sample) -> Sequence[Recorded]:
    row = Trajectory.objects.select_related("text").only("text__steps").filter(sample=sample).first()
    return row.text.turns if row else []


def sibling_of(
    access: Access, sample: Sample, *, blind: bool, other_id: str, view: str, at: TurnPosition | None
) -> RolloutView:
    found = rollout_of(access, sample, blind=blind, other_id=other_id, view=view, at=at)
    if found is None:
        raise NotFound(f"Sample {sample.pk} has no trajectory.")
    return found


def _checked(row: Trajectory) -> dict[str, object]:
    return {
        "agent": with_signs(row.agent),
        "model": row.model,
        "outcome": Outcome(row.outcome),
        "keep": row.keep,
        "passed": row.checker_passed,
        "output": visible(without_colours(row.text.checker_output).rstrip()),
        "rewards": row.rewards,
        "exception": visible(row.exception),
        "replay": ReplayState(row.replay),
    }
