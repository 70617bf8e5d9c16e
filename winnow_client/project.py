"""One project: imports, runs, lists, decisions and exports."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from winnow_client import schemas as s
from winnow_client.calls import M, call
from winnow_client.records import Audit, EvaluationRow, Export, Guarantee, Record, Run, Sample, listed, plain, record
from winnow_client.responses import Response, parse
from winnow_client.rows import Rows, Value, query
from winnow_client.transport import Json

BULK = 500
Progress = Callable[[int, int], object]
T = TypeVar("T", bound=Response)


class Project(s.ProjectOut, Record[M], Generic[M]):
    @property
    def path(self) -> str:
        return f"/projects/{quote(self.slug, safe='')}"

    @call
    async def change(self, /, **fields: Any) -> Project[M]:
        """Change `name`, `guidelines` or `settings`. Raises `Stale` if somebody has changed the project since."""
        self._take(await self._transport.json("PATCH", self.path, body=fields, version=self.version))
        return self

    @call
    async def stats(self) -> s.StatsOut:
        """The figures of the overview."""
        return parse(s.StatsOut, await self._transport.json("GET", f"{self.path}/stats"))

    # Models

    def models(self) -> Rows[s.EndpointOut, M]:
        return self._rows("models", {}, s.EndpointOut)

    @call
    async def add_model(self, /, name: str, model: str, **fields: Any) -> s.EndpointOut:
        """Add a model endpoint. `model` is LiteLLM's name; `api_key_env` names a variable of the workers."""
        return parse(s.EndpointOut, await self._post("models", {"name": name, "model": model, **fields}))

    # Imports

    @call
    async def import_from(
        self, source: str | Path, *, kind: str = "turns", options: Mapping[str, Any] | None = None, strict: bool = False
    ) -> Run[M]:
        """Import a file or a folder, as `import_file`, or an address, as `import_url`."""
        if "://" in str(source):
            return await self._import_url(str(source), kind, options, strict)
        return await self._import_file(source, kind, options, strict, None)

    @call
    async def import_file(
        self,
        path: str | Path,
        *,
        kind: str = "turns",
        options: Mapping[str, Any] | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Run[M]:
        """Upload a file, or a folder as a ZIP archive, and return the run that imports it. If `kind` is empty, the site
        recognises it from the rows. `progress` gets the bytes sent, and all bytes."""
        return await self._import_file(path, kind, options, strict, progress)

    @call
    async def import_rows(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        kind: str = "turns",
        options: Mapping[str, Any] | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Run[M]:
        """Upload rows as lines of JSON, as `import_file` does."""
        with NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()
            return await self._import_file(file.name, kind, options, strict, progress)

    @call
    async def import_url(
        self, source: str, *, kind: str = "turns", options: Mapping[str, Any] | None = None, strict: bool = False
    ) -> Run[M]:
        """Import from an address that the site fetches: https://, hf:// or s3://. An empty `kind` as in
        `import_file`."""
        return await self._import_url(source, kind, options, strict)

    @call
    async def save_mapping(self, /, name: str, **mapping: Any) -> s.MappingOut:
        """Save a mapping of rows, which imports choose by its name: `options={"mapping": name}`. Its fields are
        `messages`, `columns`, `roles`, `outcomes` and `tools`."""
        return parse(s.MappingOut, await self._post("mappings", {"name": name, **mapping}))

    def mappings(self) -> Rows[s.MappingOut, M]:
        return self._rows("mappings", {}, s.MappingOut)

    # Runs

    @call
    async def run(self, kind: str, params: Mapping[str, Any] | None = None, *, budget: str | None = None) -> Run[M]:
        """Launch a run; `budget` in US dollars, as a decimal string."""
        return await self._launch("runs", {"kind": kind, "params": dict(params or {}), "budget": budget})

    @call
    async def estimate(self, kind: str, params: Mapping[str, Any] | None = None) -> s.Estimate:
        """Return the number of calls and the cost of a launch, without launching."""
        found = await self._post("runs/estimate", {"kind": kind, "params": dict(params or {})})
        return parse(s.Estimate, found)

    def runs(self, /, **filters: Value) -> Rows[Run[M], M]:
        return Rows(self._transport, f"{self.path}/runs", filters, listed(Run, self._transport))

    # Samples and what people and judges said of them

    def samples(self, /, **filters: Value) -> Rows[Sample[M], M]:
        """Samples that match, as `project.samples(status="pending", bucket=["final", "refined"])`."""
        return Rows(self._transport, f"{self.path}/samples", filters, listed(Sample, self._transport))

    @call
    async def next_sample(self, /, **queue: Any) -> Sample[M] | None:
        """Lease the next sample of the queue; None if none is left. `order` and `filter` as in the API."""
        found = await self._post("queue/next", queue)
        return record(Sample, self._transport, found["sample"]) if found else None

    @call
    async def decide(
        self, samples: Sequence[Sample[M] | str], action: str, *, reason: str = "", comment: str = ""
    ) -> list[s.BulkRow]:
        """Decide on many samples, 500 in a call. Each row of the answer has `ok`, or the reason in `error`."""
        _require_list(samples, "samples")
        ids = [sample if isinstance(sample, str) else sample.id for sample in samples]
        decision = {"project": self.slug, "action": action, "reason": reason, "comment": comment}
        rows: list[s.BulkRow] = []
        for start in range(0, len(ids), BULK):
            body = {**decision, "ids": ids[start : start + BULK]}
            found = await self._transport.json("POST", "/samples/bulk", body=body)
            rows += [parse(s.BulkRow, row) for row in found["data"]]
        return rows

    def decisions(self, /, **filters: Value) -> Rows[s.DecisionOut, M]:
        return self._rows("decisions", filters, s.DecisionOut)

    # Approve without looking

    @call
    async def draw_audit(self, /, *, filter: Mapping[str, Any] | None = None, **promise: Any) -> Audit[M]:
        """Draw samples for people, as `draw_audit(score="score", size=150, alpha=0.05, delta=0.05)`."""
        return record(Audit, self._transport, await self._post("audits", {"filter": dict(filter or {}), **promise}))

    def audits(self) -> Rows[Audit[M], M]:
        return Rows(self._transport, f"{self.path}/audits", {}, listed(Audit, self._transport))

    def guarantees(self) -> Rows[Guarantee[M], M]:
        return Rows(self._transport, f"{self.path}/guarantees", {}, listed(Guarantee, self._transport))

    def judge_trials(self) -> Rows[s.JudgeTrialOut, M]:
        """Trials of a judge's instructions, the newest first; `run("judge_trial", model=…, text=…)` makes one."""
        return self._rows("judge-trials", {}, s.JudgeTrialOut)

    def approval_models(self) -> Rows[s.ApprovalModelOut, M]:
        """Models of the project's decisions, the newest first; `run("predict")` makes one."""
        return self._rows("approval-models", {}, s.ApprovalModelOut)

    def label_errors(self) -> Rows[s.LabelErrorOut, M]:
        """Decisions that the newest model finds wrong, the least likely first."""
        return self._rows("label-errors", {}, s.LabelErrorOut)

    def clusters(self, /, **filters: Value) -> Rows[s.ClusterOut, M]:
        """Samples that are alike, in groups: `of="failures"` or `of="new"`. `samples(cluster=…)` lists a group."""
        return self._rows("clusters", filters, s.ClusterOut)

    def duels(self, /, **filters: Value) -> Rows[s.DuelOut, M]:
        return self._rows("duels", filters, s.DuelOut)

    def verdicts(self, /, **filters: Value) -> Rows[s.VerdictRowOut, M]:
        return self._rows("verdicts", filters, s.VerdictRowOut)

    def calls(self, /, **filters: Value) -> Rows[s.CallOut, M]:
        """Every model call of the project."""
        return self._rows("calls", filters, s.CallOut)

    def trajectories(self, /, **filters: Value) -> Rows[s.TrajectoryRow, M]:
        return self._rows("trajectories", filters, s.TrajectoryRow)

    @call
    async def agents(self, /, **filters: Value) -> list[s.AgentOut]:
        """Compare each agent with each model on each set of tasks, by the trajectories that match."""
        found = await self._transport.json("GET", f"{self.path}/agents", params=query(filters))
        return parse(s.AgentsOut, found).data

    def scenarios(self, /, **filters: Value) -> Rows[s.ScenarioOut, M]:
        """Scenarios that match; with `full=True` with their texts and the checks of the gate."""
        return self._rows("scenarios", filters, s.ScenarioOut)

    # Exports and evaluations

    @call
    async def preview_export(self, recipe: Mapping[str, Any] | str) -> s.ExportPreviewOut:
        """Count the rows and skipped samples of a recipe, without writing them."""
        return parse(s.ExportPreviewOut, await self._post("exports/preview", {"recipe": _recipe(recipe)}))

    @call
    async def export(self, recipe: Mapping[str, Any] | str) -> Run[M]:
        """Start an export by a recipe or the name of a saved one; `run.wait().export()` is the export."""
        return await self._launch("exports", {"recipe": _recipe(recipe)})

    def exports(self, /, **filters: Value) -> Rows[Export[M], M]:
        return Rows(self._transport, f"{self.path}/exports", filters, listed(Export, self._transport))

    def splits(self) -> Rows[s.SplitBrief, M]:
        """Held-out splits, on which models are evaluated."""
        return self._rows("splits", {}, s.SplitBrief)

    @call
    async def evaluate(self, /, models: Sequence[str], *, budget: str | None = None, **params: Any) -> Run[M]:
        """Evaluate models, as `evaluate(["base", "tuned"], split="3")`; `run.wait().evaluation()` has the figures."""
        _require_list(models, "models")
        body = {"models": list(models), **params, **({} if budget is None else {"budget": budget})}
        return await self._launch("evaluations", body)

    def evaluations(self, /, **filters: Value) -> Rows[EvaluationRow[M], M]:
        return Rows(self._transport, f"{self.path}/evaluations", filters, listed(EvaluationRow, self._transport))

    async def _import_file(
        self, path: str | Path, kind: str, options: Mapping[str, Any] | None, strict: bool, progress: Progress | None
    ) -> Run[M]:
        with _packed(Path(path)) as packed, _Upload(packed, progress) as file:
            form = {"kind": kind, "options": json.dumps(dict(options or {})), "strict": str(strict).lower()}
            files = {"file": (packed.name, file)}
            to = f"{self.path}/imports" if kind else f"{self.path}/imports/preview"
            answer = await self._transport.json("POST", to, data=form, files=files)
        if kind:
            return record(Run, self._transport, answer)
        return await self._import({"upload": answer["upload"], "kind": answer["kind"]}, options, strict)

    async def _import_url(self, source: str, kind: str, options: Mapping[str, Any] | None, strict: bool) -> Run[M]:
        if not kind:
            kind = (await self._post("imports/preview", {"source": source, "options": dict(options or {})}))["kind"]
        return await self._import({"source": source, "kind": kind}, options, strict)

    async def _import(self, given: Json, options: Mapping[str, Any] | None, strict: bool) -> Run[M]:
        return await self._launch("imports", {**given, "options": dict(options or {}), "strict": strict})

    async def _launch(self, what: str, body: Json) -> Run[M]:
        return record(Run, self._transport, await self._post(what, body))

    async def _post(self, what: str, body: Json) -> Json:
        return await self._transport.json("POST", f"{self.path}/{what}", body=body)

    def _rows(self, what: str, filters: Mapping[str, Value], kind: type[T]) -> Rows[T, M]:
        return Rows(self._transport, f"{self.path}/{what}", filters, plain(kind))


class _Upload(io.FileIO):
    """A file that says how much of it was read."""

    def __init__(self, path: str | Path, progress: Progress | None) -> None:
        super().__init__(path, "rb")
        self._progress = progress
        self._size = Path(path).stat().st_size

    def read(self, size: int | None = -1, /) -> bytes:
        chunk = super().read(-1 if size is None else size)
        if self._progress is not None and chunk:
            self._progress(self.tell(), self._size)
        return chunk


@contextmanager
def _packed(path: Path) -> Iterator[Path]:
    """A file itself, or a ZIP archive of a folder."""
    if not path.is_dir():
        yield path
        return
    with TemporaryDirectory() as folder:
        yield Path(shutil.make_archive(f"{folder}/{path.resolve().name}", "zip", path))


def _require_list(given: object, name: str) -> None:
    """A text is a sequence of texts too: the id `"132"` would mean the samples 1, 3 and 2."""
    if isinstance(given, str):
        raise TypeError(f"{name} is a list, such as [{given!r}], not a text.")


def _recipe(recipe: Mapping[str, Any] | str) -> Json | str:
    return recipe if isinstance(recipe, str) else dict(recipe)
