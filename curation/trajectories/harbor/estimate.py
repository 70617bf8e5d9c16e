"""The estimate of a run of kind `harbor`: by the project's own trials where there are any."""

from django.db.models import Avg, Count

from curation.llm.client.completion import EndpointTarget
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate
from curation.trajectories.harbor.plan import HarborParams, count_tasks
from curation.trajectories.models import Trajectory
from curation.web.text.figures import counted

# Of a trial of which nothing is known: 30 turns, each sending all earlier ones again.
TURNS, TOKENS_IN, TOKENS_OUT = 30, 150_000, 6_000
# The share of input in the tokens of earlier trials, whose sum alone is known.
INPUT = TOKENS_IN / (TOKENS_IN + TOKENS_OUT)


def estimated(project: Project, params: HarborParams) -> Estimate:
    """Return the estimate. The number of tasks of a dataset is unknown: it is that of one task."""
    counted_tasks = count_tasks(project, params)
    tasks = 1 if counted_tasks is None else counted_tasks
    targets = {target.name: target for target in targets_named(project, params.models, "models")}
    parts = [
        _of_trials(project, agent, targets[model], tasks * params.attempts)
        if model
        else Estimate(items=tasks * params.attempts)
        for agent, model in params.pairs
    ]
    notes = ["Harbor does not say how many tasks the dataset has: this is for one."] if params.dataset else []
    return Estimate.total(parts, *notes, "The run stops when the budget is spent, and trials that run then end early.")


def _of_trials(project: Project, agent: str, target: EndpointTarget, trials: int) -> Estimate:
    rows = Trajectory.objects.of(project).imported().filter(agent=agent, model=target.name, tokens__gt=0)
    known = rows.order_by().aggregate(tokens=Avg("tokens"), n=Count("id"))
    if known["n"]:
        tokens_in, tokens_out = known["tokens"] * INPUT, known["tokens"] * (1 - INPUT)
        note = f"{target.name} with {agent}: the mean of {counted(known['n'], 'earlier trial')}."
    else:
        tokens_in, tokens_out = TOKENS_IN, TOKENS_OUT
        note = f"{target.name} with {agent}: a guess of {TURNS} turns, since there is no earlier trial."
    part = Estimate.of_calls(
        target,
        calls=trials * TURNS,
        tokens_in=round(trials * tokens_in),
        tokens_out=round(trials * tokens_out),
        items=trials,
    )
    return Estimate.total([part], note)
