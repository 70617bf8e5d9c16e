"""Request bodies and responses of the service accounts' REST calls."""

from datetime import datetime

from pydantic import Field

from curation.projects.models import Role
from curation.projects.pages.schemas import STAMP
from curation.web.schemas import Out, Strict, Username


class ServiceAccountIn(Strict):
    name: str = Field(examples=["nightly-export"], description="Lower-case letters, digits and hyphens.")
    role: str = Field(Role.VIEWER.value, examples=["curator"], description="viewer, reviewer, curator or admin")
    note: str = Field("", examples=["The export of every night, in the CI of acme/train."])


class ServiceAccountOut(Out):
    username: Username = Field(examples=["nightly-export@shell-agents"], validation_alias="user")
    role: str | None = Field(examples=["curator"], description="Changed like that of any member.")
    note: str
    created_by: Username | None = Field(examples=["ada"])
    created_at: datetime = Field(examples=[STAMP])
