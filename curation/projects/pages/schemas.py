from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal

from ninja import Schema
from pydantic import Field, JsonValue

from curation.projects.models import Project, Role, Scope
from curation.projects.settings.dependents import MissingOut, missing_names
from curation.projects.tokens.issue import MAX_DAYS
from curation.web.lists.filters import ArchivableList, ListParams, Moment, RequestQuery, Words, named_list
from curation.web.schemas import Id, Out, StrictModel, Username

STAMP = "2026-01-31T09:30:00Z"


class ProjectList(ArchivableList):
    sorts = ("slug", "-id", "id")


class ProjectIn(StrictModel):
    slug: str | None = Field(None, examples=["shell-agents"], description="Made of the name if it is missing.")
    name: str = Field(examples=["Shell agents"])


class ProjectPatch(StrictModel):
    """Only given fields change; `settings` is merged deeply, and null resets a setting to its default."""

    name: str | None = Field(None, examples=["Shell agents"])
    guidelines: str | None = Field(None, examples=["## Approve\nA step that the history supports."])
    archived: bool | None = Field(None, description="True makes the project read-only and hides it; false undoes that.")
    settings: dict[str, JsonValue] | None = Field(None, examples=[{"thresholds": {"final": 82}}])


class Confirmation(StrictModel):
    name: str = Field("", examples=["Shell agents"], description="The project's name, typed to confirm.")


class ProjectOut(Out):
    id: Id = Field(examples=["1"])
    slug: str = Field(examples=["shell-agents"])
    name: str = Field(examples=["Shell agents"])
    guidelines: str
    settings: dict[str, JsonValue] = Field(examples=[{"thresholds": {"final": 80.0, "refined": 66.0}}])
    missing: list[MissingOut] | None = Field(
        None, description="Names in the settings that do not exist any more; null in lists."
    )
    version: int = Field(examples=[1], description="The `ETag`; send it as `If-Match` with a change.")
    archived_at: datetime | None = Field(examples=[None], description="Null unless the project is archived.")
    created_at: datetime = Field(examples=[STAMP])

    @staticmethod
    def resolve_settings(project: Project) -> dict[str, JsonValue]:
        return project.settings.model_dump(mode="json")

    @staticmethod
    def alone(project: Project) -> "ProjectOut":
        """Return the shape of one project, with the missing names in its settings."""
        return ProjectOut.model_validate(project).model_copy(update={"missing": missing_names(project)})


class MemberIn(StrictModel):
    username: str = Field(examples=["ada"])
    role: str = Field(Role.REVIEWER.value, examples=["reviewer"], description="viewer, reviewer, curator or admin")


class RoleIn(StrictModel):
    role: str = Field(examples=["curator"])


class MemberOut(Out):
    username: Username = Field(examples=["ada"], validation_alias="user")
    role: str = Field(examples=["reviewer"])
    created_at: datetime = Field(examples=[STAMP])


class TokenIn(StrictModel):
    name: str = Field("", examples=["nightly export"])
    scopes: list[str] = Field([Scope.READ.value], examples=[["read", "export"]])
    expires_in_days: int | None = Field(None, examples=[90], description=f"1 to {MAX_DAYS}; null: it never expires.")


class TokenOut(Schema):
    id: Id = Field(examples=["7"])
    name: str = Field(examples=["nightly export"])
    prefix: str = Field(examples=["wn_Xa3fQ"])
    scopes: list[str] = Field(examples=[["export", "read"]])
    expires_at: datetime | None = Field(examples=[STAMP])
    last_used_at: datetime | None = Field(examples=[STAMP])
    created_at: datetime = Field(examples=[STAMP])


class NewTokenOut(TokenOut):
    token: str | None = Field(
        examples=["wn_…"], description="The secret, shown once; null in the response to a repeated `Idempotency-Key`."
    )


class AuditFilter(RequestQuery):
    lookups: ClassVar[Mapping[str, str]] = {
        "action": "action",
        "actor": "actor__username",
        "created_after": "created_at__gt",
        "created_before": "created_at__lt",
    }

    action: Words = Field((), description="Such as `model.update`; a comma list matches any of them.")
    actor: Words = Field((), description="A username; a comma list matches any of them.")
    created_after: Moment | None = None
    created_before: Moment | None = None


@named_list("audit", page="audit-list")
class AuditList(AuditFilter, ListParams):
    """A page of the log."""


class AuditPageParams(AuditList):
    limit: int = Field(100, ge=1, le=500)


class AuditExport(AuditFilter):
    format: Literal["jsonl", "csv"] = Field("jsonl", description="JSON Lines, or a table for spreadsheets.")


class AuditOut(Schema):
    id: Id = Field(examples=["42"])
    action: str = Field(examples=["model.update"])
    subject: str = Field(examples=["judge-a"])
    actor: Username | None = Field(examples=["ada"], description="null for changes by the system")
    data: dict[str, JsonValue]
    created_at: datetime = Field(examples=[STAMP])


class InstructionsIn(StrictModel):
    text: str | None = Field(
        examples=["You compare two answers …"], description="The project's own text; null returns to the shipped text."
    )
    version: int = Field(examples=[0], description="The version that you read.")


class InstructionsVersionOut(Schema):
    version: int
    shipped: bool
    sha256: str
    author: Username | None
    created_at: datetime


class SettingsIn(StrictModel):
    settings: dict[str, JsonValue] = Field(examples=[{"thresholds": {"final": 85.0}}])
