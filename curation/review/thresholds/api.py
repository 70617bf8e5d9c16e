from django.http import HttpRequest
from ninja import Query, Router, Schema
from pydantic import Field

from curation.projects.access import enter
from curation.projects.models import Scope
from curation.projects.settings.dependents import MoveOut
from curation.review.thresholds.pages import (
    BinOut,
    Cells,
    Outlook,
    ThresholdsQuery,
    change_view,
    precision_words,
    scores_view,
)
from curation.samples.blind import refuse_pending
from curation.samples.models import Sample
from curation.web.schemas import Ends, Out


class PrecisionOut(Out):
    """The share of the samples in `final` that people approve, if they decide all of them.

    Undecided samples are approved at the rate of the decided ones in the same bin. Without a decision in one of the
    bins `share` is null, and the interval allows for none and for all of its samples.
    """

    share: float | None = Field(validation_alias="precision.share", examples=[0.84])
    interval: Ends = Field(validation_alias="precision.interval", examples=[[0.79, 0.88]], description="95 %.")
    samples: int = Field(validation_alias="precision.samples", examples=[1240])
    decided: int = Field(
        validation_alias="precision.decided", examples=[212], description="Decisions that it rests on."
    )
    approved: int = Field(validation_alias="precision.approved", examples=[181])
    unknown: int = Field(
        validation_alias="precision.unknown", examples=[0], description="Samples in bins without a decision."
    )
    kept_other: int = Field(examples=[4], description="Approvals that kept the opponent's answer or a revision.")
    flips_decided: float | None = Field(
        validation_alias="flips.0", examples=[0.31], description="Share with a position flip among the decided."
    )
    flips_undecided: float | None = Field(
        validation_alias="flips.1", examples=[0.12], description="The same among the others."
    )
    words: str = Field(examples=["People would approve about 84 % of the 1,240 samples in final (95 %: 79 to 88 %)."])

    @staticmethod
    def resolve_words(one: Outlook) -> str:
        return precision_words(one)


class OutlookOut(Out):
    """The bucket `final` with these edges, in points of the score."""

    final: float = Field(validation_alias="edges.final", examples=[82.0])
    refined: float = Field(validation_alias="edges.refined", examples=[66.0])
    precision: PrecisionOut
    held: int = Field(examples=[31], description="Samples from `final` on that a flag holds out of it.")
    held_by: dict[str, int] = Field(examples=[{"infra": 1, "leak": 24, "leak_reader": 8}])

    @staticmethod
    def resolve_precision(one: Outlook) -> Outlook:
        return one


class ThresholdsOut(Schema):
    panel: str | None = Field(examples=["3f9a1c0b77de"], description="The panel whose scores count; null before any.")
    bins: list[BinOut]
    scored: int = Field(examples=[5000])
    unparsed: int = Field(examples=[12])
    imported: int = Field(examples=[0], description="Samples with a score of no panel, which thresholds do not move.")
    settled: int = Field(examples=[610], description="Samples that are decided.")
    counted: int = Field(examples=[560], description="Those whose decision counts.")
    saved: OutlookOut
    tried: OutlookOut
    moves: list[MoveOut]
    version: int = Field(description="The project's; send it as `If-Match` with the change.")


router = Router(tags=["review"])


@router.get(
    "/projects/{slug}/thresholds", response=ThresholdsOut, summary="Approvals by score, and the effect of other edges"
)
def get_thresholds(request: HttpRequest, slug: str, params: Query[ThresholdsQuery]) -> dict[str, object]:
    """With `final` and `refined` also the samples that these edges would move. Nothing is written: `PATCH
    /projects/{slug}` with `settings.thresholds` saves them. While you review blind, it opens when all samples are
    decided."""
    access = enter(request, slug, Scope.READ)
    project = access.project
    refuse_pending(access, Sample.objects.of(project), "the page of thresholds")
    cells = Cells.read(project, params, whole=True)
    panel = cells.panel and cells.panel.digest
    shown = scores_view(project, cells) | change_view(project, params, cells)
    return {**shown, "panel": panel, "version": project.version}
