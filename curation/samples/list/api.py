from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import BaseModel, Field

from curation.projects.access import Access, enter
from curation.projects.models import Scope
from curation.samples.blind import hides, record_unblinding_of, refuse_hidden
from curation.samples.list.filters import SampleList
from curation.samples.list.pages import in_review, sample_page
from curation.samples.list.saved_views import router as saved_views_router
from curation.samples.list.similar import similar_samples
from curation.samples.models import Sample, source_url
from curation.web.database.queries import Prepared
from curation.web.ids import id_number
from curation.web.problems import NotFound
from curation.web.schemas import Page, answer

router = Router(tags=["samples"])
router.add_router("", saved_views_router)
_whole = Prepared(lambda sample: Sample.objects.for_list().select_related("project").filter(pk=sample), sample=int)
_project_and_version = Prepared(
    lambda sample: Sample.objects.only("id", "project", "version").select_related("project").filter(pk=sample),
    sample=int,
)


class SampleOut(BaseModel):
    """A row of the list. `duel` or `trajectory` is the id of its origin.

    With a filter by one run, `bucket`, `score` and `panel` are those of the score that the run gave. For a blind
    reviewer, they, `predicted`, `action_style`, `preview` and most flags of a pending sample are empty.
    """

    id: str = Field(examples=["4711"])
    kind: str = Field(examples=["turn"])
    status: str = Field(examples=["pending"])
    bucket: str | None = Field(examples=["refined"])
    score: float | None = Field(examples=[71.4])
    predicted: float | None = Field(
        examples=[0.83], description="Predicted approval, 0–1, of the last model of decisions that read it."
    )
    flags: list[str] = Field(examples=[["flip"]])
    source: str = Field(examples=["turns.jsonl"])
    repo: str = Field(examples=["acme/billing"])
    instance_id: str = Field(examples=["acme__billing-17"])
    action_style: str = Field(examples=["read"])
    preview: str = Field(examples=["Fix the rounding of totals in billing/totals.py."])
    version: int = Field(examples=[1])
    source_url: str | None = Field(examples=[None])
    duel: str | None = Field(examples=["812"])
    trajectory: str | None = Field(examples=[None])
    opponent: str | None = Field(
        examples=["king"], description="Of its duel: `king`, `reference`, or `none` for an imported answer alone."
    )
    panel: str | None = Field(
        examples=["3f9a1c0b77de"], description="The panel that scored it; null for a duel without a score that counts."
    )
    in_review_by: str | None = Field(examples=[None], description="The reviewer with the sample open.")
    disputed: bool | None = Field(
        examples=[False],
        description="Several people decided it differently and somebody must adjudicate; null without the scope `run`.",
    )


def sample_out(
    sample: Sample, access: Access, *, in_review_by: str | None, hidden: bool | None = None
) -> dict[str, object]:
    """The row of a sample that was read by `SampleQuerySet.for_list()`, as this person may see it. A caller that knows
    more of the sample says whether it is hidden."""
    hidden = hides(access, sample) if hidden is None else hidden
    duel, row = getattr(sample, "duel_pk", None), getattr(sample, "row_offset", None)
    trajectory = getattr(sample, "trajectory_pk", None)
    return {
        "id": str(sample.pk),
        "kind": sample.kind,
        "status": sample.status,
        "bucket": None if hidden else sample.shown_bucket or None,
        "score": None if hidden else sample.shown_score,
        "predicted": None if hidden else sample.predicted,
        "flags": sample.shown_flags(hidden=hidden),
        "source": sample.source,
        "repo": sample.repo,
        "instance_id": sample.instance_id,
        "action_style": "" if hidden else sample.action_style,
        "preview": "" if hidden else sample.preview,
        "version": sample.version,
        "source_url": source_url(sample.source, row),
        "duel": None if duel is None else str(duel),
        "trajectory": None if trajectory is None else str(trajectory),
        "opponent": getattr(sample, "opponent", None),
        "panel": None if hidden else getattr(sample, "ran_panel", None) or getattr(sample, "scored_by_panel", None),
        "in_review_by": in_review_by,
        "disputed": sample.disputed if access.may(Scope.RUN) else None,
    }


@router.get("/projects/{slug}/samples", response=Page[SampleOut], summary="List samples")
def list_samples(request: HttpRequest, slug: str, params: Query[SampleList]) -> dict[str, object]:
    access = enter(request, slug, Scope.READ)
    refuse_hidden(access, params)
    page = sample_page(access.project, params)
    record_unblinding_of(access, page.rows)
    holders = in_review(page.rows)
    return page.response(lambda sample: sample_out(sample, access, in_review_by=holders.get(sample.pk)))


class SimilarOut(Schema):
    sample: SampleOut
    likeness: float = Field(description="Shared part of all three-word sequences of both texts, 0.3 to 1.")


@router.get(
    "/samples/{sample_id}/similar",
    response=answer("SimilarList", data=list[SimilarOut], next_cursor=(str | None, None)),
    summary="List the samples most like this one",
)
def list_similar(request: HttpRequest, sample_id: str) -> dict[str, object]:
    """Up to 50 of the same project, compared by their prompts' last turns and answers; the list's filter `similar`
    finds the same ones."""
    access, _ = enter_sample(request, sample_id, Scope.READ)
    rows = Sample.objects.of(access.project).for_list()
    found = similar_samples(rows, sample_id)
    record_unblinding_of(access, list(found))
    holders = in_review(list(found))
    data = [
        {"sample": sample_out(sample, access, in_review_by=holders.get(sample.pk)), "likeness": likeness}
        for sample, likeness in found.items()
    ]
    return {"data": data, "next_cursor": None}


def enter_sample(request: HttpRequest, sample_id: str, scope: str) -> tuple[Access, Sample]:
    """Return the caller's access to the sample's project, and the sample; 404 for a stranger.

    Only reading calls get the whole row: a call that changes the sample reads it again under its lock.
    """
    pk = id_number(sample_id)
    sample = None if pk is None else (_whole if scope == Scope.READ else _project_and_version).first(sample=pk)
    try:
        if sample is not None:
            return enter(request, sample.project, scope), sample
    except NotFound:  # as for an id that does not exist, so that no foreign project is named
        pass
    raise NotFound(f"There is no sample {sample_id!r}, or it is not yours to see.") from None
