"""What a person may say about the fields, roles and outcomes of a preview's rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from curation.imports.layouts.rows.mapping import MEANINGS, REWARD, RowMapping
from curation.imports.layouts.session import SessionOutcome
from curation.imports.pages.preview import ImportPreview

Choices = Sequence[tuple[str, str]]
ROLES: Choices = [
    ("", "choose"),
    *((role, role) for role in ("system", "user", "agent", "tool")),
    ("call", "tool call"),
    ("ignored", "ignored"),
]
OUTCOMES: Choices = [("", "choose"), *((outcome.value, outcome.value) for outcome in SessionOutcome)]


@dataclass(frozen=True, slots=True)
class MappingInput:
    """An input: what it is about, its value and the values that it offers. `rows` and `becomes` are of a field that
    the rows have."""

    about: str
    value: str
    choices: Choices
    rows: int | None = None
    becomes: str = ""


@dataclass(frozen=True, slots=True)
class MappingInputs:
    """The inputs of a mapping. `inside` are entries of the account that cannot be mapped: for fields in lists, and for
    what is no field, such as `(images)`."""

    fields: list[MappingInput]
    roles: list[MappingInput]
    outcomes: list[MappingInput]
    inside: list[dict[str, object]]


def mapping_inputs(preview: ImportPreview | None, mapping: RowMapping) -> MappingInputs:
    account = preview.account if preview else []
    fixed = [entry for entry in account if "[]" in entry["field"] or entry["field"].startswith("(")]
    own = [entry for entry in account if entry not in fixed]
    read = {entry["field"]: "" for entry in own}
    for entry in own:
        read[entry["field"]] = ", ".join(filter(None, (read[entry["field"]], entry["becomes"])))
    rows = {entry["field"]: entry["rows"] for entry in own}
    names = [*rows, *(preview.columns if preview else ()), *mapping.columns]
    roles = [*(preview.roles if preview else ()), *mapping.roles]
    outcomes = [*(preview.outcomes if preview else ()), *mapping.outcomes]
    return MappingInputs(
        fields=[
            MappingInput(name, value, list(_meanings(name, value)), rows.get(name), read.get(name, ""))
            for name in dict.fromkeys(names)
            for value in [mapping.columns.get(name, "")]
        ],
        roles=[MappingInput(word, mapping.roles.get(word, ""), ROLES) for word in dict.fromkeys(roles)],
        outcomes=[MappingInput(word, mapping.outcomes.get(word, ""), OUTCOMES) for word in dict.fromkeys(outcomes)],
        inside=fixed,
    )


def _meanings(name: str, value: str) -> Iterator[tuple[str, str]]:
    """Yield the meanings of a column. A reward has the last part of its path as its name."""
    yield "", "as read"
    for meaning in MEANINGS:
        yield meaning, meaning.replace("_", " ")
    reward = value if value.startswith(REWARD) else REWARD + name.rpartition(".")[2]
    yield reward, reward.replace(".", " ", 1)
    yield from (("metadata", "metadata"), ("ignored", "ignored"))
