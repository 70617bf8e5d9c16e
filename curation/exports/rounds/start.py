"""Start a round, export its approved trajectories, and start the next one."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from curation.exports.models import Export, Round
from curation.exports.recipes.recipe import read_recipe
from curation.exports.rounds.figures import progress_of
from curation.llm.models import Endpoint
from curation.projects.access import Access, access_of
from curation.projects.models import AuditEntry, Scope
from curation.runs.calls.targets import targets_named
from curation.runs.launch import launch
from curation.runs.models import Run
from curation.web.problems import Conflict, FieldError, Invalid

FORMATS = ("sft-messages",)


def start_round(
    *, access: Access, operator: str, rollout: dict[str, Any] | None = None, formats: Sequence[str] = FORMATS
) -> Round:
    """Launch the first round of a chain. `rollout` are parameters of the rollout but for the model.

    Raises `Invalid` for an unknown endpoint, format or parameter, and if no admitted scenario matches.
    """
    _require(access)
    _require_operator(access, operator)
    with transaction.atomic():
        run = launch(
            project=access.project, kind="rollout", params={**(rollout or {}), "model": operator}, user=access.user
        )
        made = Round.objects.create(
            project=access.project, operator=operator, rollout=run, formats=list(formats), created_by=access.user
        )
        made.chain = made.pk
        made.save(update_fields=["chain"])
        _check_recipe(access, made)
        _log(access, made, "round.start")
    return made


def start_next(*, access: Access, before: Round, operator: str) -> Round:
    """Launch the next round with the parameters of the one before, and the model trained on its export as operator.

    Raises `Conflict` if the round before has no export yet or is not the last one, `Invalid` for the same operator.
    """
    _require(access)
    _require_operator(access, operator)
    _refuse_same_model(access, before, operator)
    with transaction.atomic():
        last = Round.objects.select_for_update().filter(chain=before.chain).order_by("-number")[0]
        if last.pk != before.pk:
            raise Conflict(f"Round {last.number} follows it already.", code="not_last")
        if before.export is None or not before.export.ready:
            raise Conflict(f"Round {before.number} has no export yet. {progress_of(before).says}", code="no_export")
        params = {**before.rollout.params, "model": operator}
        run = launch(project=access.project, kind="rollout", params=params, user=access.user)
        made = Round.objects.create(
            project=access.project,
            chain=before.chain,
            number=before.number + 1,
            operator=operator,
            rollout=run,
            formats=before.formats,
            created_by=access.user,
        )
        _log(access, made, "round.start")
    return made


def export_round(*, access: Access, round_: Round, without_pending: bool = False) -> Run:
    """Export the approved trajectories of a round. Kept ones that nobody decided stop it, unless they may stay out.

    Raises `Conflict` if there is nothing to export yet.
    """
    access.require(Scope.EXPORT)
    return _export(round_, access.user, without_pending=without_pending)


def export_reviewed_rounds() -> int:
    """Export the rounds whose kept trajectories are all decided, for those who started them and may still export;
    return their number."""
    exported = 0
    rows = Round.objects.filter(export=None, rollout__state="succeeded", project__archived_at=None)
    for round_ in rows.filter(project__deleting_at=None).select_related("project", "created_by"):
        access = None if round_.created_by is None else access_of(round_.created_by, round_.project)
        if access is not None and access.may(Scope.EXPORT) and progress_of(round_).state == "ready":
            _export(round_, access.user)
            exported += 1
    return exported


def _export(round_: Round, user: User | None, *, without_pending: bool = False) -> Run:
    with transaction.atomic():
        row = (
            Round.objects.select_for_update(of=("self",))
            .select_related("project", "rollout", "export__run")
            .get(pk=round_.pk)
        )
        found = progress_of(row)
        may = found.state == "ready" or (without_pending and found.state == "review" and found.approved)
        if not may and not (found.state == "failed" and row.export is not None):
            raise Conflict(found.says, code="not_ready")
        run = launch(project=row.project, kind="export", params={"recipe": _recipe(row)}, user=user)
        row.export = Export.objects.get(run=run)
        row.save(update_fields=["export"])
        data = {"round": str(row.pk), "export": str(row.export.pk), "left_out": found.pending}
        AuditEntry.record(actor=user, project=row.project, action="round.export", subject=str(row), data=data)
    return run


def _recipe(round_: Round) -> dict[str, Any]:
    """Only approved trajectories: the filter names the status."""
    wanted = {"status": "approved", "run": str(round_.rollout_id)}
    return {"formats": round_.formats, "filter": wanted, "metadata": True}


def _check_recipe(access: Access, made: Round) -> None:
    read_recipe(_recipe(made)).samples(access.project)


def _refuse_same_model(access: Access, before: Round, operator: str) -> None:
    """The same model at the same address would get the recorded answers of the round before."""
    target, old = targets_named(access.project, [operator], "operator")[0], before.operator
    known = Endpoint.objects.of(access.project).filter(name=old).values_list("model", "api_base").first()
    if operator == old or known == (target.model, target.api_base):
        text = f"this is the model of round {before.number}; name the endpoint of the trained model"
        raise Invalid.fields([FieldError("operator", text)])


def _require(access: Access) -> None:
    access.require(Scope.RUN)
    access.require(Scope.EXPORT)


def _require_operator(access: Access, operator: str) -> None:
    if not Endpoint.objects.of(access.project).filter(name=operator).exists():
        raise Invalid.at("operator", f"There is no model {operator} in this project.", code="unknown_model")


def _log(access: Access, made: Round, action: str) -> None:
    data: dict[str, object] = {
        "round": str(made.pk),
        "chain": str(made.chain),
        "operator": made.operator,
        "run": str(made.rollout_id),
    }
    access.record(action, str(made), data)
