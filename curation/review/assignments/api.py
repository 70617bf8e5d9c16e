from django.db import transaction
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.assignments.models import Assignment
from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Project, Scope
from curation.review.assignments.assign import assign, assignments_of, parts_of
from curation.review.assignments.schemas import (
    AssignmentCreatedOut,
    AssignmentIn,
    AssignmentOut,
    SecondOpinionIn,
    SecondOpinionOut,
    TargetIn,
    WorkloadOut,
)
from curation.review.assignments.second_opinion import ask_second_opinion
from curation.review.assignments.workload import set_target, workloads
from curation.review.decisions.withdraw_assignment import withdraw_assignment
from curation.samples.list.api import enter_sample
from curation.samples.list.filters import SampleFilter
from curation.web.http.responses import seen_version, set_etag
from curation.web.ids import find, lock_row
from curation.web.lists.filters import ListParams
from curation.web.problems import NotFound
from curation.web.schemas import Page, answer

router = Router(tags=["review"])


@router.get("/projects/{slug}/assignments", response=Page[AssignmentOut], summary="Samples assigned to people")
def list_assignments(request: HttpRequest, slug: str, params: Query[ListParams]) -> dict[str, object]:
    """Needs the scope `run`, since a filter may reveal facts that are hidden from reviewers."""
    page = params.page(assignments_of(enter(request, slug, Scope.RUN)))
    parts = parts_of(page.rows)
    return page.response(lambda row: AssignmentOut.of(row, parts.get(row.pk, [])))


@router.post("/projects/{slug}/assignments", response={201: AssignmentCreatedOut}, summary="Assign samples to people")
def post_assignment(request: HttpRequest, slug: str, body: AssignmentIn) -> Status[AssignmentCreatedOut]:
    """The undecided samples of a filter, or named ones, by shares. Needs the scope `run`. The queue offers them to
    these people first, and to nobody else unless `shared` or after `until`. 409 where nothing is left to assign."""
    access = enter(request, slug, Scope.RUN)
    done = assign(
        access=access,
        people=[(one.username, one.share) for one in body.people],
        wanted=None if body.filter is None else SampleFilter.from_json(body.filter),
        ids=body.ids,
        per_sample=body.per_sample,
        at_most=body.at_most,
        shared=body.shared,
        until=body.until,
    )
    out = _assignment_out(done.assignment)
    return Status(201, AssignmentCreatedOut(**out.model_dump(), left_out=done.left_out))


@router.get("/assignments/{assignment_id}", response=AssignmentOut, summary="One assignment")
def get_assignment(request: HttpRequest, response: HttpResponse, assignment_id: str) -> AssignmentOut:
    out = _assignment_out(_assignment(request, assignment_id)[1])
    set_etag(response, out.version())
    return out


@router.delete("/assignments/{assignment_id}", response={204: None}, summary="Withdraw an assignment")
def delete_assignment(request: HttpRequest, assignment_id: str) -> Status[None]:
    """Its undecided samples are in everybody's queue again. Of a request for a second opinion, a decision that waits
    only for that settles its sample again. Needs the scope `run`, or `review` for a request that you made."""
    access, assignment = _assignment(request, assignment_id)
    with transaction.atomic():
        out = _assignment_out(lock_row(assignment, "assignment"))
        seen_version(request, out.version(), now=out.model_dump())
        withdraw_assignment(access=access, assignment=assignment)
    return Status(204, None)


@router.get(
    "/projects/{slug}/targets",
    response=answer("WorkloadsOut", data=list[WorkloadOut]),
    summary="Targets, pace and remaining work, by person",
)
def list_targets(request: HttpRequest, slug: str) -> dict[str, object]:
    """Members with the right to review; without the scope `run` only yourself."""
    return {"data": workloads(enter(request, slug, Scope.READ))}


@router.get("/projects/{slug}/targets/{username}", response=WorkloadOut, summary="One person's target and pace")
def get_target(request: HttpRequest, response: HttpResponse, slug: str, username: str) -> WorkloadOut:
    """Without the scope `run` only your own."""
    out = _workload(enter(request, slug, Scope.READ), username)
    set_etag(response, out.version())
    return out


@router.put("/projects/{slug}/targets/{username}", response=WorkloadOut, summary="Set a person's target")
def put_target(request: HttpRequest, response: HttpResponse, slug: str, username: str, body: TargetIn) -> WorkloadOut:
    """Needs the scope `run`."""
    access = enter(request, slug, Scope.RUN)
    with transaction.atomic():
        if "If-Match" in request.headers:
            Project.objects.select_for_update().get(pk=access.project.pk)
            now = _workload(access, username)
            seen_version(request, now.version(), now=now.model_dump())
        out = set_target(access=access, username=username, per_day=body.per_day, total=body.total)
    set_etag(response, out.version())
    return out


@router.post(
    "/samples/{sample_id}/second-opinion", response={201: SecondOpinionOut}, summary="Ask for a second decision"
)
def post_second_opinion(
    request: HttpRequest, response: HttpResponse, sample_id: str, body: SecondOpinionIn | None = None
) -> Status[SecondOpinionOut]:
    """Two people then decide the sample, neither seeing the other's decision. One that a person settled alone is
    pending again, with their decision waiting: only they or a curator may ask."""
    access, sample = enter_sample(request, sample_id, Scope.REVIEW)
    done = ask_second_opinion(access=access, sample_id=sample.pk, username=(body and body.username) or "")
    set_etag(response, done.sample.version)
    return Status(201, SecondOpinionOut.model_validate(done))


def _workload(access: Access, username: str) -> WorkloadOut:
    for row in workloads(access):
        if row.username == username:
            return row
    raise NotFound(f"{access.project.slug} has no member {username!r} with the right to review.")


def _assignment_out(row: Assignment) -> AssignmentOut:
    return AssignmentOut.of(row, parts_of([row])[row.pk])


def _assignment(request: HttpRequest, given: str) -> tuple[Access, Assignment]:
    visible = Project.objects.visible_to(principal_of(request).user)
    row = find(Assignment.objects.filter(project__in=visible).select_related("project"), given, "assignment")
    return enter(request, row.project, Scope.REVIEW), row
