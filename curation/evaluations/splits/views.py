from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from curation.evaluations.contamination.forms import CheckForm
from curation.evaluations.contamination.pages import contamination_of
from curation.evaluations.models import ContaminationCheck, Split
from curation.evaluations.splits.export_kind import SplitRun
from curation.evaluations.splits.filters import SplitList, SplitPageParams
from curation.evaluations.splits.pages import row_lines
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.runs.kinds import kind_of
from curation.runs.launch import launch
from curation.runs.models import LIVE, Run
from curation.web.ids import find
from curation.web.lists.pages import list_context, page_urls


@project_page(Scope.READ, "GET")
def split_list(request: HttpRequest, access: Access) -> HttpResponse:
    params = SplitList.from_query(request.GET)
    page = params.page(params.narrow(Split.objects.of(access.project).for_list()))
    context = {
        **list_context(request, params, page, f"/api/v1/projects/{access.project.slug}/splits"),
        "import_url": f"{reverse('import-new', args=[access.project.slug])}?kind=eval_rows",
        "make_url": kind_of(SplitRun.name).form_url(access.project),
    }
    return render(request, "evaluations/splits/list.html", context)


@project_page(Scope.READ, "GET")
def split_page(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    split = find(Split.objects.of(access.project).select_related("project", "baseline", "run"), pk, "split")
    return _page(request, access, split, CheckForm(split))


@project_page(Scope.RUN, "POST")
def split_check(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    split = find(Split.objects.of(access.project).select_related("project", "baseline", "run"), pk, "split")
    form = CheckForm(split, request.POST, request.FILES)
    if form.is_valid():
        with form.shows_problem():
            launch(project=access.project, kind="contamination", params=form.params(), user=access.user)
            return redirect("split-page", access.project.slug, split.pk)
    return _page(request, access, split, form, status=form.status)


def _page(request: HttpRequest, access: Access, split: Split, form: CheckForm, status: int = 200) -> HttpResponse:
    check = ContaminationCheck.objects.newest(split)
    params = SplitPageParams.from_query(request.GET)
    page = params.page(params.rows_of_check(split, check))
    checking = Run.objects.of(access.project).filter(kind="contamination", contamination__split=split, state__in=LIVE)
    context = {
        "split": split,
        "contamination": contamination_of(access.project.slug, check),
        "checking": checking.first(),
        "params": params,
        "rows": row_lines(page.rows, check),
        "form": form if access.may(Scope.RUN) else None,
        "api_path": f"/api/v1/splits/{split.pk}",
        **page_urls(request.path, params, page.next_cursor),
    }
    return render(request, "evaluations/splits/page.html", context, status=status)
