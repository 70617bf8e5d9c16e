"""The page about exports names every reason for a missing row; the page about REST every recipe key and call."""

import re
from pathlib import Path

from config.api import api
from curation.exports.pages.compare import ChangeReason
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.skip_reasons import SkipReason

DOCS = Path(__file__).resolve().parents[2] / "docs"


def section(page: str, heading: str) -> str:
    found = re.search(rf"^## {heading}\n(.*?)(?=^## )", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_every_reason_is_on_the_page() -> None:
    text = (DOCS / "exports.md").read_text()
    reasons = [*SkipReason, *ChangeReason]
    assert [reason.value for reason in reasons if f"`{reason.value}`" not in text] == []


def test_every_recipe_key_is_in_the_table_of_the_api() -> None:
    firsts = re.findall(r"^\| (`.*?) \|", section("api.md", "Exports"), re.MULTILINE)
    assert set(Recipe.model_fields) - {key.strip("`") for first in firsts for key in first.split(", ")} == set()


def test_every_call_of_exports_is_named() -> None:
    named = section("api.md", "Exports")
    calls = api.get_openapi_schema()["paths"].items()
    paths = [path for path, methods in calls if any("exports" in one.get("tags", ()) for one in methods.values())]
    shown = {re.sub(r"\{(export|call)_id\}", "{id}", path.removeprefix("/api/v1")) for path in paths}
    # `…/recipes/{name}` is short for a call of the same row.
    assert {path for path in shown if path not in named and f"…/{'/'.join(path.split('/')[3:])}" not in named} == set()
