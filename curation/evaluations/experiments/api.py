"""REST calls of experiments."""

from collections.abc import Sequence
from typing import ClassVar

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.evaluations.experiments import schemas as s
from curation.evaluations.experiments.change import delete_card, write_card
from curation.evaluations.models import Experiment
from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Project, Scope
from curation.samples.blind import without_pending
from curation.web.http.etag import seen_version, set_etag
from curation.web.ids import find
from curation.web.lists.params import ListParams
from curation.web.lists.schemas import Page

router = Router(tags=["evaluations"])
Answer = dict[str, object]


class ExperimentList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")


@router.get("/projects/{slug}/experiments", response=Page[s.ExperimentOut], summary="List experiments")
def list_experiments(request: HttpRequest, slug: str, params: Query[ExperimentList]) -> Answer:
    access = enter(request, slug, Scope.READ)
    return params.page(params.narrow(experiments_of(access))).response(s.experiment_out)


@router.post("/projects/{slug}/experiments", response={201: s.ExperimentOut}, summary="Write an experiment's card")
def post_experiment(request: HttpRequest, response: HttpResponse, slug: str, body: s.ExperimentIn) -> Status[Answer]:
    """Ties an export to training settings, an evaluated base and an evaluated trained model."""
    access = enter(request, slug, Scope.RUN)
    return Status(201, _answer(response, write_card(access=access, card=body.card())))


@router.get("/experiments/{experiment_id}", response=s.ExperimentOut, summary="One experiment")
def get_experiment(request: HttpRequest, response: HttpResponse, experiment_id: str) -> Answer:
    return _answer(response, _enter(request, experiment_id, Scope.READ)[1])


@router.put("/experiments/{experiment_id}", response=s.ExperimentOut, summary="Write the whole card again")
def put_experiment(request: HttpRequest, response: HttpResponse, experiment_id: str, body: s.ExperimentIn) -> Answer:
    """With `If-Match`, 412 if the card is not as it was read."""
    access, experiment = _enter(request, experiment_id, Scope.RUN)
    with transaction.atomic():
        Experiment.objects.select_for_update().get(pk=experiment.pk)
        access, experiment = _enter(request, experiment_id, Scope.RUN)
        seen_version(request, s.version_of(experiment))
        return _answer(response, write_card(access=access, card=body.card(), experiment=experiment))


@router.delete("/experiments/{experiment_id}", response={204: None}, summary="Delete an experiment's card")
def delete_experiment(request: HttpRequest, experiment_id: str) -> Status[None]:
    access, experiment = _enter(request, experiment_id, Scope.RUN)
    seen_version(request, s.version_of(experiment))
    delete_card(access=access, experiment=experiment)
    return Status(204, None)


def experiments_of(access: Access) -> QuerySet[Experiment]:
    """For those who review blind without those of evaluations with pending samples."""
    rows = Experiment.objects.filter(project=access.project).select_related("base__evaluation", "trained__evaluation")
    samples = "evaluation__episodes__trajectory__sample"
    return without_pending(access, rows, f"base__{samples}", f"trained__{samples}")


def _answer(response: HttpResponse, experiment: Experiment) -> Answer:
    set_etag(response, s.version_of(experiment))
    return s.experiment_out(experiment)


def _enter(request: HttpRequest, experiment_id: str, scope: str) -> tuple[Access, Experiment]:
    visible = Project.objects.visible_to(principal_of(request).user)
    rows = Experiment.objects.filter(project__in=visible).select_related(
        "project", "base__evaluation", "trained__evaluation"
    )
    access = enter(request, find(rows, experiment_id, "experiment").project, scope)
    return access, find(experiments_of(access).select_related("project"), experiment_id, "experiment")
