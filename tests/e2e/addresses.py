"""Every page of the demo project, with rows to open taken from its REST calls; fragments are marked as such."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from django.urls import URLResolver, get_resolver, reverse

from tests.product import ROOT, Product

TEMPLATES = ROOT / "templates"
Args = Callable[[Product], list[str]]


def _project(product: Product) -> list[str]:
    return ["demo"]


def _first(path: str, key: str = "id") -> Args:
    def args(product: Product) -> list[str]:
        return ["demo", str(product.get(path, limit=1)["data"][0][key])]

    return args


def _run(kind: str) -> Args:
    def args(product: Product) -> list[str]:
        return ["demo", product.get("/projects/demo/runs", kind=kind, limit=1)["data"][0]["id"]]

    return args


def _answer(product: Product) -> list[str]:
    evaluation = str(product.get("/projects/demo/evaluations", limit=1)["data"][0]["id"])
    return ["demo", evaluation, str(product.get(f"/evaluations/{evaluation}/calls", limit=1)["data"][0]["id"])]


def _row(product: Product) -> list[str]:
    export = str(product.get("/projects/demo/exports", limit=1)["data"][0]["id"])
    return ["demo", export, product.get(f"/exports/{export}/rows", limit=1)["data"][0]["sha256"]]


def _call(product: Product) -> list[str]:
    run = product.get("/projects/demo/runs", kind="duel", limit=1)["data"][0]["id"]
    return ["demo", product.get(f"/runs/{run}/calls", limit=1)["data"][0]["id"]]


def _nothing(product: Product) -> list[str]:
    return []


def _views(resolver: URLResolver) -> Iterator[tuple[str, Callable[..., Any]]]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from _views(pattern)
        elif pattern.name:
            yield pattern.name, pattern.callback


def _texts(function: Any, depth: int = 2) -> set[str]:
    """The texts in the code of a function, and of those of its module that it calls."""
    code = getattr(function, "__code__", None)
    if code is None:
        return set()
    called = [function.__globals__.get(name) for name in code.co_names] if depth else []
    inner = [one for one in called if getattr(one, "__module__", "") == function.__module__]
    texts = {one for one in code.co_consts if isinstance(one, str)}
    return texts.union(*(_texts(inspect.unwrap(one), depth - 1) for one in inner if inspect.isroutine(one)))


def _only_changes(view: Any) -> bool:
    """Whether it takes no GET."""
    while view is not None:
        methods = inspect.getclosurevars(view).nonlocals.get("request_method_list", ["GET"])
        if "GET" not in methods:
            return True
        view = getattr(view, "__wrapped__", None)
    return False


def full_pages() -> set[str]:
    """The names of the views that fill a whole page: one whose template extends another."""
    extending = {
        str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*.html") if "{% extends" in path.read_text()
    }
    return {
        name
        for name, view in _views(get_resolver())
        if inspect.isfunction(view) and extending & _texts(inspect.unwrap(view)) and not _only_changes(view)
    }


def _parts(name: str) -> list[str]:
    parts: list[str] = get_resolver().reverse_dict.getlist(name)[0][0][0][1]
    return parts


# Opened by tests of their own, since they need something that the demo has not.
ELSEWHERE = {
    *("login", "export-compare", "evaluation-compare", "evaluation-episodes", "evaluation-episode"),
    *("scenario-report", "trajectory-page", "invitation", "deletion-page", "server-audit", "row-delete", "oidc-link"),
    *("docs", "service-token"),
}
# The queue's page is filled by a helper of another module.
OF_PROJECT = ("queue", *sorted(name for name in full_pages() - ELSEWHERE if _parts(name) == ["slug"]))
PAGES: dict[str, tuple[str, Args]] = {
    **{name: (name, _project) for name in OF_PROJECT},
    "home": ("home", _nothing),
    "notification-list": ("notification-list", _nothing),
    "project-new": ("project-new", _nothing),
    "preferences": ("preferences", _nothing),
    "change-password": ("change-password", _nothing),
    "project-overview": ("project-overview", _nothing),
    "second-factor": ("second-factor", _nothing),
    "signed-in": ("signed-in", _nothing),
    "components": ("components", _nothing),
    "document": ("document", lambda product: ["statistics"]),
    "sample-page": ("sample-page", _first("/projects/demo/samples")),
    "duel-page": ("duel-page", _first("/projects/demo/duels")),
    "prompt-page": ("prompt-page", _first("/projects/demo/prompts")),
    "export-page": ("export-page", _first("/projects/demo/exports")),
    "scenario-page": ("scenario-page", _first("/projects/demo/scenarios")),
    "scenario-edit": ("scenario-edit", _first("/projects/demo/scenarios")),
    "evaluation-page": ("evaluation-page", _first("/projects/demo/evaluations")),
    "evaluation-calls": ("evaluation-calls", _first("/projects/demo/evaluations")),
    "evaluation-call": ("evaluation-call", _answer),
    "split-page": ("split-page", _first("/projects/demo/splits")),
    "run-page of an evaluation": ("run-page", _run("evaluate")),
    "model-edit": ("model-edit", _first("/projects/demo/models", "name")),
    "model-usage": ("model-usage", _first("/projects/demo/models", "name")),
    "instructions": ("instructions", lambda product: ["demo", "judge"]),
    "run-page": ("run-page", _run("duel")),
    "run-items": ("run-items", _run("duel")),
    "run-calls": ("run-calls", _run("duel")),
    "export-rows": ("export-rows", _first("/projects/demo/exports")),
    "export-row": ("export-row", _row),
    "export-duplicates": ("export-duplicates", _first("/projects/demo/exports")),
    "export-contaminated": ("export-contaminated", _first("/projects/demo/exports")),
    "call-exports": ("call-exports", _call),
    "run-page of an import": ("run-page", _run("import")),
    "run-page of an export": ("run-page", _run("export")),
}


def address(product: Product, page: str) -> str:
    name, args = PAGES[page]
    return reverse(name, args=args(product))
