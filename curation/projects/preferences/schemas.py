from ninja import Schema
from pydantic import ConfigDict, Field

from curation.projects.models import Preferences
from curation.projects.preferences.keys import ACTIONS
from curation.web.lists.tables import Density, TableLayout, TableName


class KeyOut(Schema):
    action: str
    does: str
    default: str
    key: str = Field(description="The key that does it for you.")


class PreferencesOut(Schema):
    keys: list[KeyOut]
    tables: dict[str, TableLayout] = Field(description="Your changes to tables, by the kind of their rows.")
    density: Density

    @classmethod
    def of(cls, row: Preferences) -> "PreferencesOut":
        keys = [
            KeyOut(action=one.name, does=one.does, default=one.key, key=row.keys.get(one.name, one.key))
            for one in ACTIONS
        ]
        tables = {name: TableLayout.model_validate(layout) for name, layout in row.tables.items()}
        return cls.model_validate({"keys": keys, "tables": tables, "density": row.density})


class PreferencesIn(Schema):
    """Omitted fields keep their values."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"keys": {"approve": "y", "confirm": "Y"}, "density": "roomy"}]}
    )

    keys: dict[str, str | None] | None = Field(
        default=None,
        max_length=len(ACTIONS),
        description="A key by action: one character, or `arrowleft` and the like. Null is the default again.",
    )
    tables: dict[TableName, TableLayout | None] | None = Field(default=None, description="Null is the default again.")
    density: Density | None = None
