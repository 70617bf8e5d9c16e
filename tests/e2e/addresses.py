"""Every page of the demo project, with rows to open taken from its REST calls; fragments are named as what they are."""

from collections.abc import Callable

from django.urls import get_resolver, reverse

from tests.product import Product

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


def _nothing(product: Product) -> list[str]:
    return []


OF_PROJECT = (
    *("overview", "system", "queue", "sample-list", "duel-list", "prompt-list", "exclusion-list", "import-new"),
    *("trajectory-list", "pair-list", "run-list", "run-new", "export-list", "export-new", "model-list", "model-new"),
    *("settings", "settings-rules", "instructions-list"),
    *("member-list", "token-list", "audit-list", "webhook-list"),
)
PAGES: dict[str, tuple[str, Args]] = {
    **{name: (name, _project) for name in OF_PROJECT},
    "home": ("home", _nothing),
    "project-new": ("project-new", _nothing),
    "components": ("components", _nothing),
    "sample-page": ("sample-page", _first("/projects/demo/samples")),
    "duel-page": ("duel-page", _first("/projects/demo/duels")),
    "prompt-page": ("prompt-page", _first("/projects/demo/prompts")),
    "export-page": ("export-page", _first("/projects/demo/exports")),
    "model-edit": ("model-edit", _first("/projects/demo/models", "name")),
    "instructions": ("instructions", lambda product: ["demo", "judge"]),
    "run-page": ("run-page", _run("duel")),
    "run-items": ("run-items", _run("duel")),
    "run-calls": ("run-calls", _run("duel")),
    "run-page of an import": ("run-page", _run("import")),
    "run-page of an export": ("run-page", _run("export")),
}
# Filled into a page, answered to a form, or a file; not pages of their own.
NO_PAGES = {
    *("logout", "score-chart", "pace-chart", "outcome-chart", "export-preview", "export-progress", "model-served"),
    *("recipe-delete",),
    *("model-test", "model-delete", "exclusion-set", "exclusion-remove", "guidelines-preview", "instructions-restore"),
    *("member-change", "member-remove", "token-revoke", "webhook-delete", "sample-count", "sample-bulk-confirm"),
    *("sample-bulk", "sample-bulk-undo", "sample-panel", "sample-decide", "sample-revise", "sample-draft"),
    *("review-undo", "answer-facts", "answer-editor", "answer-diff", "lease-heartbeat", "lease-release"),
    *("settings-toml", "instructions-diff", "saved-view-create", "saved-view-delete"),
    *("trajectory-replay", "trajectory-steps", "trajectory-turn", "trajectory-compare", "trajectory-raw"),
    *("trajectory-exchange", "trajectory-exchange-raw", "trajectory-find", "sample-sibling"),
    *("history-window", "history-find", "history-raw", "history-turn", "run-estimate", "run-live", "run-control"),
}
# Opened by tests of their own, since they need something that the demo has not.
ELSEWHERE = {"login", "export-compare", "trajectory-page"}


def address(product: Product, page: str) -> str:
    name, args = PAGES[page]
    return reverse(name, args=args(product))


def names_of_the_product() -> set[str]:
    """All names of addresses outside the REST API."""
    resolver = get_resolver()
    return {name for name in resolver.reverse_dict if isinstance(name, str)}
