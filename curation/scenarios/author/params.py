from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from curation.scenarios.taxonomy.axes import Taxonomy
from curation.web.problems import FieldError, Invalid
from curation.web.schemas import StrictModel

Value = str | int


class AuthorParams(StrictModel):
    """`axes` pins some axes to a value or to several; the others are chosen where the fewest scenarios are.

    `attempts` counts invalid documents, `repairs` how often a bundle that the gate refused goes back to the model with
    the report. Without `seed` every run writes others. `structured` sends the bundle's schema to models that take one.
    """

    model: str
    n: Annotated[int, Field(ge=1, le=2000)] = 10
    axes: dict[str, Value | list[Value]] = {}
    attempts: Annotated[int, Field(ge=1, le=10, description="Attempts per bundle, if its document is invalid.")] = 3
    repairs: Annotated[int, Field(ge=0, le=5)] = 2
    repeats: Annotated[int, Field(ge=0, le=20)] = 2
    structured: bool = True
    seed: Annotated[int, Field(ge=0, le=2**53)] | None = None
    dry_run: bool = False

    def pins(self, taxonomy: Taxonomy) -> dict[str, list[str]]:
        """Axis → allowed values. Raises `Invalid` for unknown axes and values."""
        pins: dict[str, list[str]] = {}
        errors: list[FieldError] = []
        for axis, given in self.axes.items():
            values: Sequence[Value] = given if isinstance(given, list) else [given]
            if not values:
                errors.append(FieldError(f"params.axes.{axis}", "needs at least one value"))
            for value in values:
                errors += taxonomy.errors({axis: value}, path="params.axes")
            pins[axis] = list(dict.fromkeys(str(value) for value in values))
        if errors:
            raise Invalid.fields(errors)
        return pins
