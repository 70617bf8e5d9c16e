"""Request bodies and responses of the service accounts' REST calls."""

from datetime import datetime

from ninja import Schema
from pydantic import Field

from curation.projects.models import Role, ServiceAccount
from curation.projects.pages.schemas import STAMP, Strict


class ServiceAccountIn(Strict):
    name: str = Field(examples=["nightly-export"], description="Lower-case letters, digits and hyphens.")
    role: str = Field(Role.VIEWER.value, examples=["curator"], description="viewer, reviewer, curator or admin")
    note: str = Field("", examples=["The export of every night, in the CI of acme/train."])


class ServiceAccountOut(Schema):
    username: str = Field(examples=["nightly-export@shell-agents"])
    role: str | None = Field(examples=["curator"], description="Changed like that of any member.")
    note: str
    created_by: str | None = Field(examples=["ada"])
    created_at: datetime = Field(examples=[STAMP])

    @staticmethod
    def of(row: ServiceAccount) -> "ServiceAccountOut":
        return ServiceAccountOut(
            username=row.user.get_username(),
            role=row.role,
            note=row.note,
            created_by=row.created_by.get_username() if row.created_by else None,
            created_at=row.created_at,
        )
