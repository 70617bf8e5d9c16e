"""Every page of the demo project, with rows to open taken from its REST calls; fragments are marked as such."""

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


OF_PROJECT = (
    *(
        "overview",
        "system",
        "queue",
        "sample-list",
        "threshold-page",
        "guarantee-page",
        "prediction-page",
        "cluster-list",
        "batch-list",
        "flag-list",
        "dispute-list",
        "assignment-list",
        "agreement-page",
        "duel-list",
        "panel-list",
        "judge-list",
        "trial-list",
        "reign-list",
        "suggestion-list",
        "prompt-list",
        "exclusion-list",
        "import-new",
    ),
    *("scenario-list", "scenario-coverage", "scenario-new"),
    *(
        "trajectory-list",
        "trajectory-tasks",
        "pair-list",
        "run-list",
        "run-new",
        "export-list",
        "export-new",
        "round-list",
        "model-list",
        "model-new",
        "call-list",
    ),
    *("settings", "settings-rules", "question-list", "instructions-list"),
    *("evaluation-list", "evaluation-new", "evaluation-new-live", "leaderboard", "split-list", "experiment-list"),
    *("member-list", "token-list", "audit-list", "service-accounts", "webhook-list"),
)
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
# Filled into a page, answered to a form, or a file; not pages of their own.
NO_PAGES = {
    *(
        "logout",
        "second-factor-code",
        "oidc-start",
        "oidc-return",
        "session",
        "docs",
        "docs-notebook",
        "docs-picture",
        "score-chart",
        "pace-chart",
        "outcome-chart",
        "model-chart",
        "experiment-delete",
        "export-keep",
        "export-preview",
        "export-progress",
        "export-push",
        "export-formats",
        "model-served",
    ),
    *("recipe-delete", "webhook-test", "round-start", "round-export"),
    *(
        "model-test",
        "model-delete",
        "model-apply-test",
        "exclusion-set",
        "exclusion-remove",
        "record-clear",
        "reign-crown",
        "revision-rejudge",
        "reign-end",
        "guidelines-preview",
        "instructions-restore",
    ),
    *("member-add", "project-archive", "project-delete", "row-archive", "invitation-revoke", "invitation-accept"),
    *(
        "member-change",
        "member-remove",
        "token-revoke",
        "webhook-rotate",
        "service-token",
        "service-token-revoke",
        "service-account-remove",
        "webhook-delete",
        "sample-count",
        "sample-similar",
        "sample-prediction",
        "sample-rollout",
        "sample-bulk-confirm",
    ),
    *(
        "sample-bulk",
        "sample-bulk-undo",
        "sample-panel",
        "sample-decide",
        "sample-adjudicate",
        "sample-revise",
        "sample-draft",
        "sample-clear",
    ),
    *("target-set", "sample-second-opinion", "sample-second-opinion-withdraw", "assignment-withdraw"),
    *("sample-suggest", "sample-suggestion", "sample-suggestion-use", "answer-editor-diff"),
    *("review-undo", "answer-facts", "answer-editor", "answer-diff", "lease-heartbeat", "lease-release"),
    *("settings-toml", "settings-change", "instructions-diff", "saved-view-create", "saved-view-delete"),
    *("scenario-gate", "scenario-gate-all", "scenario-clear-axes", "scenario-delete", "scenario-part"),
    *(
        "trajectory-beside",
        "trajectory-conversation-find",
        "trajectory-conversation-raw",
        "trajectory-conversation-steps",
        "trajectory-conversation-turn",
        "trajectory-image",
        "trajectory-prompts",
        "trajectory-replay",
        "trajectory-steps",
        "trajectory-turn",
        "trajectory-compare",
        "trajectory-raw",
    ),
    *("trajectory-exchange", "trajectory-exchange-turn", "trajectory-exchange-raw", "trajectory-find"),
    *("audit-approve", "audit-extend", "guarantee-withdraw", "sample-marks"),
    *("sample-sibling", "sample-labels", "question-change", "flags-resolve"),
    *("notification-open", "notification-read-all"),
    *(
        "evaluation-live",
        "evaluation-chart",
        "evaluation-estimate",
        "evaluation-estimate-live",
        "evaluation-try-reset",
        "compare-chart",
        "baseline-pin",
        "baseline-unpin",
    ),
    *("split-check", "evaluation-line-up"),
    *("prompt-window", "prompt-find", "prompt-raw", "prompt-turn"),
    *(
        "queue-count",
        "history-window",
        "history-find",
        "history-raw",
        "history-turn",
        "run-estimate",
        "run-live",
        "run-control",
    ),
}
# Opened by tests of their own, since they need something that the demo has not.
ELSEWHERE = {
    *("login", "export-compare", "evaluation-compare", "evaluation-episodes", "evaluation-episode"),
    *("scenario-report", "trajectory-page", "invitation", "deletion-page", "server-audit", "row-delete", "oidc-link"),
}


def address(product: Product, page: str) -> str:
    name, args = PAGES[page]
    return reverse(name, args=args(product))


def names_of_the_product() -> set[str]:
    """All names of addresses outside the REST API."""
    resolver = get_resolver()
    return {name for name in resolver.reverse_dict if isinstance(name, str)}
