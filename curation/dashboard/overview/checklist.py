"""The next steps of a project without an export: one per step of the pipeline that it has begun."""

from dataclasses import dataclass

from django.db.models import QuerySet
from django.urls import reverse

from curation.dashboard.overview.stats import StatsOut
from curation.exports.models import Export
from curation.llm.models import Endpoint
from curation.projects.access import Access
from curation.projects.models import Project, Scope
from curation.runs.models import Run
from curation.samples.models import SampleStatus
from curation.web.text.figures import counted


@dataclass(frozen=True, slots=True)
class Start:
    """A way to begin a project. `sample` names a file of the demo that can be imported as rows of `kind`."""

    name: str
    title: str
    text: str
    kind: str
    sample: str


STARTS = (
    Start(
        "answers",
        "I have answers to review",
        "Import rows with answers, or with a chosen and a rejected one, and decide which of them are kept.",
        "samples",
        "preferences.jsonl",
    ),
    Start(
        "runs",
        "I have agents' runs",
        "Import whole runs of an agent, read them step by step, and keep the good ones.",
        "trajectories",
        "turns.jsonl",
    ),
    Start(
        "prompts",
        "I have prompts, models shall answer",
        "Import prompts. Two models answer each of them, and judges compare the answers.",
        "turns",
        "turns.jsonl",
    ),
    Start(
        "tasks",
        "I make tasks",
        "Write tasks with checks, prove that they can be solved, and let a model work on them in a sandbox.",
        "scenarios",
        "scenarios.jsonl",
    ),
)


def start_of(project: Project, stats: StatsOut, asked: str = "") -> str:
    """Return the name of the start that the project has made, else `asked` if it is one, else ""."""
    funnel = stats.funnel
    prompts = funnel["prompts"] and (funnel["answered by king"] or funnel["challenged"] or not _imports(project))
    if prompts or "turns" in _imports(project):
        return "prompts"
    if funnel["scenarios"]:
        return "tasks"
    if funnel["trajectories"]:
        return "runs"
    if sum(stats.statuses.values()):
        return "answers"
    return asked if asked in {start.name for start in STARTS} else ""


def _imports(project: Project) -> set[str]:
    runs = Run.objects.of(project).filter(kind="import", state="succeeded").order_by()
    return set(runs.values_list("params__kind", flat=True).distinct())


def checklist_of(access: Access, stats: StatsOut, start: str = "") -> list[dict[str, object]]:
    """The steps up to the first export of the start that the project has made, else of `start`; empty after the export,
    in an archived project, and before a start. The first open one is `next`."""
    if access.project.archived_at or exported(access.project):
        return []
    made, samples = start_of(access.project, stats, start), sum(stats.statuses.values())
    if not made:
        return []
    titles = [*ON_THE_WAY[made], "Review", "Export"]
    if samples and made in ("answers", "runs"):
        titles.remove("Import")
    if not access.project.settings.data.is_agent and RECORDS in titles:
        titles.remove(RECORDS)
    steps = [
        _step(
            access,
            title,
            done=_done(access.project, stats, title),
            start=made,
            left=stats.statuses[SampleStatus.PENDING],
        )
        for title in titles
    ]
    first = next(step for step in steps if not step["done"] and step["title"] != RECORDS)
    return [step | {"next": step is first} for step in steps]


def exported(project: Project) -> bool:
    return Export.objects.of(project).filter(ready=True, counts__exported__gt=0).exists()


RECORDS, PAIR = "Pull-request records (optional)", "pair"
# The steps before the review, by the start.
ON_THE_WAY = {
    "answers": ("Import",),
    "runs": ("Import",),
    "prompts": ("Models", "Prompts", RECORDS, PAIR),
    "tasks": ("Models", "Tasks", "Gate", "Rollout"),
}
# By title: the right that the step needs, its text and its link, and the page with the query of the link.
STEPS = {
    "Import": (
        *(Scope.RUN, "From a file, an archive or an address. A preview shows how the rows are read."),
        *("Import {what}", "import-new", "?kind={kind}"),
    ),
    "Models": (
        Scope.ADMIN,
        "Add the models that answer and that judge: a name, an address, the variable with the key.",
        *("Add a model", "model-new", ""),
    ),
    "Prompts": (
        *(Scope.RUN, "Import conversations. Each message of the assistant becomes a prompt to answer."),
        *("Import prompts", "import-new", "?kind=turns"),
    ),
    RECORDS: (
        *(Scope.RUN, "Titles and patches of the tasks. The leak lint compares answers with them."),
        *("Import records", "import-new", "?kind=pr_records"),
    ),
    PAIR: (
        *(Scope.RUN, "Two models answer each prompt, and the judges compare the answers."),
        *("Launch a {pair}", "run-new", "?kind=duel"),
    ),
    "Tasks": (
        *(Scope.RUN, "Write scenarios by hand, let a model write them, or import bundles."),
        *("New scenario", "scenario-new", ""),
    ),
    "Gate": (
        *(Scope.RUN, "Prove that the scenarios can be solved. Only admitted ones are rolled out."),
        *("Launch a gate", "run-new", "?kind=gate"),
    ),
    "Rollout": (
        *(Scope.RUN, "A model works on each admitted scenario in a sandbox."),
        *("Launch a rollout", "run-new", "?kind=rollout"),
    ),
    "Review": (Scope.REVIEW, "Approve, reject or refine the borderline samples.", "{review}", "queue", ""),
    "Export": (Scope.EXPORT, "Write the approved samples for a trainer.", "New export", "export-new", ""),
}


def _done(project: Project, stats: StatsOut, title: str) -> bool:
    """Whether a step is done; only what it needs is asked of the database."""
    runs, funnel = Run.objects.of(project).filter(state="succeeded"), stats.funnel
    asked: dict[str, QuerySet[Endpoint] | QuerySet[Run]] = {
        "Models": Endpoint.objects.of(project),
        RECORDS: runs.filter(kind="import", params__kind="pr_records"),
        PAIR: runs.filter(kind__in=("duel", "judge")),
    }
    by_figures = {
        "Prompts": funnel["prompts"] > 0,
        "Tasks": funnel["scenarios"] > 0,
        "Gate": funnel["scenarios admitted"] > 0,
        "Rollout": funnel["trajectories"] > 0,
        "Review": sum(stats.statuses.values()) > stats.statuses[SampleStatus.PENDING],
    }
    return asked[title].exists() if title in asked else by_figures.get(title, False)


def _step(access: Access, title: str, *, done: bool, start: str, left: int) -> dict[str, object]:
    """`url` is empty if the caller's role does not allow the step; then `needs` names the roles that do."""
    scope, text, action, view, query = STEPS[title]
    pair = access.project.settings.data.words.pair
    words = {
        "what": "runs" if start == "runs" else "answers",
        "kind": next(one.kind for one in STARTS if one.name == start),
        "pair": pair.lower(),
        "review": f"Review {counted(left, 'sample')}" if left else "Open the queue",
    }
    allowed = access.may(scope)
    url = reverse(view, args=[access.project.slug]) + query.format(**words) if allowed else ""
    who = {Scope.ADMIN: "An admin", Scope.REVIEW: "A reviewer"}.get(scope, "A curator")
    needs = "" if allowed else f"{who} of the project does this."
    return {
        "title": pair if title == PAIR else title,
        "text": text,
        "done": done,
        "action": action.format(**words),
        "url": url,
        "needs": needs,
    }
