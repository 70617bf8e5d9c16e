from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.labels.models import Label
from curation.projects.access import enter
from curation.projects.models import Scope
from curation.review.labels import schemas as s
from curation.review.labels.save import save_labels
from curation.review.schemas import seen_version
from curation.samples.list.api import enter_sample
from curation.web.http.etag import set_etag
from curation.web.schemas import Page

router = Router(tags=["labels"])


@router.get("/projects/{slug}/labels", response=Page[s.LabelOut], summary="Everybody's labels")
def list_project_labels(request: HttpRequest, slug: str, params: Query[s.LabelList]) -> dict[str, object]:
    """Of pending samples only your own, with any role; those of others follow when the sample is decided."""
    access = enter(request, slug, Scope.READ)
    return params.rows(access).response(lambda row: s.LabelOut.of(access, row))


@router.get("/samples/{sample_id}/labels", response=s.LabelsOut, summary="The current labels of a sample")
def list_labels(request: HttpRequest, sample_id: str) -> dict[str, object]:
    """While the sample is pending, your own."""
    access, sample = enter_sample(request, sample_id, Scope.READ)
    rows = Label.objects.filter(sample=sample, current=True, value__isnull=False).visible_to(access.user.pk)
    rows = rows.select_related("question", "author", "sample").order_by("id")
    return {"data": [s.LabelOut.of(access, row) for row in rows]}


@router.post("/samples/{sample_id}/labels", response={201: s.LabelsOut}, summary="Answer questions about a sample")
def post_labels(
    request: HttpRequest, response: HttpResponse, sample_id: str, body: s.LabelsIn
) -> Status[dict[str, object]]:
    """Answers with your current labels on it. Needs no lease. A stale `If-Match` or `version`: 412."""
    access, sample = enter_sample(request, sample_id, Scope.REVIEW)
    version = seen_version(request, sample, body.version)
    rows = save_labels(access=access, sample_id=sample.pk, given=body.labels, version=version)
    set_etag(response, sample.version)
    return Status(201, {"data": [s.LabelOut.of(access, row) for row in rows]})
