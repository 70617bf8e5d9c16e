"""The common parts of the settings' sections: their base and the types of their fields."""

from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue

from curation.web.schemas import StrictModel

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Points = Annotated[float, Field(ge=0.0, le=100.0)]
Temperature = Annotated[float, Field(ge=0.0, le=2.0)]
TokenLimit = Annotated[int, Field(ge=16, le=131_072)]
Name = Annotated[str, Field(min_length=1, max_length=60)]
Rule = Annotated[str, Field(min_length=1, max_length=300)]
TraceSource = Annotated[
    str,
    Field(
        max_length=400,
        pattern=r"^(langfuse|phoenix) https?://[^\s/?#@]+(/[^\s?#@]*)?"
        r"( (-|[A-Z_][A-Z0-9_]{0,99})( [^\s/?#][^/?#]*)?)?$",
    ),
]
DimensionName = Annotated[str, Field(pattern=r"^[a-z][a-z_]{0,29}$")]
AxisName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,59}$")]
AxisValue = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,59}$")]
# Marks a setting that names model endpoints; `curation.llm` refuses names that do not exist.
OF_MODELS: dict[str, JsonValue] = {"names": "models"}


class SettingsSection(StrictModel):
    """Frozen, because stored settings are read once for all callers."""

    model_config = ConfigDict(frozen=True)


def words(*shown: str) -> dict[str, JsonValue]:
    """A form's labels for the values of a choice, in their order."""
    return {"x-words": list(shown)}
