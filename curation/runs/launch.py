"""Launch: create a run and the items of its first stage in one transaction, then dispatch it."""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from pydantic import BaseModel, ValidationError

from curation.projects.access import Access
from curation.projects.instructions.texts import versions_in_force
from curation.projects.models import AuditEntry, Project
from curation.runs.engine.advance import enter_stage
from curation.runs.engine.dispatch import dispatch
from curation.runs.kinds import Estimate, Kind, kind_of
from curation.runs.models import Run, RunEvent
from curation.web.problems import FieldError, Invalid
from curation.web.refusals import all_checks, read_partly
from curation.web.text.figures import counted, money

MOST_BUDGET = Decimal(10_000_000)


def launch(
    *,
    project: Project,
    kind: str,
    params: dict[str, Any],
    user: User | None,
    budget: Decimal | None = None,
    cloned_from: Run | None = None,
    scheduled: bool = False,
) -> Run:
    """Start a run, or raise `Invalid` with the paths of the errors and write nothing.

    Nobody reads the refusal of a schedule: its run starts and fails with the reason, among the runs of the project.
    """
    found = kind_of(kind)
    if scheduled:
        read = read_params(found, params)
    else:
        read = check_launch(project=project, kind=found, params=params, budget=budget)
    with transaction.atomic():
        run = Run.objects.create(
            project=project,
            kind=kind,
            params=read.model_dump(mode="json", exclude_none=True),
            settings_json=project.settings.model_dump(mode="json"),
            instructions=versions_in_force(project),
            budget=budget,
            created_by=user,
            cloned_from=cloned_from,
        )
        # Read after the insert, which waits for an archive in progress.
        Project.objects.get(pk=project.pk).require_writable()
        if result := found.begin(run, read):
            run.result = result
            run.save(update_fields=["result"])
        stage = found.stages(read)[0]
        planned = enter_stage(run, stage)
        if not planned and (found.needs or params.get("filter")):
            raise _nothing_to_do(found, params)
        RunEvent.objects.create(run=run, message=f"Launched: {counted(planned, 'item')} in stage {stage.name}.")
        AuditEntry.record(
            actor=user, project=project, action="run.launch", subject=f"{kind} {run.pk}", data={"params": run.params}
        )
        transaction.on_commit(lambda: dispatch(run.pk))
    run.refresh_from_db()
    return run


def _nothing_to_do(kind: Kind[Any], params: dict[str, Any]) -> Invalid:
    if not params.get("filter"):
        return Invalid(f"There is nothing to work on yet. {kind.needs}".rstrip())
    return Invalid.at("params.filter", "Nothing matches this filter. Change it, or leave it empty to take everything.")


def require_scopes(access: Access, kind: str, params: Mapping[str, Any]) -> None:
    """Raise `NotAllowed` if the caller, or the caller's token, lacks a permission that the launch needs."""
    for scope in kind_of(kind).scopes(params):
        access.require(scope)


def check_launch(
    *,
    project: Project,
    kind: Kind[Any],
    params: Mapping[str, Any],
    budget: Decimal | None = None,
    unknown: Collection[str] = (),
) -> BaseModel:
    """Return parameters that a run can be launched with, or raise a `Problem` with all that is known to be wrong.

    `unknown` are parameters that a form has refused, so that they are not in `params`; they are not refused again.
    """
    read: BaseModel
    try:
        read, error = read_partly(kind.params, params, unknown=unknown)
    except ValidationError as error_of_all:
        raise Invalid.of(error_of_all, "params") from None
    with all_checks() as check:
        if error is not None:
            with check():
                raise Invalid.of(error, "params")
        with check():
            kind.check(project, read)
        if budget is not None:
            with check():
                check_amount(budget)
    if budget is not None and not unknown:
        check_prices(kind.estimate(project, read))
    return read


def estimate(*, project: Project, kind: str, params: dict[str, Any], budget: Decimal | None = None) -> Estimate:
    """Estimate a launch with these parameters; raise `Invalid` as `launch` does."""
    found = kind_of(kind)
    estimated = found.estimate(project, check_launch(project=project, kind=found, params=params))
    if budget is None or estimated.cost is None or estimated.cost <= budget:
        return estimated
    return Estimate.total([estimated], f"The budget of {money(budget)} does not suffice: the run stops unfinished.")


def read_params(kind: Kind[Any], params: dict[str, Any]) -> BaseModel:
    try:
        read: BaseModel = kind.params.model_validate(params)
    except ValidationError as error:
        raise Invalid.of(error, "params") from None
    return read


def check_budget(budget: Decimal, estimated: Estimate) -> None:
    """Raise `Invalid` if the budget is no amount, or the price of a model is unknown."""
    check_amount(budget)
    check_prices(estimated)


def check_amount(budget: Decimal) -> None:
    if not (budget.is_finite() and 0 < budget <= MOST_BUDGET and budget == round(budget, 6)):
        reason = f"above 0, at most {MOST_BUDGET:,}, with at most 6 decimals"
        raise Invalid(f"A budget is an amount in US dollars {reason}.", errors=[FieldError("budget", reason)])


def check_prices(estimated: Estimate) -> None:
    if estimated.unpriced:
        names = ", ".join(estimated.unpriced)
        raise Invalid(
            f"A budget cannot be held: the price of {names} is unknown. Set its prices (0 where it is free).",
            code="unpriced_model",
            errors=[FieldError("budget", f"unknown price of {names}")],
        )
