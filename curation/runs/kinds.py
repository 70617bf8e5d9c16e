"""What kinds of run there are. An app registers its kinds when it is ready; the engine knows them only from here."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from curation.llm.client.completion import Target
from curation.projects.models import Project
from curation.runs.models import Item, Run
from curation.web.problems import Invalid

if TYPE_CHECKING:
    from curation.runs.engine.llm_stage import LlmContext
    from curation.runs.engine.sync_stage import WorkContext

Json = dict[str, Any]
# What one process keeps open of model calls alone; a stage that also holds something dear (a sandbox) says less.
MOST_OPEN_CALLS = 512
# What a stage found out about an item, as a write: called inside the transaction that also ends the item. What it
# returns becomes `Item.result`.
Write = Callable[[], Json]
Job = TypeVar("Job")


class ItemFailed(Exception):
    """The item cannot be done; the reason is kept and shown. "Retry failed" takes it up again.

    `write` keeps what was found on the way, in the transaction that ends the item.
    """

    def __init__(self, reason: str, write: Write | None = None) -> None:
        super().__init__(reason)
        self.write = write


class ItemSkipped(Exception):
    """There is nothing to do for this item; the reason is kept and shown."""


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """An item to be written. `key` is unique in its run and stage; with `skipped` it is written as skipped, counted."""

    key: str
    target_id: int | None = None
    data: Json = field(default_factory=dict)
    skipped: str = ""


class Stage(Protocol):
    """One step of a kind. Planning is repeatable: the same run and data give the same keys."""

    name: str
    queue: str

    def plan(self, run: Run) -> Iterable[PlannedItem]: ...


class SyncStage(Stage, Protocol):
    """A stage whose items are worked on one at a time. A long item calls `context.checkpoint()` now and then."""

    def work(self, context: "WorkContext", item: Item) -> Write: ...


@runtime_checkable
class LlmStage(Stage, Protocol[Job]):
    """A stage of model calls: many items at once in one process, `most_open` at the most.

    `load` reads what a batch of items needs in few queries; `work` asks models through the context and returns the
    write. `targets` are the endpoints that will be asked.
    """

    most_open: int

    def targets(self, run: Run) -> Sequence[Target]: ...

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, Job]: ...

    async def work(self, context: "LlmContext", item: Item, job: Job) -> Write: ...


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a launch would do: calls, tokens and US dollars, all estimated. `cost` None means a price is unknown."""

    items: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Decimal | None = Decimal(0)
    unpriced: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _nothing(run: Run) -> Json:
    return {}


def _no_bound(params: Any) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of run: typed parameters, stages in a row, what is checked before and said after.

    `begin` gives the run's first `result` (what is being made), inside the launch's transaction; `finish` adds the
    figures at the end. `most_at_once` bounds the items of one run that all workers together have in hand, for the sake
    of a server that is asked through them; None is no bound.
    """

    name: str
    title: str
    params: type[BaseModel]
    stages: Callable[[Any], Sequence[Stage]]
    check: Callable[[Project, Any], None]
    estimate: Callable[[Project, Any], Estimate]
    begin: Callable[[Run], Json] = _nothing
    finish: Callable[[Run], Json] = _nothing
    most_at_once: Callable[[Any], int | None] = _no_bound
    listed: bool = True

    def read(self, run: Run) -> Any:
        """The run's parameters as this kind's model."""
        return self.params.model_validate(run.params)


_kinds: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    _kinds[kind.name] = kind


def kind_of(name: str) -> Kind:
    kind = _kinds.get(name)
    if kind is None:
        known = ", ".join(sorted(k.name for k in _kinds.values() if k.listed))
        raise Invalid(f"There is no run kind {name!r}; there are {known}.", code="unknown_kind")
    return kind


def listed_kinds() -> list[Kind]:
    return [kind for kind in _kinds.values() if kind.listed]


def stages_of(run: Run) -> Sequence[Stage]:
    kind = kind_of(run.kind)
    return kind.stages(kind.read(run))


def stage_of(run: Run) -> Stage | None:
    """The stage in hand; None once the last has ended."""
    return next((stage for stage in stages_of(run) if stage.name == run.stage), None)
