"""The next steps of a project without an export: one per step of the pipeline that it has begun."""

from dataclasses import dataclass

from django.urls import reverse

from curation.dashboard.overview.stats import Stats
from curation.exports.models import Export
from curation.llm.models import Endpoint
from curation.projects.access import Access
from curation.projects.models import Project, Scope
from curation.runs.models import Run
from curation.samples.models import Status
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


def checklist_of(access: Access, stats: Stats) -> list[ChecklistStep]:
    """The steps up to the first export; empty after it, and in an archived project. The first open one is `next`."""
    if access.project.archived_at or exported(access.project):
        return []
    funnel, samples = stats.funnel, sum(stats.statuses.values())
    steps = []
    if funnel["scenarios"] and not funnel["prompts"]:
        steps = [*_models(access), *_sessions(access, stats)]
    elif funnel["prompts"] or not samples:
        steps = [*_models(access), *_duels(access, stats)]
    left = stats.statuses[Status.PENDING]
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
    return [_marked(step, position == first) for position, step in enumerate(steps)]


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


def _duels(access: Access, stats: Stats) -> list[ChecklistStep]:
    runs = Run.objects.of(access.project)
    records = runs.filter(kind="import", params__kind="pr_records", state="succeeded").exists()
    return [
        _step(
            access,
            Scope.RUN,
            "Turns",
            "Import transcripts of an agent. Each assistant message becomes a prompt to answer.",
            done=stats.funnel["prompts"] > 0,
            action="Import turns",
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
            "Duel",
            "Two models answer each prompt, and the judges compare the answers.",
            done=stats.funnel["duels"] > 0,
            action="Launch a duel",
            view="run-new",
            query="?kind=duel",
        ),
    ]


def _sessions(access: Access, stats: Stats) -> list[ChecklistStep]:
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


def _marked(step: ChecklistStep, is_next: bool) -> ChecklistStep:
    return ChecklistStep(step.title, step.text, step.done, step.action, step.url, step.needs, is_next)
