"""Single objects of the API. `data` is the API's answer; properties name the fields that most scripts need."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Self

from winnow.client.errors import MissingPackage, NotFound, RunTimeout, WinnowError
from winnow.client.rows import Rows, Value, query
from winnow.client.transport import Json, Transport

if TYPE_CHECKING:
    import datasets

ENDED = {"succeeded", "failed", "cancelled"}
FIRST_POLL, LONGEST_POLL = 0.2, 2.0


class Record:
    """An object that has an id and an address of its own."""

    noun = ""

    def __init__(self, transport: Transport, data: Json) -> None:
        self._transport = transport
        self.data = data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def __getitem__(self, field: str) -> Any:
        return self.data[field]

    @property
    def id(self) -> str:
        return str(self.data["id"])

    @property
    def path(self) -> str:
        return f"/{self.noun}/{self.id}"

    def refresh(self) -> Self:
        """Read it again."""
        self.data = self._transport.json("GET", self.path)
        return self


class Run(Record):
    noun = "runs"
    _etag: str | None = None

    @property
    def kind(self) -> str:
        return str(self.data["kind"])

    @property
    def state(self) -> str:
        """`queued`, `running`, `succeeded`, `failed` or `cancelled`."""
        return str(self.data["state"])

    @property
    def outcome(self) -> str | None:
        """`with_failures` if it succeeded although items failed."""
        outcome: str | None = self.data["outcome"]
        return outcome

    @property
    def items(self) -> dict[str, int]:
        """How many items it has: `total`, `done`, `failed`, `skipped`."""
        return dict(self.data["items"])

    @property
    def error(self) -> str:
        return str(self.data["error"] or "")

    @property
    def result(self) -> Json:
        return dict(self.data["result"] or {})

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    def refresh(self) -> Self:
        found, self._etag = self._transport.unless_unchanged(self.path, self._etag)
        if found is not None:
            self.data = found
        return self

    def wait(self, *, timeout: float | None = None, progress: Callable[["Run"], object] | None = None) -> Self:
        """Return when it has ended; `progress` is called when it has changed.

        Raises `RunFailed` if it failed or was cancelled, `RunTimeout` after `timeout` seconds. A run whose items failed
        in part has succeeded: look at `outcome`.
        """
        until = None if timeout is None else monotonic() + timeout
        pause, seen = FIRST_POLL, None
        while True:
            if progress is not None and seen is not self.data:
                progress(self)
            seen = self.data
            if self.has_ended:
                break
            if until is not None and monotonic() >= until:
                raise RunTimeout(f"Run {self.id} ({self.kind}) is {self.state} after {timeout:g} s.")
            sleep(pause if until is None else max(0.0, min(pause, until - monotonic())))
            pause = min(LONGEST_POLL, pause * 1.5)
            self.refresh()
        if self.state != "succeeded":
            raise RunFailed(self)
        return self

    def cancel(self) -> Self:
        """Stop the run; finished items stay."""
        self.data = self._transport.json("POST", f"{self.path}/cancel")
        return self

    def retry_failed(self) -> Self:
        """Try its failed items again."""
        self.data = self._transport.json("POST", f"{self.path}/retry-failed")
        return self

    def items_in(self, *states: str) -> Rows[Json]:
        """Its items in these states, each with its `reason`: `failed`, or `skipped` for the bad rows of an import."""
        return Rows(self._transport, f"{self.path}/items", {"state": states}, dict)

    def calls(self, **filters: Value) -> Rows[Json]:
        return Rows(self._transport, f"{self.path}/calls", filters, dict)

    def export(self) -> "Export":
        """Return the export that a run of kind `export` writes."""
        return Export(self._transport, self._transport.json("GET", f"/exports/{self._made('export')}"))

    def evaluation(self) -> "Evaluation":
        """Return the evaluation that a run of kind `evaluate` makes."""
        return Evaluation(self._transport, self._transport.json("GET", f"/evaluations/{self._made('evaluation')}"))

    def _made(self, name: str) -> str:
        if name not in self.result:
            raise NotFound(404, {"code": "not_found", "detail": f"Run {self.id} ({self.kind}) makes no {name}."})
        return str(self.result[name])


class RunFailed(WinnowError):
    """The run has ended as failed or cancelled; `run` says why."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"Run {run.id} ({run.kind}) is {run.state}: {run.error or 'no reason is recorded'}")
        self.run = run


