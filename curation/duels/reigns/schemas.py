from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar

from ninja import Schema
from pydantic import Field

from curation.duels.reigns.models import Reign
from curation.duels.reigns.pages import ChallengeOut, ReignView
from curation.web.lists.params import ListParams, named_list
from curation.web.schemas import Id, Out, Strict, Username


@named_list("reigns", page="reign-list")
class ReignList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id")


class CrownIn(Strict):
    """`challenger` is its model or the beginning of its fingerprint, where the run accepted several."""

    run: str = Field(examples=["12"])
    challenger: str = Field("", examples=[""])


class EndReignIn(Strict):
    reason: str = Field(examples=["The endpoint answers with another model since Monday."])


class VersionOut(Schema):
    """SHA-256 of the instructions, and the fingerprint over stage, model, instructions and parameters."""

    instructions: str
    fingerprint: str


class ReignOut(Out):
    """A crowned contestant. `challenger` is the version whose answers won, `king` the one that answers blind."""

    id: Id = Field(examples=["3"])
    model: str = Field(examples=["model-b"], description="The endpoint's name.")
    target: dict[str, Any] = Field(
        examples=[{"model": "openai/model-b", "api_base": "", "params": {"temperature": 0.7, "max_tokens": 2048}}],
        description="What the endpoint was when it was crowned.",
    )
    challenger: VersionOut
    king: VersionOut
    run: Id | None = Field(validation_alias="run_id", examples=["12"])
    margin: float = Field(examples=[14.2], description="Points, over the king before.")
    lcb: float = Field(examples=[8.1], description="Points.")
    panels: list[str] = Field(examples=[["3f9a1c0b77de"]])
    crowned_by: Username | None = Field(examples=["ada"], description="Null: by the project's setting.")
    crowned_at: datetime
    ended_at: datetime | None = Field(description="Null: it reigns.")
    ended_by: Username | None
    end_reason: str = Field(examples=[""], description="Empty: the next king followed.")
    notes: list[str] = Field(
        [], description="What has changed since: a deleted endpoint, another version, a new verdict."
    )
    challenges: list[ChallengeOut] = []

    @staticmethod
    def resolve_challenger(row: Reign) -> VersionOut:
        return VersionOut(instructions=row.instructions_hash, fingerprint=row.fingerprint)

    @staticmethod
    def resolve_king(row: Reign) -> VersionOut:
        return VersionOut(instructions=row.king_instructions_hash, fingerprint=row.king_fingerprint)

    @staticmethod
    def of(view: ReignView) -> "ReignOut":
        challenges = list(view.challenges)
        beside = {"notes": list(view.notes), "challenges": challenges}
        return ReignOut.model_validate(view.row).model_copy(update=beside)
