from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django_htmx.http import trigger_client_event

from curation.projects.access import Access, open_to, project_page
from curation.projects.models import Scope
from curation.runs import control
from curation.runs.kinds import Kind, Pipeline, kind_of, launchable_kind, listed_kinds
from curation.runs.launch import estimate, launch, require_scopes
from curation.runs.models import LIVE, Call, Item, ItemState, Run, RunEvent, RunOutcome, RunState
from curation.runs.pages.filters import CALL_TABS, CallList, ItemList, RunList, kind_names
from curation.runs.pages.forms import LaunchForm, run_to_repeat
from curation.runs.pages.parameters import parameter_facts
from curation.runs.pages.progress import progress_of
from curation.runs.pages.results import require_results, why_hidden
from curation.runs.pages.waiting import waits_of
from curation.runs.removal import archive_row, blockers_of, delete_row, find_row
from curation.runs.workers.broker import broker_answers
from curation.web.ids import find
from curation.web.lists.pages import Tab, list_context, tabs
from curation.web.problems import Conflict, Problem
from curation.web.text.figures import counted
from curation.web.text.storable import read_json

SHOWN_EVENTS, SHOWN_FAILURES = 30, 5


@project_page(Scope.READ, "GET")
def run_list(request: HttpRequest, access: Access) -> HttpResponse:
    params = RunList.from_query(request.GET)
    runs = Run.objects.of(access.project).filter(kind__in=kind_names()).select_related("created_by")
    page = params.page(params.narrow(runs))
    context = {
        **list_context(request, params, page, f"/api/v1/projects/{access.project.slug}/runs"),
        "tabs": run_tabs(request.path, params),
        "live": any(run.state in LIVE for run in page.rows),
    }
    return render(request, "runs/list.html", context)


@project_page(Scope.RUN, "GET", "POST")
def run_new(request: HttpRequest, access: Access) -> HttpResponse:
    kind = launchable_kind(request.GET.get("kind") or "duel")
    if kind.launch_page != "run-new":
        return redirect(kind.form_url(access.project))
    source = run_to_repeat(access.project, kind.name, request.GET.get("from"))
    asked: dict[str, Any] = {name: request.GET[name] for name in kind.params.model_fields if name in request.GET}
    if source is not None:
        asked = {**source.params, "budget": source.budget, **asked}
    if isinstance(asked.get("filter"), str):
        asked["filter"] = read_json(asked["filter"])
    form = LaunchForm(kind, access.project, request.POST or None, initial=asked)
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            require_scopes(access, kind.name, form.params())
            run = launch(
                project=access.project,
                kind=kind.name,
                params=form.params(),
                user=access.user,
                budget=_budget(form),
                cloned_from=source,
            )
            return redirect("run-page", access.project.slug, run.pk)
    context = {
        "kind": kind,
        "source": source,
        "pipelines": _pipelines(access),
        "form": form,
        "api_path": f"/api/v1/projects/{access.project.slug}/runs",
    }
    return render(request, "runs/new.html", context, status=form.status)


@project_page(Scope.RUN, "POST")
def run_estimate(request: HttpRequest, access: Access) -> HttpResponse:
    """A fragment: the estimate for the form, or why it cannot be launched."""
    kind = launchable_kind(request.GET.get("kind") or "duel")
    form = LaunchForm(kind, access.project, request.POST)
    found, problem = None, ""
    if form.is_valid():
        try:
            found = estimate(project=access.project, kind=kind.name, params=form.params(), budget=_budget(form))
        except Problem as refused:
            problem = refused.detail
    return render(request, "runs/_estimate.html", {"estimate": found, "problem": problem})


