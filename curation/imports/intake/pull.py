"""The run kind `pull`: store the model calls of a Langfuse or Phoenix server, for the next import of turns.

Each page is stored beside the exporters' batches, and then its cursor: a worker that dies in between stores a page
twice, and turns are told apart by their content. The settings `intake` name the sources, and how often each is read.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from pydantic import BaseModel, BeforeValidator, Field

from curation.imports.intake.otlp import is_sampled
from curation.imports.intake.services import PullFailed, TraceService, TraceSource
from curation.imports.intake.spool import import_pulled, keep_batch, keep_pulled
from curation.imports.row_kinds import import_kind
from curation.imports.sources.stored import hold_uploads
from curation.llm.endpoints.keys import rules_of
from curation.projects.models import Project
from curation.runs.kinds import (
    ItemFailed,
    Json,
    Kind,
    Pipeline,
    PlannedItem,
    Preset,
    RunFact,
    Stage,
    StageOf,
    WorkContext,
    Write,
)
from curation.runs.launch import launch
from curation.runs.models import LIVE, Item, Run, RunState
from curation.web.outbound.addresses import IMPORTS, refuse_private
from curation.web.problems import Invalid
from curation.web.refusals import all_checks
from curation.web.schemas import StrictModel
from curation.web.text.figures import counted
from curation.web.text.storable import parse_inner

NAME = "pull"
# Langfuse shows a call up to 15 minutes late: the schedule only reads older calls than this.
SETTLE = timedelta(minutes=20)


def _as_utc(given: object) -> object:
    """Read a time without a zone, or a date, as one of UTC."""
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            return given
    return given.replace(tzinfo=UTC) if isinstance(given, datetime) and given.tzinfo is None else given


Time = Annotated[datetime, BeforeValidator(_as_utc)]


class PullParams(StrictModel):
    source: str = Field(max_length=60, examples=["production"], description="A name of the settings `intake.sources`.")
    since: Time | None = Field(None, examples=["2026-01-31T00:00:00Z"])
    until: Time | None = Field(None, examples=["2026-02-28T00:00:00Z"])
    kind: Literal["turns", "trajectories"] = Field(
        "turns", title="Import as", description="Model calls as turns, or each trace as a trajectory."
    )
    options: dict[str, str] = Field(
        {}, title="Options of the import", description="Such as `trained = marked`; a value may be JSON."
    )

    def read_options(self) -> dict[str, Any]:
        return {name: _json_or_text(text) for name, text in self.options.items()}


def _json_or_text(text: str) -> Any:
    try:
        return parse_inner(text)
    except ValueError:
        return text


class PullProgress(BaseModel):
    """The progress of a pull, stored in the item's data: `cursor` is that of the next page."""

    cursor: str = ""
    ended: bool = False
    read: int = 0
    stored: int = 0
    unreadable: int = 0
    imports: list[int] = []


class PullStage(StageOf[PullParams]):
    name = NAME
    queue = "default"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        yield PlannedItem(key=self._params.source)

    def work(self, context: WorkContext, item: Item) -> Write:
        run, params = context.run, self._params
        # The settings of today: a source that an admin has removed since the launch is not read.
        project = Project.objects.get(pk=run.project_id)
        text = project.settings.intake.sources.get(params.source, "")
        if reason := _why_refused(project, text):
            raise ItemFailed(reason)
        source = TraceSource.of(text)
        secret = os.environ.get(source.key, "").strip() if source.key else ""
        if source.key and not secret:
            raise ItemFailed(f"The environment variable {source.key} is not set on this worker.")
        progress = PullProgress.model_validate(item.data)
        until = datetime.fromisoformat(run.result["until"])
        share = project.settings.intake.share
        seen = {progress.cursor}
        try:
            with TraceService(
                source, secret, since=params.since, until=until, checkpoint=context.checkpoint
            ) as service:
                while not progress.ended:
                    page = service.page(progress.cursor)
                    if page.cursor and page.cursor in seen:
                        raise PullFailed(f"{source.address} leads back to a page that was read: its pages have no end.")
                    seen.add(page.cursor)
                    calls = [row for row in page.rows if is_sampled(row, share)]
                    if params.kind == "turns":
                        keep_batch(project=project, user=run.created_by, rows=calls)
                    else:  # the calls of a trace are one trajectory, so they are imported together
                        keep_pulled(run, calls)
                    progress.read += page.read
                    progress.stored += len(calls)
                    progress.unreadable += page.unreadable
                    progress.cursor, progress.ended = page.cursor, not page.cursor
                    with transaction.atomic():
                        context.save_progress(item, progress.model_dump(), _figures(progress))
                    context.checkpoint()
        except PullFailed as error:
            raise ItemFailed(str(error)) from None
        if params.kind == "trajectories" and progress.stored and not progress.imports:
            with transaction.atomic():
                runs = import_pulled(run, params.kind, params.read_options())
                progress.imports = [one.pk for one in runs]
                context.save_progress(item, progress.model_dump(), _figures(progress))
        return lambda: _figures(progress)


