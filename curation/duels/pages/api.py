from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Query, Router, Status

from curation.duels.imports.trajectories import start_prompts
from curation.duels.models import Duel, DuelQuerySet
from curation.duels.pages.context import duel_of_run
from curation.duels.pages.filters import DuelList, VerdictList
from curation.duels.pages.queries import look_at_duel, shown_to
from curation.duels.pages.schemas import DuelOut, PromptsIn, VerdictPage, duel_out
from curation.duels.score.panels import PanelOut, panels_of
from curation.duels.verdict.markdown import markdown
from curation.duels.verdict.report import REPORTED_KINDS, report_of
from curation.projects.access import enter, principal_of
from curation.projects.models import Project, Scope
from curation.runs.models import Run
from curation.runs.pages.schemas import RunOut, accepted_run
from curation.samples.blind import record_unblinding, refuse_pending
from curation.samples.models import Sample
from curation.trajectories.models import Trajectory
from curation.web.http.responses import answers_with_file
from curation.web.ids import find
from curation.web.problems import NotFound
from curation.web.schemas import Page

router = Router(tags=["duels"])


@router.get("/projects/{slug}/duels", response=Page[DuelOut], summary="List duels")
def list_duels(request: HttpRequest, slug: str, params: Query[DuelList]) -> dict[str, object]:
    """Those who review blind get the duels of decided samples, and control duels when no sample is pending."""
    access = enter(request, slug, Scope.READ)
    return params.shown(access, DuelQuerySet.with_answers).response(duel_out)


@router.get("/projects/{slug}/verdicts", response=VerdictPage, summary="List verdicts")
def list_verdicts(request: HttpRequest, slug: str, params: Query[VerdictList]) -> dict[str, object]:
    """Every judge's reading of every duel, the newest first. Those who review blind get those of the duels that they
    get."""
    access = enter(request, slug, Scope.READ)
    page = params.page(shown_to(access, params.rows(access.project), "duel__"))
    record_unblinding(access, [verdict.duel.sample_id for verdict in page.rows])
    return page.response()


@router.get("/projects/{slug}/panels", response=list[PanelOut], summary="Panels that scored duels, the oldest first")
def list_panels(request: HttpRequest, slug: str) -> list[PanelOut]:
    """`PATCH /projects/{slug}` with `settings.panel.counting` lets another panel's scores count;
    `POST /projects/{slug}/settings/preview` shows before what would move."""
    return panels_of(enter(request, slug, Scope.READ).project)


@router.get("/duels/{duel_id}", response=DuelOut, summary="One duel: answers, facts, leak spans, verdicts")
def get_duel(request: HttpRequest, duel_id: str, run: str | None = None) -> dict[str, object]:
    """With `run`, its score, bucket and verdicts are those of that run."""
    visible = Duel.everything.filter(project__in=Project.objects.visible_to(principal_of(request).user))
    duel = find(visible.with_texts().select_related("sample"), duel_id, "duel")
    look_at_duel(enter(request, duel.project, Scope.READ), duel)
    return duel_out(duel if run is None else duel_of_run(duel, run))


@router.post("/trajectories/{trajectory_id}/prompts", response={202: RunOut}, summary="Make prompts of its steps")
def post_prompts(
    request: HttpRequest, response: HttpResponse, trajectory_id: str, body: PromptsIn
) -> Status[dict[str, object]]:
    """Launch a run of kind `prompts`. A run with a `filter` makes prompts of many trajectories."""
    mine = Trajectory.objects.filter(project__in=Project.objects.visible_to(principal_of(request).user))
    project = find(mine.select_related("project"), trajectory_id, "trajectory").project
    access = enter(request, project, Scope.RUN)
    run = start_prompts(access=access, trajectory=trajectory_id, steps=body.steps)
    return accepted_run(response, run)


@router.get(
    "/runs/{run_id}/report.md",
    openapi_extra=answers_with_file("text/markdown", has_etag=False),
    summary="The report of a duel run, as Markdown",
)
def get_report(request: HttpRequest, run_id: str) -> StreamingHttpResponse:
    visible = Run.objects.filter(project__in=Project.objects.visible_to(principal_of(request).user))
    run = find(visible.select_related("project"), run_id, "run")
    access = enter(request, run.project, Scope.READ)
    refuse_pending(access, Sample.objects.filter(duel__scores__run=run), "the report of this run")
    if run.kind not in REPORTED_KINDS:
        raise NotFound(f"A run of kind {run.kind} has no report; {', '.join(sorted(REPORTED_KINDS))} have.")
    response = StreamingHttpResponse(markdown(report_of(run)), content_type="text/markdown; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="report-{run.pk}.md"'
    return response
