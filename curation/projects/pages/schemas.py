"""Request bodies and responses of the projects' REST calls."""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, JsonValue

from curation.projects.models import AuditEntry, InstructionsOverride, Member, Project, Role, Scope, Token
from curation.projects.settings.dependents import Move, Preview, missing_names
from curation.projects.tokens.issue import MAX_DAYS
from curation.web.lists.filters import Moment, Words
from curation.web.lists.params import ListParams, RequestQuery, named_list

STAMP = "2026-01-31T09:30:00Z"


class Strict(Schema):
    """A request body that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class ProjectList(ListParams):
    sorts: ClassVar = ("slug", "-id", "id")

    archived: bool = Field(False, description="True lists the archived projects instead.")


class ProjectIn(Strict):
    slug: str = Field(examples=["shell-agents"])
    name: str = Field(examples=["Shell agents"])


class ProjectPatch(Strict):
    """Only given fields change; `settings` is merged deeply, and null resets a setting to its default."""

    name: str | None = Field(None, examples=["Shell agents"])
    guidelines: str | None = Field(None, examples=["## Approve\nA step that the history supports."])
    archived: bool | None = Field(None, description="True makes the project read-only and hides it; false undoes that.")
    settings: dict[str, JsonValue] | None = Field(None, examples=[{"thresholds": {"final": 82}}])


class Confirmation(Strict):
    name: str = Field("", examples=["Shell agents"], description="The project's name, typed to confirm.")


class MissingOut(Schema):
    path: str = Field(examples=["panel.judges"])
    thing: str = Field(examples=["judge judge-x"])


class ProjectOut(Schema):
    id: str = Field(examples=["1"])
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
    def of(project: Project) -> "ProjectOut":
        return ProjectOut(
            id=str(project.pk),
            slug=project.slug,
            name=project.name,
            guidelines=project.guidelines,
            settings=project.settings.model_dump(mode="json"),
            missing=None,
            version=project.version,
            archived_at=project.archived_at,
            created_at=project.created_at,
        )

    @staticmethod
    def alone(project: Project) -> "ProjectOut":
        """Return the shape of one project, with the missing names in its settings."""
        missing = [MissingOut(path=path, thing=thing) for path, thing in missing_names(project)]
        return ProjectOut.of(project).model_copy(update={"missing": missing})


class MemberIn(Strict):
    username: str = Field(examples=["ada"])
    role: str = Field(Role.REVIEWER.value, examples=["reviewer"], description="viewer, reviewer, curator or admin")


class RoleIn(Strict):
    role: str = Field(examples=["curator"])


class MemberOut(Schema):
    username: str = Field(examples=["ada"])
    role: str = Field(examples=["reviewer"])
    created_at: datetime = Field(examples=[STAMP])

    @staticmethod
    def of(member: Member) -> "MemberOut":
        return MemberOut(username=member.user.get_username(), role=member.role, created_at=member.created_at)


class TokenIn(Strict):
    name: str = Field("", examples=["nightly export"])
    scopes: list[str] = Field([Scope.READ.value], examples=[["read", "export"]])
    expires_in_days: int | None = Field(None, examples=[90], description=f"1 to {MAX_DAYS}; null: it never expires.")


class TokenOut(Schema):
    id: str = Field(examples=["7"])
    name: str = Field(examples=["nightly export"])
    prefix: str = Field(examples=["wn_Xa3fQ"])
    scopes: list[str] = Field(examples=[["export", "read"]])
    expires_at: datetime | None = Field(examples=[STAMP])
    last_used_at: datetime | None = Field(examples=[STAMP])
    created_at: datetime = Field(examples=[STAMP])

    @staticmethod
    def of(row: Token) -> "TokenOut":
        return TokenOut(
            id=str(row.pk),
            name=row.name,
            prefix=row.prefix,
            scopes=row.scopes,
            expires_at=row.expires_at,
            last_used_at=row.last_used_at,
            created_at=row.created_at,
        )


class NewTokenOut(TokenOut):
    token: str | None = Field(
        examples=["wn_…"],
        description="The secret, shown once; null in the response to a repeated `Idempotency-Key`.",
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


class AuditExport(AuditFilter):
    format: Literal["jsonl", "csv"] = Field("jsonl", description="JSON Lines, or a table for spreadsheets.")


class AuditOut(Schema):
    id: str = Field(examples=["42"])
    action: str = Field(examples=["model.update"])
    subject: str = Field(examples=["judge-a"])
    actor: str | None = Field(examples=["ada"], description="null for changes by the system")
    data: dict[str, JsonValue]
    created_at: datetime = Field(examples=[STAMP])

    @staticmethod
    def of(row: AuditEntry) -> "AuditOut":
        return AuditOut(
            id=str(row.pk),
            action=row.action,
            subject=row.subject,
            actor=row.actor.get_username() if row.actor else None,
            data=row.data,
            created_at=row.created_at,
        )


class InstructionsIn(Strict):
    text: str | None = Field(
        examples=["You compare two answers …"], description="The project's own text; null returns to the shipped text."
    )
    version: int = Field(examples=[0], description="The version that you read.")


class InstructionsOut(Schema):
    name: str = Field(examples=["judge"])
    title: str = Field(examples=["Judge"])
    text: str
    sha256: str
    overridden: bool
    version: int = Field(examples=[0])


class InstructionsVersionOut(Schema):
    version: int
    shipped: bool
    sha256: str
    author: str | None
    created_at: datetime

    @staticmethod
    def of(row: InstructionsOverride) -> "InstructionsVersionOut":
        return InstructionsVersionOut(
            version=row.version,
            shipped=row.shipped,
            sha256=row.sha256,
            author=row.author.get_username() if row.author else None,
            created_at=row.created_at,
        )


class SettingsIn(Strict):
    settings: dict[str, JsonValue] = Field(examples=[{"thresholds": {"final": 85.0}}])


class ChangeOut(Schema):
    path: str = Field(examples=["thresholds.final"])
    before: JsonValue = Field(examples=[80.0])
    after: JsonValue = Field(examples=[85.0])


class MoveOut(Schema):
    """Samples that would go from one bucket to another. An empty bucket: no score by the panel that counts."""

    before: str = Field(examples=["final"])
    after: str = Field(examples=["refined"])
    samples: int = Field(examples=[12])
    decided: int = Field(examples=[3], description="How many of them people have decided; decisions stay.")
    examples: list[str] = Field(examples=[["/p/shell-agents/samples/4711/"]])

    @staticmethod
    def of(move: Move) -> "MoveOut":
        return MoveOut(
            before=move.before,
            after=move.after,
            samples=move.samples,
            decided=move.decided,
            examples=[example.url for example in move.examples],
        )


class SettingsPreviewOut(Schema):
    changes: list[ChangeOut]
    moves: list[MoveOut]
    version: int = Field(description="The project's; send it as `If-Match` with the change.")

    @staticmethod
    def of(preview: Preview, version: int) -> "SettingsPreviewOut":
        return SettingsPreviewOut(
            changes=[ChangeOut(path=one.path, before=one.before, after=one.after) for one in preview.changes],
            moves=[MoveOut.of(move) for move in preview.moves],
            version=version,
        )
