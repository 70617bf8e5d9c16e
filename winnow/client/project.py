"""One project: imports, runs, lists, decisions and exports."""

import io
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any
from urllib.parse import quote

from winnow.client.records import Audit, Evaluation, Export, Guarantee, Record, Run, Sample
from winnow.client.rows import Rows, Value
from winnow.client.transport import Json

BULK = 500
Progress = Callable[[int, int], object]


class Project(Record):
    noun = "projects"

    @property
    def id(self) -> str:
        """The slug."""
        return str(self.data["slug"])

    @property
    def path(self) -> str:
        return f"/projects/{quote(self.id, safe='')}"

    @property
    def name(self) -> str:
        return str(self.data["name"])

    @property
    def settings(self) -> Json:
        return dict(self.data["settings"])

    def change(self, **fields: Any) -> "Project":
        """Change `name`, `guidelines` or `settings`. Raises `Stale` if somebody has changed the project since."""
        self.data = self._transport.json("PATCH", self.path, body=fields, version=self.data["version"])
        return self

    def stats(self) -> Json:
        """The figures of the overview."""
        return self._transport.json("GET", f"{self.path}/stats")

    # Models

    def models(self) -> Rows[Json]:
        return Rows(self._transport, f"{self.path}/models", {}, dict)

    def add_model(self, name: str, model: str, **fields: Any) -> Json:
        """Add a model endpoint. `model` is LiteLLM's name; `api_key_env` names a variable of the workers."""
        return self._transport.json("POST", f"{self.path}/models", body={"name": name, "model": model, **fields})

    # Imports

    def import_from(
        self,
        source: str | Path,
        *,
        kind: str = "turns",
        options: Mapping[str, Any] | None = None,
        strict: bool = False,
    ) -> Run:
        """Import a file or a folder, as `import_file`, or an address, as `import_url`."""
        if "://" in str(source):
            return self.import_url(str(source), kind=kind, options=options, strict=strict)
        return self.import_file(source, kind=kind, options=options, strict=strict)

    def import_file(
        self,
        path: str | Path,
        *,
        kind: str = "turns",
        options: Mapping[str, Any] | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Run:
        """Upload a file, or a folder as a ZIP archive, and return the run that imports it. If `kind` is empty, the site
        recognises it from the rows. `progress` gets the bytes sent, and all bytes."""
        with _packed(Path(path)) as packed, _Upload(packed, progress) as file:
            form = {"kind": kind, "options": json.dumps(dict(options or {})), "strict": str(strict).lower()}
            files = {"file": (packed.name, file)}
            to = f"{self.path}/imports" if kind else f"{self.path}/imports/preview"
            answer = self._transport.json("POST", to, data=form, files=files)
        if kind:
            return self._run(answer)
        return self._import({"upload": answer["upload"], "kind": answer["kind"]}, options, strict)

    def import_rows(self, rows: Iterable[Mapping[str, Any]], *, kind: str = "turns", **options: Any) -> Run:
        """Upload rows as lines of JSON, as `import_file` does."""
        with NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()
            return self.import_file(file.name, kind=kind, **options)

    def import_url(
        self, source: str, *, kind: str = "turns", options: Mapping[str, Any] | None = None, strict: bool = False
    ) -> Run:
        """Import from an address that the site fetches: https://, hf:// or s3://. An empty `kind` as in
        `import_file`."""
        if not kind:
            body = {"source": source, "options": dict(options or {})}
            kind = self._transport.json("POST", f"{self.path}/imports/preview", body=body)["kind"]
        return self._import({"source": source, "kind": kind}, options, strict)

    def save_mapping(self, name: str, **mapping: Any) -> Json:
        """Save a mapping of rows, which imports choose by its name: `options={"mapping": name}`. Its fields are
        `messages`, `columns`, `roles`, `outcomes` and `tools`."""
        return self._transport.json("POST", f"{self.path}/mappings", body={"name": name, **mapping})

    def mappings(self) -> Rows[Json]:
        return Rows(self._transport, f"{self.path}/mappings", {}, dict)

    # Runs

    def run(self, kind: str, params: Mapping[str, Any] | None = None, *, budget: str | None = None) -> Run:
        """Launch a run; `budget` in US dollars, as a decimal string."""
        body = {"kind": kind, "params": dict(params or {}), "budget": budget}
        return self._run(self._transport.json("POST", f"{self.path}/runs", body=body))

    def estimate(self, kind: str, params: Mapping[str, Any] | None = None) -> Json:
        """Return the number of calls and the cost of a launch, without launching."""
        return self._transport.json(
            "POST", f"{self.path}/runs/estimate", body={"kind": kind, "params": dict(params or {})}
        )

    def runs(self, **filters: Value) -> Rows[Run]:
        return Rows(self._transport, f"{self.path}/runs", filters, self._run)

    # Samples and what people and judges said of them

    def samples(self, **filters: Value) -> Rows[Sample]:
        """Samples that match, as `project.samples(status="pending", bucket=["final", "refined"])`."""
        return Rows(self._transport, f"{self.path}/samples", filters, lambda row: Sample(self._transport, row))

    def next_sample(self, **queue: Any) -> Sample | None:
        """Lease the next sample of the queue; None if none is left. `order` and `filter` as in the API."""
        found = self._transport.json("POST", f"{self.path}/queue/next", body=queue)
        return Sample(self._transport, found["sample"]) if found else None

    def decide(
        self, samples: Sequence[Sample | str], action: str, *, reason: str = "", comment: str = ""
    ) -> list[Json]:
        """Decide on many samples, 500 in a call. Each row of the answer has `ok`, or the reason in `error`."""
        _require_list(samples, "samples")
        ids = [sample if isinstance(sample, str) else sample.id for sample in samples]
        decision = {"project": self.id, "action": action, "reason": reason, "comment": comment}
        rows: list[Json] = []
        for start in range(0, len(ids), BULK):
            body = {**decision, "ids": ids[start : start + BULK]}
            rows += self._transport.json("POST", "/samples/bulk", body=body)["data"]
        return rows

    def decisions(self, **filters: Value) -> Rows[Json]:
        return Rows(self._transport, f"{self.path}/decisions", filters, dict)

    # Approve without looking

    def draw_audit(self, *, filter: Mapping[str, Any] | None = None, **promise: Any) -> Audit:
        """Draw samples for people, as `draw_audit(score="score", size=150, alpha=0.05, delta=0.05)`."""
        body = {"filter": dict(filter or {}), **promise}
        return Audit(self._transport, self._transport.json("POST", f"{self.path}/audits", body=body))

    def audits(self) -> Rows[Audit]:
        return Rows(self._transport, f"{self.path}/audits", {}, lambda row: Audit(self._transport, row))

    def guarantees(self) -> Rows[Guarantee]:
        return Rows(self._transport, f"{self.path}/guarantees", {}, lambda row: Guarantee(self._transport, row))

    def judge_trials(self) -> Rows[Json]:
        """Trials of a judge's instructions, the newest first; `run("judge_trial", model=…, text=…)` makes one."""
        return Rows(self._transport, f"{self.path}/judge-trials", {}, dict)

    def approval_models(self) -> Rows[Json]:
        """Models of the project's decisions, the newest first; `run("predict")` makes one."""
        return Rows(self._transport, f"{self.path}/approval-models", {}, dict)

    def label_errors(self) -> Rows[Json]:
        """Decisions that the newest model finds wrong, the least likely first."""
        return Rows(self._transport, f"{self.path}/label-errors", {}, dict)

    def clusters(self, **filters: Value) -> Rows[Json]:
        """Samples that are alike, in groups: `of="failures"` or `of="new"`. `samples(cluster=…)` lists a group."""
        return Rows(self._transport, f"{self.path}/clusters", filters, dict)

    def duels(self, **filters: Value) -> Rows[Json]:
        return Rows(self._transport, f"{self.path}/duels", filters, dict)

    def verdicts(self, **filters: Value) -> Rows[Json]:
        return Rows(self._transport, f"{self.path}/verdicts", filters, dict)

    def calls(self, **filters: Value) -> Rows[Json]:
        """Every model call of the project."""
        return Rows(self._transport, f"{self.path}/calls", filters, dict)

    def trajectories(self, **filters: Value) -> Rows[Json]:
        return Rows(self._transport, f"{self.path}/trajectories", filters, dict)

    def scenarios(self, **filters: Value) -> Rows[Json]:
        return Rows(self._transport, f"{self.path}/scenarios", filters, dict)

    # Exports and evaluations

    def preview_export(self, recipe: Mapping[str, Any] | str) -> Json:
        """Count the rows and skipped samples of a recipe, without writing them."""
        return self._transport.json("POST", f"{self.path}/exports/preview", body={"recipe": _recipe(recipe)})

    def export(self, recipe: Mapping[str, Any] | str) -> Run:
        """Start an export by a recipe or the name of a saved one; `run.wait().export()` is the export."""
        return self._run(self._transport.json("POST", f"{self.path}/exports", body={"recipe": _recipe(recipe)}))

    def exports(self, **filters: Value) -> Rows[Export]:
        return Rows(self._transport, f"{self.path}/exports", filters, lambda row: Export(self._transport, row))

    def splits(self) -> Rows[Json]:
        """Held-out splits, on which models are evaluated."""
        return Rows(self._transport, f"{self.path}/splits", {}, dict)

    def evaluate(self, models: Sequence[str], *, budget: str | None = None, **params: Any) -> Run:
        """Evaluate models, as `evaluate(["base", "tuned"], split="3")`; `run.wait().evaluation()` has the figures."""
        _require_list(models, "models")
        body = {"models": list(models), **params, **({} if budget is None else {"budget": budget})}
        return self._run(self._transport.json("POST", f"{self.path}/evaluations", body=body))

    def evaluations(self, **filters: Value) -> Rows[Evaluation]:
        return Rows(self._transport, f"{self.path}/evaluations", filters, lambda row: Evaluation(self._transport, row))

    def _import(self, given: Json, options: Mapping[str, Any] | None, strict: bool) -> Run:
        body = {**given, "options": dict(options or {}), "strict": strict}
        return self._run(self._transport.json("POST", f"{self.path}/imports", body=body))

    def _run(self, data: Json) -> Run:
        return Run(self._transport, data)


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
