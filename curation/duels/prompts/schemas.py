from datetime import datetime
from typing import Any

from pydantic import Field

from curation.web.schemas import Id, Out, Strict, Username

_MESSAGE = {"role": "user", "content": "Fix the rounding of totals."}


class PromptOut(Out):
    """One agent turn. `exclusion` is the reason why runs skip it, or null."""

    id: Id = Field(examples=["4711"])
    source: str = Field(examples=["turns.jsonl"])
    row_offset: int = Field(examples=[16], description="Row of the source, from 0.")
    turn_index: int = Field(examples=[4], description="Index of the reference in the row's messages.")
    instance_id: str = Field(examples=["acme__billing-17"])
    repo: str = Field(examples=["acme/billing"])
    tokens: int = Field(examples=[5120], description="Estimated: characters of the history ÷ 4.")
    has_record: bool = False
    doubt: str | None = Field(None, examples=[None], description="Why no challenger uses the record, or null.")
    exclusion: str | None = Field(None, examples=[None])
    run: Id | None = Field(validation_alias="run_id", examples=["97"], description="The import that created it.")
    created_at: datetime


class PromptDetail(PromptOut):
    history: list[dict[str, Any]] = Field(validation_alias="text.history", examples=[[_MESSAGE]])
    reference: dict[str, Any] | None = Field(
        None,
        examples=[{"role": "assistant", "content": "THOUGHT: I read the file first."}],
        description="Null while you review blind and it is one side of a pending sample.",
    )
    tools: list[dict[str, Any]] = Field(
        validation_alias="text.tools",
        examples=[[{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]],
        description="Functions that a model may call, in OpenAI's form.",
    )


class ExclusionRow(Strict):
    instance_id: str = Field(examples=["acme__billing-17"])
    reason: str = Field(examples=["broken environment"])


class ExclusionsIn(Strict):
    exclusions: list[ExclusionRow] = Field(
        description="Up to 500.", examples=[[{"instance_id": "acme__billing-17", "reason": "broken environment"}]]
    )


class InstancesIn(Strict):
    instance_ids: list[str] = Field(description="Up to 500.", examples=[["acme__billing-17"]])


class ExclusionOut(ExclusionRow):
    """`created_by` is null if an import excluded the instance."""

    id: Id
    created_by: Username | None
    created_at: datetime


class PullRequestOut(Out):
    id: Id
    instance_id: str = Field(examples=["acme__billing-17"])
    repo: str = Field(examples=["acme/billing"])
    title: str = Field(examples=["Round totals half up"])
    commit: str
    files: list[str] = Field(examples=[["billing/totals.py"]])
    patch_tokens: int = Field(examples=[340])
    doubtful: bool = Field(
        validation_alias="is_doubtful", description="No challenger uses it until a curator clears it."
    )
    doubt: str = Field(examples=[""], description="Why it may belong to another task; also after it was cleared.")
