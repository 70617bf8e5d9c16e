"""The next steps of a project without an export: one per step of the pipeline that it has begun."""

from dataclasses import dataclass, replace

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
class ChecklistStep:
    """`url` is empty if the caller's role does not allow the step; then `needs` names the roles that do."""

    title: str
    text: str
    done: bool
    action: str
    url: str
    needs: str
    next: bool = False


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


def checklist_of(access: Access, stats: StatsOut, start: str = "") -> list[ChecklistStep]:
    """The steps up to the first export of the start that the project has made, else of `start`; empty after the export,
    in an archived project, and before a start. The first open one is `next`."""
    if access.project.archived_at or exported(access.project):
        return []
    made, samples = start_of(access.project, stats, start), sum(stats.statuses.values())
    if not made:
        return []
    steps = []
    if made == "tasks":
        steps = [*_models(access), _scenarios(access, stats), *_sessions(access, stats)]
    elif made == "prompts":
        steps = [*_models(access), *_duels(access, stats)]
    elif not samples:
        steps = [_import(access, next(one for one in STARTS if one.name == made))]
    left = stats.statuses[SampleStatus.PENDING]
    review = f"Review {counted(left, 'sample')}" if left else "Open the queue"
    steps += [
        _step(
            access,
            Scope.REVIEW,
            "Review",
            "Approve, reject or refine the borderline samples.",
            done=samples > left,
            action=review,
            view="queue",
        ),
        _step(
            access,
            Scope.EXPORT,
            "Export",
            "Write the approved samples for a trainer.",
            done=False,
            action="New export",
            view="export-new",
        ),
    ]
    first = next(position for position, step in enumerate(steps) if not step.done and step.title != RECORDS)
    return [replace(step, next=position == first) for position, step in enumerate(steps)]


def exported(project: Project) -> bool:
    return Export.objects.of(project).filter(ready=True, counts__exported__gt=0).exists()


RECORDS = "Pull-request records (optional)"


def _models(access: Access) -> list[ChecklistStep]:
    return [
        _step(
            access,
            Scope.ADMIN,
            "Models",
            "Add the models that answer and that judge: a name, an address, the variable with the key.",
            done=Endpoint.objects.of(access.project).exists(),
            action="Add a model",
            view="model-new",
        )
    ]


def _import(access: Access, start: Start) -> ChecklistStep:
    what = "runs" if start.kind == "trajectories" else "answers"
    return _step(
        access,
        Scope.RUN,
        "Import",
        "From a file, an archive or an address. A preview shows how the rows are read.",
        done=False,
        action=f"Import {what}",
        view="import-new",
        query=f"?kind={start.kind}",
    )


def _scenarios(access: Access, stats: StatsOut) -> ChecklistStep:
    return _step(
        access,
        Scope.RUN,
        "Tasks",
        "Write scenarios by hand, let a model write them, or import bundles.",
        done=stats.funnel["scenarios"] > 0,
        action="New scenario",
        view="scenario-new",
    )


def _duels(access: Access, stats: StatsOut) -> list[ChecklistStep]:
    runs, is_agent = Run.objects.of(access.project), access.project.settings.data.is_agent
    pair = access.project.settings.data.words.pair
    records = runs.filter(kind="import", params__kind="pr_records", state="succeeded").exists()
    steps = [
        _step(
            access,
            Scope.RUN,
            "Prompts",
            "Import conversations. Each message of the assistant becomes a prompt to answer.",
            done=stats.funnel["prompts"] > 0,
            action="Import prompts",
            view="import-new",
            query="?kind=turns",
        ),
        _step(
            access,
            Scope.RUN,
            RECORDS,
            "Titles and patches of the tasks. The leak lint compares answers with them.",
            done=records,
            action="Import records",
            view="import-new",
            query="?kind=pr_records",
        ),
        _step(
            access,
            Scope.RUN,
            pair,
            "Two models answer each prompt, and the judges compare the answers.",
            done=runs.filter(kind__in=("duel", "judge"), state="succeeded").exists(),
            action=f"Launch a {pair.lower()}",
            view="run-new",
            query="?kind=duel",
        ),
    ]
    return [step for step in steps if is_agent or step.title != RECORDS]


def _sessions(access: Access, stats: StatsOut) -> list[ChecklistStep]:
    return [
        _step(
            access,
            Scope.RUN,
            "Gate",
            "Prove that the scenarios can be solved. Only admitted ones are rolled out.",
            done=stats.funnel["scenarios admitted"] > 0,
            action="Launch a gate",
            view="run-new",
            query="?kind=gate",
        ),
        _step(
            access,
            Scope.RUN,
            "Rollout",
            "A model works on each admitted scenario in a sandbox.",
            done=stats.funnel["trajectories"] > 0,
            action="Launch a rollout",
            view="run-new",
            query="?kind=rollout",
        ),
    ]


def _step(
    access: Access, scope: Scope, title: str, text: str, *, done: bool, action: str, view: str, query: str = ""
) -> ChecklistStep:
    allowed = access.may(scope)
    url = reverse(view, args=[access.project.slug]) + query if allowed else ""
    who = {Scope.ADMIN: "An admin", Scope.REVIEW: "A reviewer"}.get(scope, "A curator")
    return ChecklistStep(title, text, done, action, url, "" if allowed else f"{who} of the project does this.")
