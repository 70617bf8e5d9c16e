"""REST calls of duels and of a run's report."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query, Router

from curation.duels.models import Duel, DuelQuerySet
from curation.duels.pages.schemas import DuelOut, DuelPage, duel_out
from curation.duels.verdict.report import REPORTED_KINDS, markdown, report_of
from curation.projects.access import enter, principal_of
from curation.projects.models import Project, Scope
from curation.runs.models import Run
from curation.samples.models import Bucket, Flag, flag_bits, with_any_flag
from curation.web.ids import find
from curation.web.lists.keyset import paginate
from curation.web.lists.params import ListParams, one_of, words
from curation.web.problems import NotFound

router = Router(tags=["duels"])


class DuelListParams(ListParams):
    """Comma list = OR, repeated parameters = AND."""

    sorts: ClassVar[Sequence[str]] = ("-id", "id", "-score", "score")

    bucket: list[str] = []
    flags: list[str] = []
    opponent: list[str] = []
    instance_id: list[str] = []
    run: str | None = None
    score_min: float | None = None
    score_max: float | None = None
    created_after: datetime | None = None

    def order(self) -> str:
        """Sort duels without a score below those with one."""
        return super().order().replace("score", "score_key")

    def apply(self, duels: DuelQuerySet) -> DuelQuerySet:
        for group in words(self.bucket):
            duels = duels.filter(bucket__in=one_of("bucket", group, Bucket.values))
        for group in words(self.opponent):
            duels = duels.filter(opponent__in=one_of("opponent", group, ("king", "reference")))
        for group in words(self.instance_id):
            duels = duels.filter(prompt__instance_id__in=group)
        for group in words(self.flags):
            bits = flag_bits(list(one_of("flags", group, [flag.label for flag in Flag])))
            duels = duels.filter(flags__in=with_any_flag(bits))
        if self.score_min is not None or self.score_max is not None:
            duels = duels.filter(score_key__gte=max(0.0, self.score_min or 0.0))
        if self.score_max is not None:
            duels = duels.filter(score_key__lte=self.score_max)
        if self.created_after is not None:
            duels = duels.filter(created_at__gte=self.created_after)
        return duels


@router.get("/projects/{slug}/duels", response=DuelPage, exclude_unset=True, summary="List duels")
def list_duels(request: HttpRequest, slug: str, params: Query[DuelListParams]) -> dict[str, object]:
    access = enter(request, slug, Scope.READ)
    duels = params.apply(Duel.objects.of(access.project))
    if params.run is not None:
        duels = duels.filter(run=find(Run.objects.of(access.project), params.run, "run"))
    page = paginate(
        duels.with_answers(),
        sort=params.order(),
        cursor=params.cursor,
        limit=params.limit,
        count=params.count,
    )
    response: dict[str, object] = {"data": [duel_out(row) for row in page.rows], "next_cursor": page.next_cursor}
    return response | ({"total": page.total} if params.count else {})


@router.get("/duels/{duel_id}", response=DuelOut, summary="One duel: answers, facts, leak spans, verdicts")
def get_duel(request: HttpRequest, duel_id: str) -> dict[str, object]:
    visible = Duel.objects.filter(project__in=Project.objects.visible_to(principal_of(request).user))
    duel = find(visible.with_texts(), duel_id, "duel")
    enter(request, duel.project, Scope.READ)
    return duel_out(duel)


@router.get("/runs/{run_id}/report.md", summary="The report of a duel run, as Markdown")
def get_report(request: HttpRequest, run_id: str) -> StreamingHttpResponse:
    visible = Run.objects.filter(project__in=Project.objects.visible_to(principal_of(request).user))
    run = find(visible.select_related("project"), run_id, "run")
    enter(request, run.project, Scope.READ)
    if run.kind not in REPORTED_KINDS:
        raise NotFound(f"A run of kind {run.kind} has no report; {', '.join(sorted(REPORTED_KINDS))} have.")
    response = StreamingHttpResponse(markdown(report_of(run)), content_type="text/markdown; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="report-{run.pk}.md"'
    return response
