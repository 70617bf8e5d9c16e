from datetime import datetime

from ninja import Schema
from pydantic import Field

from curation.projects.invitations.invite import DAYS, MAX_DAYS
from curation.projects.models import Role
from curation.projects.pages.schemas import STAMP
from curation.web.schemas import Id, Out, Strict, Username


class InvitationIn(Strict):
    role: str = Field(Role.REVIEWER.value, examples=["reviewer"], description="viewer, reviewer, curator or admin")
    username: str = Field("", examples=["ada"], description="Only the user of this name can accept it.")
    note: str = Field("", examples=["Ada from the data team"], description="Whom it is for, for the admins.")
    expires_in_days: int = Field(DAYS, examples=[7], description=f"1 to {MAX_DAYS}.")


class InvitationOut(Schema):
    id: Id = Field(examples=["3"])
    role: str = Field(examples=["reviewer"])
    username: str = Field(examples=["ada"])
    note: str
    state: str = Field(examples=["pending"], description="pending, accepted or expired")
    invited_by: Username = Field(examples=["grace"])
    accepted_by: Username | None = Field(examples=["ada"])
    expires_at: datetime = Field(examples=[STAMP])
    created_at: datetime = Field(examples=[STAMP])


class NewInvitationOut(InvitationOut):
    link: str | None = Field(
        examples=["https://winnow.example.org/invitations/…/"],
        description="Shown once; null in the response to a repeated `Idempotency-Key`.",
    )


class ReceivedInvitationOut(Out):
    id: Id = Field(examples=["3"])
    project: str = Field(examples=["Shell agents"], validation_alias="project.name")
    role: str = Field(examples=["reviewer"])
    invited_by: Username = Field(examples=["grace"])
    expires_at: datetime = Field(examples=[STAMP])


class AcceptIn(Strict):
    """The last part of the link, or the id of an invitation for your name."""

    secret: str = Field("", examples=["x3Ua…"], max_length=200)
    id: str = Field("", examples=[""], max_length=18)
