"""The run kind `author`: bundles are written, then gated."""

from collections.abc import Sequence

from django.db.models import Count

from curation.llm.client.pricing import cost_of
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Json, Kind, Stage
from curation.runs.models import Run
from curation.runs.workers.sandbox_report import require_sandbox
from curation.scenarios.author.params import AuthorParams
from curation.scenarios.author.stage import AuthorStage, authored_in
from curation.scenarios.gate.kind import CHECKS
from curation.scenarios.gate.stage import GateStage
from curation.scenarios.models import Status
from curation.scenarios.taxonomy.axes import taxonomy_of

# Tokens of the instructions with the order, of a bundle, and of the share that is asked for again with its errors.
ORDER, BUNDLE, AGAIN = 1_800, 1_600, 0.3


def _stages(params: AuthorParams) -> Sequence[Stage]:
    return [
        AuthorStage(params),
        # Where failed items are tried again, what was admitted before is not proven anew.
        GateStage(repeats=params.repeats, dry_run=params.dry_run, again=False, scenarios=authored_in),
    ]


def _check(project: Project, params: AuthorParams) -> None:
    targets_named(project, [params.model], "model")
    params.pins(taxonomy_of(project.settings))
    if not params.dry_run:
        require_sandbox()


def _estimate(project: Project, params: AuthorParams) -> Estimate:
    target = targets_named(project, [params.model], "model")[0]
    again = round(params.n * AGAIN) if params.attempts > 1 else 0
    calls = params.n + again
    tokens_in, tokens_out = calls * ORDER + again * BUNDLE, calls * BUNDLE
    cost = cost_of(target, tokens_in, tokens_out)
    gate = "only the structure is checked" if params.dry_run else f"{params.n * (CHECKS + params.repeats)} sandboxes"
    note = f"{again} of {params.n} bundles are taken to be asked for twice. The gate asks no model; {gate}."
    return Estimate(
        items=params.n,
        calls=calls,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost=cost,
        unpriced=() if cost is not None else (target.name,),
        notes=(note,),
    )


def _finish(run: Run) -> Json:
    """What became of the run's scenarios, whichever of its attempts wrote them."""
    counted = dict(authored_in(run).order_by().values_list("status").annotate(n=Count("id")))
    verdicts = (Status.ADMITTED, Status.REJECTED, Status.DRY_RUN)
    return {"scenarios": sum(counted.values())} | {status.value: counted.get(status, 0) for status in verdicts}


AUTHOR = Kind(
    name="author",
    title="Author: a teacher writes scenarios, the gate proves them",
    params=AuthorParams,
    stages=_stages,
    check=_check,
    estimate=_estimate,
    finish=_finish,
)
