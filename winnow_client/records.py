"""Single objects of the API, which are responses with calls of their own."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, overload

from pydantic import ConfigDict

from winnow_client import schemas as s
from winnow_client.calls import Async, Caller, M, Sync, call, run
from winnow_client.errors import MissingPackage, NotFound, RunTimeout, WinnowError
from winnow_client.responses import Response, parse
from winnow_client.rows import Rows, Value, query
from winnow_client.transport import Json, Transport

if TYPE_CHECKING:
    import datasets

ENDED = {"succeeded", "failed", "cancelled"}
FIRST_POLL, LONGEST_POLL = 0.2, 2.0
O = TypeVar("O", bound="Record[Any]")  # noqa: E741
T = TypeVar("T", bound=Response)
B = TypeVar("B", bound="Record[Sync]")
A = TypeVar("A", bound="Record[Async]")


class Record(Response, Caller[M], Generic[M]):
    """An object that has an address of its own. Its fields are those of the response that was read last."""

    model_config = ConfigDict(ignored_types=(call,))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path.rpartition('/')[2]}>"

    @property
    def path(self) -> str:
        raise NotImplementedError

    @overload
    def refresh(self: B) -> B: ...
    @overload
    def refresh(self: A) -> Coroutine[Any, Any, A]: ...
    def refresh(self) -> object:
        """Read it again."""
        return self._refreshed() if self._transport.is_async else run(self._refreshed)

    async def _refreshed(self) -> Self:
        await self._read()
        return self

    async def _read(self) -> None:
        self._take(await self._transport.json("GET", self.path))

    def _take(self, data: Json) -> None:
        """Replace the fields by those of another response."""
        self.__dict__.update(vars(parse(type(self), data)))


def record(kind: type[O], transport: Transport, data: Json) -> O:
    """Return an object of a response. Raises `UnexpectedResponse`."""
    found = parse(kind, data)
    found._transport = transport
    return found


def listed(kind: type[O], transport: Transport) -> Callable[[Json], O]:
    return lambda data: record(kind, transport, data)


def plain(kind: type[T]) -> Callable[[Json], T]:
    return lambda data: parse(kind, data)


class Run(s.RunOut, Record[M], Generic[M]):
    """`state` is `queued`, `running`, `succeeded`, `failed` or `cancelled`. A run whose items failed in part has
    succeeded, with the `outcome` `with_failures`."""

    _etag: str | None = None

    @property
    def path(self) -> str:
        return f"/runs/{self.id}"

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED

    async def _read(self) -> None:
        found, self._etag = await self._transport.unless_unchanged(self.path, self._etag)
        if found is not None:
            self._take(found)

    @call
    async def wait(self, *, timeout: float | None = None, progress: Callable[[Run[M]], object] | None = None) -> Run[M]:
        """Return when it has ended; `progress` is called when it has changed.

        Raises `RunFailed` if it failed or was cancelled, `RunTimeout` after `timeout` seconds.
        """
        until = None if timeout is None else monotonic() + timeout
        pause, seen = FIRST_POLL, ""
        while True:
            if progress is not None and seen != (seen := self.model_dump_json()):
                progress(self)
            if self.has_ended:
                break
            if until is not None and monotonic() >= until:
                raise RunTimeout(f"Run {self.id} ({self.kind}) is {self.state} after {timeout:g} s.")
            await self._transport.sleep(pause if until is None else max(0.0, min(pause, until - monotonic())))
            pause = min(LONGEST_POLL, pause * 1.5)
            await self._read()
        if self.state != "succeeded":
            raise RunFailed(self)
        return self

    @call
    async def cancel(self) -> Run[M]:
        """Stop the run; finished items stay."""
        self._take(await self._transport.json("POST", f"{self.path}/cancel"))
        return self

    @call
    async def retry_failed(self) -> Run[M]:
        """Try its failed items again."""
        self._take(await self._transport.json("POST", f"{self.path}/retry-failed"))
        return self

    def items_in(self, *states: str) -> Rows[s.ItemOut, M]:
        """Its items in these states, each with its `reason`: `failed`, or `skipped` for the bad rows of an import."""
        return Rows(self._transport, f"{self.path}/items", {"state": states}, plain(s.ItemOut))

    def recorded_calls(self, /, **filters: Value) -> Rows[s.CallOut, M]:
        """Its model calls."""
        return Rows(self._transport, f"{self.path}/calls", filters, plain(s.CallOut))

    @call
    async def export(self) -> Export[M]:
        """Return the export that a run of kind `export` writes."""
        return record(Export, self._transport, await self._made("export"))

    @call
    async def evaluation(self) -> Evaluation[M]:
        """Return the evaluation that a run of kind `evaluate` makes."""
        return record(Evaluation, self._transport, await self._made("evaluation"))

    async def _made(self, name: str) -> Json:
        if name not in (self.result or {}):
            raise NotFound(404, {"code": "not_found", "detail": f"Run {self.id} ({self.kind}) makes no {name}."})
        return await self._transport.json("GET", f"/{name}s/{(self.result or {})[name]}")


class RunFailed(WinnowError):
    """The run has ended as failed or cancelled; `run` says why."""

    def __init__(self, run: Run[Any]) -> None:
        super().__init__(f"Run {run.id} ({run.kind}) is {run.state}: {run.error or 'no reason is recorded'}")
        self.run = run


class Sample(s.SampleDetail, Record[M], Generic[M]):
    """A row of the list, or with `refresh()` the whole sample. While you review blind, fields are None.

    A change moves `version` and leaves the other fields as they were read: reading the sample again would need the
    scope `read`, and count as a look at a sample that is still pending.
    """

    hidden: bool = False

    @property
    def path(self) -> str:
        return f"/samples/{self.id}"

    @call
    async def decide(
        self,
        action: str,
        *,
        reason: str = "",
        comment: str = "",
        preference: str | None = None,
        seconds: float | None = None,
    ) -> s.DecisionOut:
        """Decide, on the version that was read. Raises `Stale` if it has changed since.

        `action` is `approve`, `reject`, `refine`, `skip` or `flag`; `preference` is `king`, `challenger` or `draw`,
        with a lease also `left` or `right`.
        """
        return await self._decide(action, reason, comment, preference, seconds)

    @call
    async def approve(self, *, preference: str | None = None, comment: str = "") -> s.DecisionOut:
        return await self._decide("approve", "", comment, preference, None)

    @call
    async def reject(self, reason: str, *, comment: str = "") -> s.DecisionOut:
        return await self._decide("reject", reason, comment, None, None)

    @call
    async def undo(self) -> s.DecisionOut:
        """Undo your last decision on it, and return that."""
        return parse(s.DecisionOut, await self._change("undo"))

    @call
    async def revise(self, text: str, *, of: str = "challenger", note: str = "") -> s.RevisionOut:
        """Save another text of an answer, on the version that was read."""
        return parse(s.RevisionOut, await self._change("revisions", {"text": text, "of": of, "note": note}))

    def decisions(self) -> Rows[s.DecisionOut, M]:
        return Rows(self._transport, f"{self.path}/decisions", {}, plain(s.DecisionOut))

    async def _decide(
        self, action: str, reason: str, comment: str, preference: str | None, seconds: float | None
    ) -> s.DecisionOut:
        body = {"action": action, "reason": reason, "comment": comment, "preference": preference, "seconds": seconds}
        return parse(s.DecisionOut, await self._change("decisions", body))

    async def _change(self, what: str, body: Json | None = None) -> Json:
        version = None if body is None else self.version
        found, etag = await self._transport.change(f"{self.path}/{what}", body, version)
        self.version = int(etag)
        return found


class Audit(s.DrawnAuditOut, Record[M], Generic[M]):
    """A random sample of pending samples, which reviewers decide without knowing it.

    `refresh()` reads `proven`: the samples that may be approved unseen, or None.
    """

    @property
    def path(self) -> str:
        return f"/audits/{self.id}"

    @call
    async def extend(self) -> Audit[M]:
        """Give people as many looks again, where the audit was drawn with extensions."""
        await self._transport.json("POST", f"{self.path}/extensions")
        await self._read()
        return self

    @call
    async def approve(self, *, keep_alive: float = 0.0) -> Guarantee[M]:
        """Approve the proven samples. The share `keep_alive` stays for people, whose errors end the guarantee."""
        made = await self._transport.json("POST", f"{self.path}/guarantees", body={"keep_alive": keep_alive})
        return record(Guarantee, self._transport, made)


class Guarantee(s.GuaranteeOut, Record[M], Generic[M]):
    """`state` is `approving`, `holds` or `withdrawn`."""

    @property
    def path(self) -> str:
        return f"/guarantees/{self.id}"

    @call
    async def withdraw(self) -> Guarantee[M]:
        """Make its samples pending again, but for those that a person has decided since."""
        await self._transport.json("DELETE", self.path)
        await self._read()
        return self


class Export(s.ExportOut, Record[M], Generic[M]):
    """`files` are empty before the run has ended."""

    @property
    def path(self) -> str:
        return f"/exports/{self.id}"

    @call
    async def download(self, folder: str | Path) -> list[Path]:
        """Write all files to a folder, which is made if it is missing; each is checked against its sha256."""
        return [await self._write(file, Path(folder)) for file in self.files]

    @call
    async def rows(self, split: str = "train", *, format: str = "") -> Iterator[Json]:
        """Read the rows of one file. `format` can be left out where the split has only one."""
        file = self._file(split, format)
        if file.name.endswith(".parquet"):
            return iter(cast("Any", await self._dataset(file)))
        content = TemporaryFile()  # noqa: SIM115 - it is closed with its last row
        await self._download(file, content)
        content.seek(0)
        return _lines(content, is_packed=file.name.endswith(".gz"))

    @call
    async def dataset(self, split: str = "train", *, format: str = "") -> datasets.Dataset:
        """Return the rows of one file as a `datasets.Dataset` in memory. For more than fits, use `download()`."""
        return await self._dataset(self._file(split, format))

    @call
    async def diff(self, after: Export[M]) -> s.ExportsComparisonOut:
        """Return the rows that a later export adds, removes, changes or moves."""
        found = await self._transport.json("GET", f"{self.path}/diff/{after.id}")
        return parse(s.ExportsComparisonOut, found)

    async def _dataset(self, file: s.FileOut) -> datasets.Dataset:
        try:
            import datasets
        except ImportError as error:
            raise MissingPackage("A Dataset needs the package datasets: pip install 'winnow-client[data]'") from error
        read = datasets.Dataset.from_parquet if file.name.endswith(".parquet") else datasets.Dataset.from_json
        with TemporaryDirectory() as folder:
            path = await self._write(file, Path(folder))
            found: datasets.Dataset = read(str(path), cache_dir=folder, keep_in_memory=True)
            return found

    async def _write(self, file: s.FileOut, folder: Path) -> Path:
        """Write a file; one that is not complete never has its name."""
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / Path(file.name).name
        part = target.with_name(f"{target.name}.part")
        try:
            with part.open("wb") as content:
                await self._download(file, content)
            return part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    async def _download(self, file: s.FileOut, content: IO[bytes]) -> None:
        await self._transport.download(f"{self.path}/files/{file.name}", content, file.sha256)

    def _file(self, split: str, format: str) -> s.FileOut:
        data = [file for file in self.files if file.format and file.split]
        found = [file for file in data if file.split == split and file.format == (format or file.format)]
        if len(found) == 1:
            return found[0]
        listed = ", ".join(f"{file.format} {file.split}" for file in data) or "none"
        what = f"{format or 'any format'}, split {split}"
        problem = "is not in" if not found else "is more than one file of"
        raise NotFound(404, {"code": "not_found", "detail": f"{what} {problem} export {self.id}, which has: {listed}."})


def _lines(content: IO[bytes], *, is_packed: bool) -> Iterator[Json]:
    with content, gzip.open(content, "rb") if is_packed else content as lines:
        yield from map(json.loads, lines)


class Evaluated(Record[M], Generic[M]):
    """The calls of an evaluation."""

    id: str

    @property
    def path(self) -> str:
        return f"/evaluations/{self.id}"

    def calls(self, /, **filters: Value) -> Rows[s.ScreenedOut, M]:
        """Every answer of a static evaluation."""
        return Rows(self._transport, f"{self.path}/calls", filters, plain(s.ScreenedOut))

    @call
    async def compare(self, /, after: Evaluated[M], **params: Value) -> s.ComparisonOut:
        """Pair the rows that both answered. `model_before` and `model_after` choose between several models."""
        path = f"{self.path}/compare/{after.id}"
        return parse(s.ComparisonOut, await self._transport.json("GET", path, params=query(params)))


class EvaluationRow(s.EvaluationBrief, Evaluated[M], Generic[M]):
    """An evaluation in the list. `Winnow.evaluation(id)` has its figures."""


class Evaluation(s.EvaluationOut, Evaluated[M], Generic[M]):
    """`rows` are the figures of each model, as ratios."""
