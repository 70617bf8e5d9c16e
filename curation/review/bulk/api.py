from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from curation.projects.access import enter, principal_of
from curation.projects.models import Project, Scope
from curation.review import schemas as s
from curation.review.bulk.decide import BulkRow, decide_matching, decide_selected
from curation.review.bulk.undo import batches_of, undo_bulk
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Sample
from curation.web.ids import id_number
from curation.web.lists.filters import ListParams
from curation.web.problems import FieldError, Invalid
from curation.web.schemas import Page, answer

router = Router(tags=["review"])


@router.post(
    "/samples/bulk",
    response=answer("BulkOut", batch=str, action=str, changed=int, data=list[BulkRow]),
    summary="One decision on many samples",
)
def post_bulk(request: HttpRequest, body: s.BulkIn) -> dict[str, object]:
    """Up to 500 `ids`, answered per row; or with `project`, `filter` and `count` up to 50,000 matches."""
    if body.filter is None:
        access = enter(request, _project_of(request, body), Scope.REVIEW)
        done = decide_selected(
            access=access, action=body.action, ids=body.ids, reason=body.reason, comment=body.comment
        )
        rows = done.rows
    else:
        if not body.project or body.count is None or body.ids:
            raise Invalid("Send a `filter` together with `project` and `count`, and without `ids`.", code="invalid")
        access = enter(request, body.project, Scope.REVIEW)
        wanted = SampleFilter.from_json(body.filter)
        done = decide_matching(
            access=access, action=body.action, wanted=wanted, expected=body.count, reason=body.reason
        )
        rows = done.refused
    return {"batch": done.batch, "action": done.action, "changed": done.changed, "data": rows}


@router.post(
    "/samples/bulk/undo",
    response=answer("BulkUndoneOut", restored=Annotated[int, Field(examples=[2])], kept=list[BulkRow]),
    summary="Undo a bulk decision",
)
def post_bulk_undo(request: HttpRequest, body: s.BatchIn) -> dict[str, object]:
    done = undo_bulk(access=enter(request, body.project, Scope.REVIEW), batch=body.batch)
    kept = [BulkRow(str(pk), error=reason) for pk, reason in done.kept]
    return {"restored": done.restored, "kept": kept}


@router.get("/projects/{slug}/batches", response=Page[s.BatchOut], summary="List bulk decisions")
def list_batches(request: HttpRequest, slug: str, params: Query[ListParams]) -> dict[str, object]:
    """Reviewers see their own. `POST /samples/bulk/undo` undoes one of your own, at any time."""
    return params.page(batches_of(enter(request, slug, Scope.REVIEW))).response()


def _project_of(request: HttpRequest, body: s.BulkIn) -> str | Project:
    """The named project, or else that of the first known id. Ids of other projects are refused per row."""
    if body.project:
        return body.project
    ids = [pk for given in body.ids if (pk := id_number(given)) is not None]
    visible = Project.objects.visible_to(principal_of(request).user)
    found = visible.filter(pk__in=Sample.objects.filter(pk__in=ids[:500]).values("project")).order_by("pk").first()
    if found is None:
        raise Invalid(
            "None of these ids is a sample of yours.", errors=[FieldError("ids", "none is a sample of yours")]
        )
    return found
