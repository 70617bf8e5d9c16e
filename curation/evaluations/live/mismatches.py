"""Episodes of another task than the one asked for: recorded with both texts, never scored, never paired."""

import orjson
from django.db.models import QuerySet

from curation.evaluations.live.schemas import MismatchOut
from curation.evaluations.models import Evaluation
from curation.runs.kinds import Json
from curation.runs.models import Item, ItemState, Run
from curation.web.problems import Conflict
from sandbox.errors import OtherTask

# So many in a row end the run: the server does not play the requested tasks.
IN_A_ROW = 10
SHOWN, SHOWN_RESET = 20, 400


def as_mismatch(other: OtherTask) -> Json:
    """The result of an item whose episode was of another task."""
    return {"mismatch": {"asked": dict(other.asked), "played": dict(other.played)}}


def stop_if_all_mismatch(run: Run) -> None:
    """Raise `Conflict` with both texts if the last episodes that ended were all of other tasks."""
    ended = Item.objects.filter(run=run, stage="episodes", finished_at__isnull=False).order_by("-finished_at", "-pk")
    last = list(ended.values_list("state", "result", "data")[:IN_A_ROW])
    if len(last) < IN_A_ROW or not all(
        state == ItemState.FAILED and result.get("mismatch") for state, result, _ in last
    ):
        return
    _, result, data = last[0]
    asked, played = (result["mismatch"][side]["sentence"] for side in ("asked", "played"))
    raise Conflict(
        f"{IN_A_ROW} episodes in a row were of other tasks than the ones asked for. The last one: asked for {asked}; "
        f"the server played {played}. Sent with the reset: {orjson.dumps(data['reset']).decode()[:SHOWN_RESET]}. None "
        "of them is scored. Launch again with another reset template; after a change of the server, retry the failed "
        "episodes.",
        code="other_tasks",
    )


def mismatched_items(evaluation: Evaluation) -> QuerySet[Item]:
    items = Item.objects.filter(run_id=evaluation.run_id, stage="episodes", state=ItemState.FAILED)
    return items.filter(result__has_key="mismatch")


def mismatches_of(evaluation: Evaluation) -> list[MismatchOut]:
    """The first `SHOWN`, in the order of the tasks."""
    names = dict(evaluation.models.values_list("place", "name"))
    items = mismatched_items(evaluation).order_by("pk").values_list("data", "result")[:SHOWN]
    return [
        MismatchOut(model=names.get(data["place"], ""), key=data["task"], **result["mismatch"], sent=data["reset"])
        for data, result in items
    ]
