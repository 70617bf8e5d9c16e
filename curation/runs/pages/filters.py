from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from curation.runs.kinds import listed_kinds
from curation.runs.models import CallStatus, ItemState, RunOutcome, RunState
from curation.web.lists.filters import Moment, Rows, Words, ids_of, one_of
from curation.web.lists.params import ArchivableList, ListParams, named_list

CALL_TABS = (("ok", "Answered"), ("error", "Failed"), ("lost", "Lost"))


def kind_names() -> list[str]:
    return [kind.name for kind in listed_kinds()]


@named_list("runs", page="run-list")
class RunList(ArchivableList):
    lookups: ClassVar[Mapping[str, str]] = {"kind": "kind", "state": "state"}

    kind: Annotated[Words, one_of(kind_names)] = ()
    state: Annotated[Words, one_of(RunState.values)] = ()
    outcome: Annotated[Words, one_of(RunOutcome.values)] = ()

    def narrow(self, rows: Rows) -> Rows:
        found = super().narrow(rows)
        return found.filter(state=RunState.SUCCEEDED, items_failed__gt=0) if self.outcome else found


class ItemList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")
    lookups: ClassVar[Mapping[str, str]] = {"stage": "stage", "state": "state"}

    stage: Words = ()
    state: Annotated[Words, one_of(ItemState.values)] = ()


class EventList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id",)
    lookups: ClassVar[Mapping[str, str]] = {"after": "id__gt"}

    after: int | None = Field(None, ge=0, description="Only events after the one with this id.")


class CallList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("id", "-id")
    lookups: ClassVar[Mapping[str, str]] = {"status": "status", "model": "endpoint_name", "stage": "item__stage"}

    status: Annotated[Words, one_of(CallStatus.values)] = ()
    model: Words = Field((), description="Names of endpoints.")
    stage: Words = Field((), description="Stages of the items that the calls are of.")


@named_list("calls", page="call-list")
class ProjectCallList(CallList):
    lookups: ClassVar[Mapping[str, str]] = {
        **CallList.lookups,
        "run": "run_id",
        "created_after": "created_at__gte",
        "created_before": "created_at__lt",
        "cost_unknown": "cost__isnull",
    }

    run: Annotated[Words, ids_of("run")] = ()
    created_after: Moment | None = Field(None, description="From this moment on.")
    created_before: Moment | None = Field(None, description="Before this moment.")
    cost_unknown: bool | None = Field(None, description="Whether the price of the call is unknown.")
