"""Stage `repair-n` of attacks: a teacher mends what got in. A mended Harbor task is saved once Harbor has confirmed it:
the attacks that got in fail, the gate admits it, and honest work is rewarded."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from django.conf import settings
from pydantic import Field, ValidationError

from curation.llm.client.completion import Completion, EndpointTarget, Message
from curation.projects.instructions.texts import Instructions
from curation.runs.calls.targets import run_instructions, run_target
from curation.runs.kinds import LlmContext, Write
from curation.runs.models import Item, ItemState, Run
from curation.scenarios.author.repair import RepairJob, RepairStage, save_repair
from curation.scenarios.author.reply import document_of, response_format, told
from curation.scenarios.author.stage import AuthorParams, WrittenDocument, ask_for
from curation.scenarios.bundles.document import field_errors
from curation.scenarios.bundles.harbor import HarborTask, parse_scenario, stored_task
from curation.scenarios.gate.harbor import BACKEND
from curation.scenarios.gate.result import BundleGateResult
from curation.scenarios.gate.stage import Scenarios, gate_harbor
from curation.scenarios.models import Family, ScenarioStatus
from curation.scenarios.taxonomy.axes import Taxonomy
from curation.trajectories.attack.harbor import SHOWN_FILE, HarborJob, got_in, shown, try_program, work_honestly
from curation.trajectories.params import AttackParams
from curation.web.problems import Invalid
from curation.web.schemas import StrictModel
from sandbox.gate.report import Check, ReportLine
from sandbox.harbor.task_folder import TESTS

# The programs that got into a task, in the result of an attack's item.
PROGRAMS = "programs"


class ChangedFile(StrictModel):
    path: str
    content: str


class TaskRepair(StrictModel):
    """The teacher's reply: files of `tests/` with their new content."""

    files: list[ChangedFile] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class TaskJob(RepairJob):
    """`programs` got into the task in this run. Without a `solver` the reference alone is the honest work."""

    programs: Sequence[str]
    solver: tuple[EndpointTarget, Instructions] | None


class MendStage(RepairStage):
    queue = "rollout"

    def __init__(self, params: AttackParams, number: int, scenarios: Scenarios) -> None:
        super().__init__(AuthorParams(model=params.teacher, repeats=params.repeats), number, scenarios)
        self._solver, self._samples, self.most_open = params.solver, params.samples, settings.SANDBOX_SESSIONS

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        return [run_target(run, name) for name in (self._params.model, self._solver) if name]

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, RepairJob]:
        jobs = super().load(run, items)
        tasks = {pk: job for pk, job in jobs.items() if job.scenario.family == Family.HARBOR}
        programs: dict[int | None, list[str]] = {job.scenario.pk: [] for job in tasks.values()}
        attacks = Item.objects.filter(run=run, stage__startswith="attack-", state=ItemState.DONE)
        for pk, result in attacks.filter(target_id__in=programs).order_by("pk").values_list("target_id", "result"):
            programs[pk] += result[PROGRAMS]
        mender, honest = (run_instructions(run, name) for name in ("mender_harbor", "solver_harbor"))
        solver = (run_target(run, self._solver), honest) if self._solver else None
        return jobs | {
            pk: TaskJob(
                replace(one.job, instructions=mender), one.scenario, one.report, programs[one.scenario.pk], solver
            )
            for pk, one in tasks.items()
        }

    async def work(self, context: LlmContext, item: Item, job: RepairJob | None) -> Write:
        if not isinstance(job, TaskJob):
            return await super().work(context, item, job)
        reused: list[int] = []

        async def read(said: Completion) -> tuple[HarborTask, list[Check]] | list[str]:
            mended = read_repair(said, job.scenario.text.bundle, job.job.taxonomy)
            if isinstance(mended, list):
                return mended
            checks = await self._confirm(context, item, job, mended, reused)
            return [told(check.as_json()) for check in checks if not check.passed] or (mended, checks)

        form = response_format(TaskRepair, "repair")
        written = await ask_for(context, item, job.job, _messages(job), self._params, read, form)
        mended, checks = written.document
        checks.append(Check(f"repair by {job.job.target.name}", True, "", tuple(_diff(job, mended))))
        saved = WrittenDocument(mended, written.attempt, [*written.reused, *reused])
        return save_repair(
            context.run, job.scenario, saved, BundleGateResult(ScenarioStatus.ADMITTED, "", tuple(checks), BACKEND)
        )

    async def _confirm(
        self, context: LlmContext, item: Item, job: TaskJob, mended: HarborTask, reused: list[int]
    ) -> list[Check]:
        """The checks of a repair, until one of them fails: the attacks again, the gate, and honest work."""
        task, checks = mended.task(), list[Check]()
        for number, program in enumerate(job.programs, 1):
            tried = await try_program(task, program)
            checks.append(Check(f"attack {number} that got in, again", not tried.undone, got_in(tried), tried.lines))
        if all(check.passed for check in checks):
            checks += (await gate_harbor(mended.document(), repeats=self._params.repeats)).checks
        if job.solver and all(check.passed for check in checks):
            solving = HarborJob(job.scenario, task, *job.solver)
            checks.append(await work_honestly(context, item, solving, self._samples, reused))
        return checks


def read_repair(said: Completion, before: Mapping[str, Any], taxonomy: Taxonomy) -> HarborTask | list[str]:
    """The task with the files of the reply, or the errors. A file keeps its mode."""
    reply = document_of(said, "files")
    if isinstance(reply, str):
        return [reply]
    try:
        changed = TaskRepair.model_validate(reply).files
    except ValidationError as error:
        return [str(one) for one in field_errors(error)]
    if foreign := [file.path for file in changed if not file.path.startswith(f"{TESTS}/")]:
        return [f"{path[:100]}: only files of {TESTS}/ may be changed" for path in foreign]
    parts = {part["path"]: part for part in before["files"]}
    for file in changed:
        new = "755" if file.content.startswith("#!") else "644"
        mode = parts[file.path].get("mode", new) if file.path in parts else new
        parts[file.path] = {"path": file.path, "mode": mode, "content": file.content}
    try:
        document = {**before, "files": list(parts.values())}
        mended = cast("HarborTask", parse_scenario(document, taxonomy=taxonomy))
    except Invalid as refused:
        return [str(error) for error in refused.errors]
    return mended if _texts(mended) != _texts(HarborTask.model_validate(before)) else ["no file is changed"]


def _messages(job: TaskJob) -> list[Message]:
    """The task, its tests, and what got in."""
    attacks = [("attack", told(check, SHOWN_FILE)) for check in job.report.checks if not check["passed"]]
    user = shown(stored_task(job.scenario.text.bundle), [TESTS], call="mend", then=attacks)
    return [{"role": "system", "content": job.job.instructions.text}, {"role": "user", "content": user}]


def _diff(job: TaskJob, mended: HarborTask) -> Iterator[ReportLine]:
    before = _texts(HarborTask.model_validate(job.scenario.text.bundle))
    for path, text in _texts(mended).items():
        if text != (old := before.get(path, "")):
            lines = difflib.unified_diff(old.splitlines(), text.splitlines(), "before", "after", lineterm="")
            yield ReportLine(f"diff {path}", "\n".join(lines))


def _texts(task: HarborTask) -> dict[str, str]:
    return {part.path: part.content or part.base64 or "" for part in task.files}
