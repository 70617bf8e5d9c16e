"""The run kinds `push` and `push_tasks`: an export's files, or scenarios as a Harbor data set, as one commit of a
dataset repository."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from django.urls import reverse
from pydantic import ConfigDict, Field

from curation.exports.files.download import DamagedFile, copy_checked
from curation.exports.hub.token import TokenMissing, check_push, read_token, why_refused
from curation.exports.models import Export, export_choices
from curation.projects.models import AuditEntry, Project, Scope
from curation.runs.kinds import (
    Estimate,
    ItemFailed,
    Json,
    Kind,
    Pipeline,
    PlannedItem,
    RunFact,
    Stage,
    StageOf,
    WorkContext,
    Write,
)
from curation.runs.models import Item, Run
from curation.scenarios.bundles.harbor_dataset import HarborDataset
from curation.scenarios.filters import ScenarioFilter
from curation.scenarios.models import Scenario
from curation.web.ids import find_param
from curation.web.problems import Invalid
from curation.web.refusals import all_checks
from curation.web.schemas import StrictModel
from curation.web.text.figures import counted
from sandbox.harbor.export import IMAGE

NAME, TASKS = "push", "push_tasks"
# The names of the files that a push has begun to write, in its run's result until it has ended.
SENT = "sent"


class PushIn(StrictModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    repository: str = Field(
        max_length=200, examples=["acme/shell-agents"], description="`namespace/name`; it is made if it does not exist."
    )
    private: bool = Field(True, description="Without it anybody can read a repository that is made.")


class PushParams(PushIn):
    export: str = Field(examples=["12"], description="The export's id.")


class PushTasksParams(PushIn):
    filter: dict[str, Any] = Field({}, description="Which of the admitted scenarios.")
    image: str = Field(IMAGE, max_length=255, description="The image that the machines of bundles begin from.")


class PushContent(NamedTuple):
    """The files of a push by their names in the repository, what they are in the audit log, and its facts."""

    files: Mapping[str, Path]
    subject: str
    message: str
    facts: Json


P = TypeVar("P", bound=PushIn)


class _PushStage(StageOf[P]):
    name = "push"
    queue = "default"

    def content(self, project: Project, folder: Path) -> PushContent:
        """Write the files into the folder. Raises `ItemFailed`."""
        raise NotImplementedError

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem(key=self._params.repository[:200])

    def work(self, context: WorkContext, item: Item) -> Write:
        from curation.exports.hub.client import PushFailed, push

        # The settings of today: an admin may have forbidden the push since the launch.
        project = Project.objects.get(pk=context.run.project_id)
        if reason := why_refused(project, self._params.repository):
            raise ItemFailed(reason)
        hub = project.settings.hub
        try:
            with tempfile.TemporaryDirectory(prefix="winnow-push-") as folder:
                content = self.content(project, Path(folder))
                context.checkpoint()
                # A commit whose answer is lost has written them too.
                sent = {**context.run.result, SENT: sorted(content.files)}
                Run.objects.filter(pk=context.run.pk).update(result=sent)
                commit = push(
                    self._params.repository,
                    endpoint=hub.endpoint,
                    token=read_token(hub.token),
                    private=self._params.private,
                    files=content.files,
                    earlier=_pushed_before(project, self._params.repository),
                    message=content.message,
                )
        except (PushFailed, TokenMissing) as error:
            raise ItemFailed(f"{self._params.repository}: {error}") from None
        result: Json = {"commit": commit.oid, "url": commit.commit_url, "files": sorted(content.files)}

        def pushed() -> Json:
            run = context.run
            AuditEntry.record(
                actor=run.created_by,
                project=project,
                action="export.push",
                subject=content.subject,
                data={
                    "repository": self._params.repository,
                    "private": self._params.private,
                    "commit": commit.oid,
                    "url": commit.commit_url,
                    **content.facts,
                    "run": str(run.pk),
                },
            )
            earlier = {name: value for name, value in run.result.items() if name != SENT}
            Run.objects.filter(pk=run.pk).update(result={**earlier, **result})
            return result

        return pushed


class PushStage(_PushStage[PushParams]):
    def content(self, project: Project, folder: Path) -> PushContent:
        export = Export.objects.filter(project=project, pk=self._params.export, ready=True).first()
        if export is None:
            raise ItemFailed("The export was deleted.")
        files = {file.name: folder / str(file.pk) for file in export.files.all()}
        try:
            for file in export.files.all():
                copy_checked(file, files[file.name])
        except DamagedFile as damaged:
            raise ItemFailed(str(damaged)) from None
        message = f"Export {export.pk}, manifest {export.manifest_sha256[:16]}"
        return PushContent(files, f"export {export.pk}", message, {"manifest_sha256": export.manifest_sha256})


class PushTasksStage(_PushStage[PushTasksParams]):
    def content(self, project: Project, folder: Path) -> PushContent:
        found = _dataset(project, self._params)
        tasks = found.write(folder)
        if not tasks:
            raise ItemFailed(f"No scenario can leave as a Harbor task: {'; '.join(found.skipped.values())[:500]}")
        files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
        facts: Json = {"tasks": tasks, "skipped": len(found.skipped)}
        return PushContent(files, "scenarios", f"{counted(tasks, 'Harbor task')} of {project.slug}", facts)


class PushRun(Kind[PushParams]):
    name = NAME
    title = "Push of an export to a hub"
    pipeline = Pipeline.EXPORT
    summary = "Sends the files of an export to a dataset repository."
    params = PushParams
    feeds_others = False
    scope = Scope.EXPORT

    def stages(self, params: PushParams) -> Sequence[Stage]:
        return (PushStage(params),)

    def check(self, project: Project, params: PushParams) -> None:
        with all_checks() as check:
            with check():
                export = find_param(Export.objects.of(project), params.export, "export", "params.export")
                if not export.ready:
                    raise Invalid.at("params.export", f"Export {export.pk} is not written.")
            with check():
                check_push(project, params.repository)

    def estimate(self, project: Project, params: PushParams) -> Estimate:
        return Estimate(items=1, notes=("A push calls no model.",))

    def choices(self, project: Project) -> Mapping[str, Sequence[tuple[str, str]]]:
        return {"export": export_choices(project)}

    def conclude(self, run: Run) -> str:
        files = len(run.result.get("files", []))
        return f"{counted(files, 'file')} of export {run.params['export']} pushed to {run.params['repository']}."

    def results(self, run: Run) -> Sequence[RunFact]:
        result = run.result
        commit = [RunFact("Commit", result["commit"][:12], result["url"])] if "commit" in result else []
        export = reverse("export-page", args=[run.project.slug, run.params["export"]])
        files = [RunFact("Files", ", ".join(result["files"]))] if result.get("files") else []
        return [RunFact("Export", f"Export {run.params['export']}", export), *commit, *files]

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        slug = run.project.slug
        evaluate = ("Evaluate a model", reverse("evaluation-new", args=[slug]))
        return [evaluate, ("Open the export", reverse("export-page", args=[slug, run.params["export"]]))]

    def begin(self, run: Run, params: PushParams) -> Json:
        return {"export": params.export, "repository": params.repository}


class PushTasksRun(Kind[PushTasksParams]):
    name = TASKS
    title = "Push of scenarios to a hub, as a Harbor data set"
    pipeline = Pipeline.EXPORT
    summary = "Sends admitted scenarios to a dataset repository, as tasks that Harbor runs."
    filter = ScenarioFilter
    params = PushTasksParams
    feeds_others = False
    scope = Scope.EXPORT
    tells_of_samples = False

    def stages(self, params: PushTasksParams) -> Sequence[Stage]:
        return (PushTasksStage(params),)

    def check(self, project: Project, params: PushTasksParams) -> None:
        with all_checks() as check:
            with check():
                if not _dataset(project, params).rows.admitted().exists():
                    raise Invalid.at("params.filter", "No admitted scenario matches.", code="no_scenarios")
            with check():
                check_push(project, params.repository)

    def estimate(self, project: Project, params: PushTasksParams) -> Estimate:
        return Estimate(items=1, notes=("A push calls no model.",))

    def conclude(self, run: Run) -> str:
        tasks = sum(name.endswith("/task.toml") for name in run.result.get("files", []))
        return f"{counted(tasks, 'task')} pushed to {run.params['repository']}."

    def results(self, run: Run) -> Sequence[RunFact]:
        return [RunFact("Commit", run.result["commit"][:12], run.result["url"])] if "commit" in run.result else []


def _dataset(project: Project, params: PushTasksParams) -> HarborDataset:
    rows = ScenarioFilter.from_json(params.filter, path="params.filter").apply(Scenario.objects.of(project))
    git_url = f"{project.settings.hub.endpoint.rstrip('/')}/datasets/{params.repository}"
    return HarborDataset(project, rows, params.image, git_url=git_url)


def pushes_of(export: Export) -> list[Run]:
    """Return the pushes of an export, the newest first."""
    runs = Run.objects.filter(project=export.project_id, kind=NAME, params__export=str(export.pk), deleting_at=None)
    return list(runs.select_related("created_by").order_by("-id")[:50])


def _pushed_before(project: Project, repository: str) -> list[str]:
    """Return the names of all files that pushes of this project have written, or may have, to the repository."""
    runs = Run.objects.filter(project=project, kind__in=(NAME, TASKS), params__repository=repository)
    results = runs.values_list("result", flat=True)
    return sorted({name for result in results for name in (result.get("files") or result.get(SENT, ()))})
