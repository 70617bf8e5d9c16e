from django.http import HttpRequest
from ninja import Query, Router, Status

from curation.duels.reigns.crown import crown, end_reign
from curation.duels.reigns.models import Reign
from curation.duels.reigns.pages import reign_views
from curation.duels.reigns.schemas import CrownIn, EndReignIn, ReignList, ReignOut
from curation.projects.access import enter, principal_of
from curation.projects.models import Project, Scope
from curation.runs.models import Run
from curation.web.ids import find, find_param
from curation.web.schemas import Page

router = Router(tags=["duels"])


@router.get("/projects/{slug}/reigns", response=Page[ReignOut], summary="The line of kings")
def list_reigns(request: HttpRequest, slug: str, params: Query[ReignList]) -> dict[str, object]:
    """Each with the runs against it: a defence is a run against the version that was crowned."""
    project = enter(request, slug, Scope.READ).project
    rows = Reign.objects.filter(project=project).select_related("run", "crowned_by", "ended_by")
    page = params.page(rows)
    views = {view.row.pk: view for view in reign_views(project, page.rows)}
    return page.response(lambda row: ReignOut.of(views[row.pk]))


@router.post("/projects/{slug}/reigns", response={201: ReignOut}, summary="Crown the accepted challenger of a run")
def post_reign(request: HttpRequest, slug: str, body: CrownIn) -> Status[ReignOut]:
    """409 with the reason where the run's verdict does not allow it."""
    access = enter(request, slug, Scope.RUN)
    run = find_param(Run.objects.of(access.project).select_related("project"), body.run, "run", "run")
    reign = crown(access=access, run=run, challenger=body.challenger)
    return Status(201, ReignOut.of(reign_views(access.project, [reign])[0]))


@router.post("/reigns/{reign_id}/end", response=ReignOut, summary="End a reign without a successor (admins)")
def post_end(request: HttpRequest, reign_id: str, body: EndReignIn) -> ReignOut:
    """The next duel run takes its king from the settings again, until a challenger is crowned."""
    visible = Project.objects.visible_to(principal_of(request).user)
    rows = Reign.objects.filter(project__in=visible).select_related("project", "run", "crowned_by")
    reign = find(rows, reign_id, "reign")
    access = enter(request, reign.project, Scope.ADMIN)
    return ReignOut.of(reign_views(access.project, [end_reign(access=access, reign=reign, reason=body.reason)])[0])
