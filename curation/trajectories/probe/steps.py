"""The values of one trajectory's steps, as its page and REST show them, beside the labels that people gave."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from curation.projects.access import Access
from curation.runs.models import Run
from curation.trajectories.models import ProcessLabel, StepAdvantage, StepValue, Trajectory
from curation.trajectories.params import ProbeParams
from curation.trajectories.probe.values import VERDICT_TONES, looks_of
from curation.trajectories.session.shown import labels_hidden
from curation.trajectories.shell import action_of
from curation.web.charts import Figure, axis, color, error_bars, figure, lines
from curation.web.text.figures import percent
from curation.web.text.markup import with_signs
from curation.web.text.transcript import summary_line
from judging.statistics.rates import Interval
from judging.statistics.values import ActionVerdict

# What people call a step that a probe finds so; a step that is alike is useless if it left the state as it was.
AS_LABELS = {
    ActionVerdict.BETTER: (ProcessLabel.CORRECT,),
    ActionVerdict.LIKELY: (ProcessLabel.CORRECT,),
    ActionVerdict.WORSE: (ProcessLabel.WRONG, ProcessLabel.RISKY),
}


@dataclass(frozen=True, slots=True)
class StepWorth:
    """The value of the step at a position, and its advantage if it was compared. `label` is a person's, or empty."""

    value: StepValue
    interval: Interval
    advantage: StepAdvantage | None
    action: SafeString
    label: str

    @property
    def shown(self) -> str:
        """The rate with its interval and number."""
        rate = self.value.value.rate
        if self.value.ended:
            return f"{percent(rate or 0.0)}, ended"
        low, high = self.interval.low, self.interval.high
        return (
            "–" if rate is None else f"{percent(rate)} ({100 * low:.0f}–{percent(high)}), n {self.value.value.rollouts}"
        )

    @property
    def difference(self) -> str:
        row = self.advantage
        return "" if row is None else Interval(row.low, row.high).around(row.difference)

    @property
    def tone(self) -> str:
        return "" if self.advantage is None else VERDICT_TONES[ActionVerdict(self.advantage.verdict)]

    @property
    def is_useless(self) -> bool:
        row = self.advantage
        is_own = row is not None and row.against.trajectory_id == row.value.trajectory_id
        return row is not None and is_own and row.unchanged and row.verdict == ActionVerdict.ALIKE

    @property
    def agrees(self) -> bool | None:
        """Whether the person's label says the same; None if one of both says nothing."""
        if not self.label or self.advantage is None:
            return None
        meant = (ProcessLabel.USELESS,) if self.is_useless else AS_LABELS.get(ActionVerdict(self.advantage.verdict))
        return None if meant is None else self.label in meant


@dataclass(frozen=True, slots=True)
class StepWorths:
    """The values by the last run that probed the trajectory. `agree` of `labelled` steps have the label of a person
    that says the same as the value."""

    run: Run
    rows: list[StepWorth]
    agree: int
    labelled: int

    @property
    def operator(self) -> str:
        return with_signs(self.rows[0].value.operator)

    @property
    def chart(self) -> Figure:
        """The value after each step in percent, with its interval."""
        known = [row for row in self.rows if row.value.value.rate is not None]
        rates = [100 * (row.value.value.rate or 0.0) for row in known]
        ends = [(100 * row.interval.low, 100 * row.interval.high) for row in known]
        line = lines(
            "value",
            [row.value.at for row in known],
            rates,
            "%",
            line={"color": color("chart-1")},
            error_y=error_bars(rates, ends, token="chart-1"),  # noqa: S106 - of a colour
            customdata=[row.value.value.rollouts for row in known],
        )
        return figure(
            [{**line, "hovertemplate": "step %{x}: %{y:.0f} % solved, n %{customdata}<extra></extra>"}],
            showlegend=False,
            xaxis=axis("step", dtick=1 if len(known) < 30 else None, fixedrange=True),
            yaxis=axis("solved after it, %", range=[-3, 103], fixedrange=True),
        )


def step_worths(access: Access, trajectory: Trajectory) -> StepWorths | None:
    """Return the values of its steps, or None if no probe has measured any. Needs `with_text()`."""
    values = list(StepValue.objects.newest_of(trajectory.pk).select_related("run"))
    if not values:
        return None
    run = values[0].run
    looks = looks_of(ProbeParams.model_validate(run.params))
    compared = StepAdvantage.objects.filter(value__in=[value.pk for value in values])
    advantages = {row.value_id: row for row in compared.select_related("value", "against")}
    hidden, text = labels_hidden(access, trajectory), trajectory.text
    rows = [
        StepWorth(
            value=value,
            interval=value.value.interval(looks=looks),
            advantage=advantages.get(value.pk),
            action=summary_line(action_of(text.steps[value.at])) if value.at else SafeString("the beginning"),
            label="" if value.at in hidden else text.marks.get(str(value.at), {}).get("label", ""),
        )
        for value in values
        if value.at < len(text.steps)
    ]
    known = [row.agrees for row in rows if row.agrees is not None]
    return StepWorths(run, rows, sum(known), len(known))
