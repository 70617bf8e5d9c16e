"""The parameters of a run of kind `score`, and the parts of a trajectory that a scorer gets."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from curation.imports.layouts.messages.write import own_message
from curation.imports.layouts.session import Json
from curation.trajectories.models import TrajectoryText
from curation.web.schemas import StrictModel
from judging.criteria import Unscored, read_criteria
from judging.messages import message_text

WAYS = ("python", "url", "rubric")


class ScoreParams(StrictModel):
    """Each trajectory of `filter` gets the reward `name` from one scorer: `python`, `url` or `rubric`."""

    name: Annotated[
        str,
        Field(pattern=r"^[A-Za-z][A-Za-z0-9.-]{0,59}$", examples=["style"], description="The name of the reward."),
    ]
    subject: Annotated[
        Literal["trajectory", "answer", "step"],
        Field(description="Score the session, its last message, or each step of the agent, of which the mean counts."),
    ] = "trajectory"
    python: Annotated[
        str, Field(max_length=100_000, description="A Python file with a function `score`; it runs in the sandbox.")
    ] = ""
    url: Annotated[str, Field(max_length=500, description="An address that answers POST with `scores`.")] = ""
    rubric: Annotated[
        str, Field(max_length=50_000, description="A text, or TOML with criteria of Harbor's rewardkit.")
    ] = ""
    model: Annotated[str, Field(description="The model that reads the rubric.")] = ""
    filter: dict[str, Any] = {}

    @model_validator(mode="after")
    def one_way(self) -> "ScoreParams":
        if sum(bool(getattr(self, way)) for way in WAYS) != 1:
            raise ValueError(f"name one scorer: {', '.join(WAYS)}")
        if bool(self.rubric) != bool(self.model):
            raise ValueError("a rubric needs a `model`, and other scorers have none")
        if self.rubric:
            try:
                read_criteria(self.rubric)
            except Unscored as wrong:
                raise ValueError(f"rubric: {wrong}") from None
        return self


def positions_of(text: TrajectoryText, subject: str) -> list[int]:
    """Return the positions of the steps that are scored, from 0. That of a session is its last step."""
    own = [position for position, step in enumerate(text.steps) if step["source"] == "agent"]
    return own if subject == "step" else own[-1:]


def subjects_of(text: TrajectoryText, subject: str, document: Json) -> Sequence[object]:
    """Return the input of a program: the ATIF document, the text of the answer, or steps in the names of ATIF."""
    if subject == "trajectory":
        return [document]
    steps = [text.steps[position] for position in positions_of(text, subject)]
    return [answer_of(step) for step in steps] if subject == "answer" else steps


def answer_of(step: Json) -> str:
    return message_text(own_message(step))