class PullRun(Kind[PullParams]):
    name = NAME
    title = "Traces of Langfuse or Phoenix"
    pipeline = Pipeline.IMPORT
    summary = "Reads model calls from a server that traces agents, and imports them as turns or trajectories."
    tells_of_samples = False
    params = PullParams
    feeds_others = False

    def stages(self, params: PullParams) -> Sequence[Stage]:
        return [PullStage(params)]

    def check(self, project: Project, params: PullParams) -> None:
        with all_checks() as check:
            with check():
                _check_source(project, params.source)
            with check():
                import_kind(params.kind).read_options(params.read_options(), project)
            with check():
                if params.since and params.since >= (params.until or timezone.now()):
                    raise Invalid.at("params.since", "`since` must be before `until`, and before now.")

    def presets(self, project: Project) -> Mapping[str, Preset]:
        sources = project.settings.intake.sources
        shown = "; ".join(f"{name}: {text}" for name, text in sources.items())
        return {"source": Preset(min(sources, default=""), shown or _no_sources())}

    def begin(self, run: Run, params: PullParams) -> Json:
        until = min(params.until or run.created_at, run.created_at)
        return {"source": run.project.settings.intake.sources[params.source], "until": until.isoformat()}

    def conclude(self, run: Run) -> str:
        stored = run.result.get("stored", 0)
        as_turns = " They are imported within 10 s, each turn once."
        then = as_turns if run.params.get("kind", "turns") == "turns" else " Their traces are imported as trajectories."
        then = then if stored else ""
        unreadable = run.result.get("unreadable", 0)
        others = f", {counted(unreadable, 'unreadable span')} left out" if unreadable else ""
        read = counted(run.result.get("read", 0), "span")
        return f"{read} read, {counted(stored, 'model call')} stored{others}.{then}"

    def results(self, run: Run) -> Sequence[RunFact]:
        figures = {"read": "Spans read", "stored": "Model calls stored", "unreadable": "Unreadable spans"}
        numbers = [RunFact(words, f"{run.result[name]:,}") for name, words in figures.items() if name in run.result]
        return [RunFact("Source", run.result["source"]), RunFact("Calls before", run.result["until"]), *numbers]

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        return [("Show the imports", f"{reverse('run-list', args=[run.project.slug])}?kind=import")]


def pull_sources() -> list[Run]:
    """Launch a pull for each source whose time has come, and return the runs."""
    projects = Project.objects.filter(archived_at=None, deleting_at=None, settings_json__intake__every__isnull=False)
    return [
        run
        for project in projects
        if (every := project.settings.intake.every)
        for name in project.settings.intake.sources
        if (run := _pull_next(project, name, timedelta(minutes=every)))
    ]


def _pull_next(project: Project, name: str, every: timedelta) -> Run | None:
    """Read on from where the schedule's last pull of that name ended. A pull that failed is done again, over all of its
    time: at once when the source was corrected since."""
    with transaction.atomic():
        hold_uploads(project.pk)  # one process at a time launches for a project
        now = timezone.now()
        text = project.settings.intake.sources[name]
        before = Run.objects.filter(project=project, kind=NAME, created_by=None, params__source=name)
        last = before.order_by("-id").first()
        if last is not None and last.state in LIVE:
            return None
        if last is not None and last.result["source"] == text and last.created_at + every > now:
            return None
        since = (now - SETTLE - every).isoformat()
        if last is not None:
            since = last.result["until"] if last.state == RunState.SUCCEEDED else last.params["since"]
        intake = project.settings.intake
        params: dict[str, Any] = {"source": name, "since": since, "until": (now - SETTLE).isoformat()}
        params |= {"kind": intake.sources_as, "options": intake.source_options}
        return launch(project=project, kind=NAME, params=params, user=None, scheduled=True)


def _check_source(project: Project, name: str) -> None:
    text = project.settings.intake.sources.get(name, "")
    if reason := _why_refused(project, text):
        raise Invalid.at("params.source", reason)
    try:
        refuse_private(TraceSource.of(text).address, IMPORTS)
    except Invalid as problem:
        raise Invalid.at("params.source", problem.detail) from None


def _why_refused(project: Project, text: str) -> str:
    """Say why this project may not read a source of its settings, or return ''. Checked at launch and before work."""
    if not text:
        return (
            _no_sources()
            if not project.settings.intake.sources
            else (f"The settings name no such source; there are {', '.join(project.settings.intake.sources)}.")
        )
    source = TraceSource.of(text)
    if not source.key:
        return ""
    if source.address.startswith("http://") and not IMPORTS.allowed:
        return "A key is only sent over https. The address of this source begins with http://."
    rules = rules_of(source.key, settings.TRACE_KEYS)
    if any(rule.permits_project(project.slug) and rule.permits_host("", source.address) for rule in rules):
        return ""
    return (
        f"The operator of this server has not allowed the key in {source.key} for this project and this host "
        "(TRACE_KEYS)."
    )


def _no_sources() -> str:
    return "This project names no sources. An admin adds one under Settings → Rules (intake.sources)."


def _figures(progress: PullProgress) -> Json:
    return {"read": progress.read, "stored": progress.stored, "unreadable": progress.unreadable}