class Sample(Record):
    """A row of the list, or with `refresh()` the whole sample. While you review blind, fields are missing or None."""

    noun = "samples"

    @property
    def status(self) -> str:
        """`pending`, `approved`, `rejected` or `refine`. It is read again after a change."""
        if "status" not in self.data:
            self.refresh()
        return str(self.data["status"])

    @property
    def bucket(self) -> str | None:
        return self.data.get("bucket")

    @property
    def score(self) -> float | None:
        return self.data.get("score")

    @property
    def predicted(self) -> float | None:
        """The predicted approval, 0 to 1, of the last model of decisions that read it."""
        return self.data.get("predicted")

    @property
    def flags(self) -> list[str]:
        return list(self.data.get("flags") or ())

    @property
    def version(self) -> int:
        return int(self.data["version"])

    def decide(
        self,
        action: str,
        *,
        reason: str = "",
        comment: str = "",
        preference: str | None = None,
        seconds: float | None = None,
    ) -> Json:
        """Decide, on the version that was read, and return the decision. Raises `Stale` if it has changed since.

        `action` is `approve`, `reject`, `refine`, `skip` or `flag`; `preference` is `king`, `challenger` or `draw`,
        with a lease also `left` or `right`.
        """
        body = {"action": action, "reason": reason, "comment": comment, "preference": preference, "seconds": seconds}
        return self._change("decisions", body)

    def approve(self, *, preference: str | None = None, comment: str = "") -> Json:
        return self.decide("approve", preference=preference, comment=comment)

    def reject(self, reason: str, *, comment: str = "") -> Json:
        return self.decide("reject", reason=reason, comment=comment)

    def undo(self) -> Json:
        """Undo your last decision on it, and return that."""
        return self._change("undo")

    def revise(self, text: str, *, of: str = "challenger", note: str = "") -> Json:
        """Save another text of an answer, on the version that was read, and return the revision."""
        body = {"text": text, "of": of, "note": note}
        return self._change("revisions", body)

    def decisions(self) -> Rows[Json]:
        return Rows(self._transport, f"{self.path}/decisions", {}, dict)

    def _change(self, what: str, body: Json | None = None) -> Json:
        """Reading it again would need the scope `read`, and count as a look at a sample that is still pending."""
        version = None if body is None else self.version
        found, etag = self._transport.change(f"{self.path}/{what}", body, version)
        self.data = {name: value for name, value in self.data.items() if name != "status"} | {"version": int(etag)}
        return found


class Audit(Record):
    """A random sample of pending samples, which reviewers decide without knowing it. `refresh()` reads its proof."""

    noun = "audits"

    @property
    def proven(self) -> Json | None:
        """What may be approved unseen: `threshold`, `share` and `samples`; None for nothing."""
        proven: Json | None = self.data["proven"]
        return proven

    def extend(self) -> Self:
        """Give people as many looks again, where the audit was drawn with extensions."""
        self.data = self._transport.json("POST", f"{self.path}/extensions")
        return self

    def approve(self, *, keep_alive: float = 0.0) -> "Guarantee":
        """Approve what is proven. The share `keep_alive` of it stays for people, whose errors end the guarantee."""
        body = {"keep_alive": keep_alive}
        return Guarantee(self._transport, self._transport.json("POST", f"{self.path}/guarantees", body=body))


class Guarantee(Record):
    noun = "guarantees"

    @property
    def state(self) -> str:
        """`approving`, `holds` or `withdrawn`."""
        return str(self.data["state"])

    def withdraw(self) -> Self:
        """Make its samples pending again, but for those that a person has decided since."""
        self._transport.json("DELETE", self.path)
        return self.refresh()


class Export(Record):
    noun = "exports"

    @property
    def files(self) -> list[Json]:
        """Each with `name`, `format`, `split`, `rows`, `bytes` and `sha256`; none before the run has ended."""
        return list(self.data["files"])

    def download(self, folder: str | Path) -> list[Path]:
        """Write all files to a folder, which is made if it is missing; each is checked against its sha256."""
        return [self._download(file, Path(folder)) for file in self.files]

    def rows(self, split: str = "train", *, format: str = "") -> Iterator[Json]:
        """Read the rows of one file. `format` can be left out where the split has only one."""
        file = self._file(split, format)
        if file["name"].endswith(".parquet"):
            yield from self.dataset(split, format=format)
            return
        with TemporaryDirectory() as folder:
            path = self._download(file, Path(folder))
            with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
                yield from map(json.loads, lines)

    def dataset(self, split: str = "train", *, format: str = "") -> "datasets.Dataset":
        """Return the rows of one file as a `datasets.Dataset` in memory. For more than fits, use `download()`."""
        try:
            import datasets
        except ImportError as error:
            raise MissingPackage("A Dataset needs the package datasets: pip install 'winnow-curation[data]'") from error
        file = self._file(split, format)
        read = datasets.Dataset.from_parquet if file["name"].endswith(".parquet") else datasets.Dataset.from_json
        with TemporaryDirectory() as folder:
            path = self._download(file, Path(folder))
            found: datasets.Dataset = read(str(path), cache_dir=folder, keep_in_memory=True)
            return found

    def diff(self, after: "Export") -> Json:
        """Return the rows that a later export adds, removes, changes or moves."""
        return self._transport.json("GET", f"{self.path}/diff/{after.id}")

    def _download(self, file: Json, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / Path(file["name"]).name
        return self._transport.download(f"{self.path}/files/{file['name']}", target, file["sha256"])

    def _file(self, split: str, format: str) -> Json:
        data = [file for file in self.files if file["format"] and file["split"]]
        found = [file for file in data if file["split"] == split and file["format"] == (format or file["format"])]
        if len(found) == 1:
            return found[0]
        listed = ", ".join(f"{file['format']} {file['split']}" for file in data) or "none"
        what = f"{format or 'any format'}, split {split}"
        problem = "is not in" if not found else "is more than one file of"
        raise NotFound(404, {"code": "not_found", "detail": f"{what} {problem} export {self.id}, which has: {listed}."})


class Evaluation(Record):
    noun = "evaluations"

    @property
    def figures(self) -> list[Json]:
        """The figures of each model, as ratios."""
        return list(self.data["rows"])

    def calls(self, **filters: Value) -> Rows[Json]:
        """Every answer of a static evaluation."""
        return Rows(self._transport, f"{self.path}/calls", filters, dict)

    def compare(self, after: "Evaluation", **params: Value) -> Json:
        """Pair the rows that both answered. `model_before` and `model_after` choose between several models."""
        return self._transport.json("GET", f"{self.path}/compare/{after.id}", params=query(params))