@project_page(Scope.READ, "GET")
def run_page(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    run = find(Run.objects.of(access.project).select_related("created_by", "project"), pk, "run")
    return render(request, "runs/page.html", _run_context(request, access, run))


@project_page(Scope.READ, "GET")
def run_live(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    """The page's live part; it asks for itself again only while the run is live."""
    run = find(Run.objects.of(access.project).select_related("created_by", "project"), pk, "run")
    response = render(request, "runs/_live.html", _run_context(request, access, run))
    if run.state not in LIVE:
        trigger_client_event(response, "samples:changed")  # the page counts those that are open
    return response


@project_page(Scope.READ, "GET")
def run_items(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    run = find(Run.objects.of(access.project), pk, "run")
    require_results(access, run)
    params = ItemList.from_query(request.GET)
    page = params.page(params.narrow(Item.objects.filter(run=run)))
    context = {
        **list_context(request, params, page, f"/api/v1/runs/{run.pk}/items"),
        "run": run,
        "tabs": tabs(request.path, params, "state", ItemState.choices),
    }
    return render(request, "runs/items.html", context)


@project_page(Scope.READ, "GET")
def run_calls(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    run = find(Run.objects.of(access.project), pk, "run")
    require_results(access, run)
    params = CallList.from_query(request.GET)
    page = params.read(Call.objects.filter(run=run))
    context = {
        **list_context(request, params, page, f"/api/v1/runs/{run.pk}/calls"),
        "run": run,
        "tabs": tabs(request.path, params, "status", CALL_TABS),
    }
    return render(request, "runs/calls.html", context)


@project_page(Scope.RUN, "POST")
def run_control(request: HttpRequest, access: Access, pk: str, verb: str) -> HttpResponse:
    """Cancel, resume or retry-failed; then the page of the run."""
    run = find(Run.objects.of(access.project).select_related("project"), pk, "run")
    if verb != "cancel":  # the others do the work that its launch asked for
        require_scopes(access, run.kind, run.params)
    if verb == "cancel":
        control.cancel(run=run, user=access.user)
    elif verb == "resume":
        given = request.POST.get("budget", "").strip()
        try:
            control.resume(run=run, user=access.user, budget=_decimal(given) if given else None)
        except Problem as problem:
            context = {**_run_context(request, access, run), "resume_problem": problem.detail, "resume_budget": given}
            return render(request, "runs/page.html", context, status=problem.status)
    else:
        control.retry_failed(run=run, user=access.user)
    return redirect("run-page", access.project.slug, run.pk)


def _run_context(request: HttpRequest, access: Access, run: Run) -> dict[str, object]:
    progress = progress_of(run)
    kind = kind_of(run.kind)
    hidden = why_hidden(access, [run]).get(run.pk, "")
    may_launch = all(access.may(scope) for scope in (Scope.RUN, *kind.scopes(run.params)))
    return {
        "run": run,
        "kind": kind,
        "parameters": parameter_facts(kind, access.project, run.params),
        "progress": progress,
        "lead": _lead(run, kind, hidden=bool(hidden)),
        "hidden": hidden,
        "waiting": waits_of(run),
        "again_url": kind.form_url(access.project, run) if kind.listed and may_launch else "",
        "results": kind.results(run),
        "events": RunEvent.objects.newest(run)[:SHOWN_EVENTS],
        "failures": [] if hidden else Item.objects.failed(run)[:SHOWN_FAILURES],
        "next_steps": [] if hidden or run.state != RunState.SUCCEEDED else open_to(access, kind.next_steps(run)),
        "section": "" if hidden else _section(request, access, run, kind),
        "broker_answers": run.state not in LIVE or broker_answers(),
        "may_launch": may_launch,
        "may_resume": may_launch and run.state in (RunState.CANCELLED, RunState.FAILED),
        "may_retry": may_launch and run.items_failed > 0,
        "api_path": f"/api/v1/runs/{run.pk}",
    }


def _lead(run: Run, kind: Kind[Any], *, hidden: bool) -> str:
    """Return the state of the run in one sentence; `hidden`, without its outcome."""
    ended = f"{run.items_done + run.items_failed + run.items_skipped:,} of {counted(run.items_total, 'item')}"
    if run.state == RunState.QUEUED:
        return "Waiting for a worker."
    if run.state == RunState.RUNNING:
        return f"{ended} {'has' if run.items_total == 1 else 'have'} ended."
    if run.state == RunState.SUCCEEDED:
        return ("" if hidden else kind.conclude(run)) or f"{counted(run.items_done, 'item')} done."
    return f"The run {'was stopped' if run.state == RunState.CANCELLED else 'failed'} after {ended}."


def _section(request: HttpRequest, access: Access, run: Run, kind: Kind[Any]) -> str:
    """The kind's part of the page. It has its own context: the page's processors would query everything twice."""
    if not kind.section_template:
        return ""
    around = {"project": access.project, "access": access, "csrf_token": get_token(request)}
    return render_to_string(kind.section_template, {**around, **kind.section(run)})


@project_page(Scope.READ, "POST")
def row_archive(request: HttpRequest, access: Access, noun: str, pk: str) -> HttpResponse:
    row, label = find_row(access, noun, pk)
    archived = row.archived_at is None
    archive_row(access=access, row=row, label=label, archived=archived)
    said = "is archived: lists show it only with the filter “archived”" if archived else "is unarchived"
    messages.success(request, f"The {label} {said}.")
    return redirect(f"{noun}-page", access.project.slug, pk)


@project_page(Scope.RUN, "GET", "POST")
def row_delete(request: HttpRequest, access: Access, noun: str, pk: str) -> HttpResponse:
    """Ask, or list the blockers. A POST begins the deletion."""
    row, label = find_row(access, noun, pk)
    if request.method == "POST":
        try:
            return redirect("deletion-page", delete_row(access=access, row=row, label=label).pk)
        except Conflict as conflict:
            messages.error(request, conflict.detail)
            return redirect("row-delete", access.project.slug, noun, pk)
    context = {"label": label, "page": f"{noun}-page", "list": f"{noun}-list", "pk": pk, "blockers": blockers_of(row)}
    return render(request, "runs/row_delete.html", context)


def run_tabs(path: str, params: RunList) -> tuple[Tab, ...]:
    """One tab per state, and one for runs that succeeded with failures."""
    states = tabs(path, params.model_copy(update={"outcome": ()}), "state", RunState.choices)
    outcome = params.model_copy(update={"state": ()})
    failures = Tab("With failures", outcome.url(path, outcome=RunOutcome.WITH_FAILURES), bool(params.outcome))
    if params.outcome:
        states = tuple(Tab(tab.label, tab.url, False) for tab in states)
    return (*states, failures)


def _pipelines(access: Access) -> list[tuple[str, list[tuple[Kind[Any], str]]]]:
    """Return the kinds by pipeline, each with the URL of its form."""
    found: dict[str, list[tuple[Kind[Any], str]]] = {pipeline: [] for pipeline in Pipeline}
    for kind in listed_kinds():
        found[kind.pipeline].append((kind, kind.form_url(access.project)))
    return list(found.items())


def _budget(form: LaunchForm) -> Decimal | None:
    given = form.cleaned_data.get("budget")
    return given if isinstance(given, Decimal) else None


def _decimal(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except ArithmeticError:
        amount = Decimal("nan")
    if not amount.is_finite():
        raise Problem(f"{text!r} is not an amount. Write US dollars with a point, such as 2.50.")
    return amount
