"""How a person wants a list's table: which columns, in which order, how wide, how dense. `static/js/tables.js` applies
it.

A table is named by its `data-rows`, a column by the text of its heading.
"""

from typing import Annotated, Literal

from pydantic import Field

from curation.web.schemas import Strict

Density = Literal["compact", "normal", "roomy"]
ColumnName = Annotated[str, Field(min_length=1, max_length=60)]
Width = Annotated[int, Field(ge=40, le=1200, description="CSS pixels.")]


class TableLayout(Strict):
    """Columns that are in neither list are shown where there is room for them."""

    hidden: list[ColumnName] = Field(default=[], max_length=40)
    shown: list[ColumnName] = Field(default=[], max_length=40, description="Shown also on a narrow screen.")
    order: list[ColumnName] = Field(default=[], max_length=40, description="These first, the others after them.")
    pinned: list[ColumnName] = Field(default=[], max_length=40, description="Stay in view when the table is scrolled.")
    widths: dict[ColumnName, Width] = Field(default={}, max_length=40)


TableName = Annotated[
    str, Field(pattern=r"^[a-z]{1,30}$", description="The noun of the list's rows, such as `sample`.")
]
