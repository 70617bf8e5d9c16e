"""The taxonomy: the axes in which scenarios differ (`taxonomy.toml`), with a project's additions."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from curation.projects.settings.document import ProjectSettings
from curation.web.problems import FieldError

SHIPPED = Path(__file__).parent / "taxonomy.toml"
ADDED = "Added by the project."


@dataclass(frozen=True, slots=True)
class Axis:
    """One way in which scenarios differ. `values` maps each value to one sentence about it.

    Values are words; on an axis of `whole_numbers` a bundle writes them as numbers.
    """

    name: str
    about: str
    values: Mapping[str, str]
    whole_numbers: bool = False

    def read(self, given: object) -> str | int:
        """The value as a bundle has it. Raises `ValueError` with the allowed values."""
        word = str(given) if isinstance(given, int | str) and not isinstance(given, bool) else ""
        if word not in self.values:
            raise ValueError(f"one of {', '.join(self.values)}")
        return int(word) if self.whole_numbers else word


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """All axes of a project in the order of the pages."""

    axes: Mapping[str, Axis]

    def names(self) -> list[str]:
        return list(self.axes)

    def read(self, given: Mapping[str, object]) -> dict[str, str | int]:
        """Axes as a bundle has them, without the invalid ones, which `errors` lists."""
        found = {}
        for name, value in given.items():
            axis = self.axes.get(name)
            if axis is not None and not _refusal(axis, value):
                found[name] = axis.read(value)
        return found

    def errors(self, given: Mapping[str, object], *, path: str = "axes") -> list[FieldError]:
        """The errors of a bundle's axes, with the allowed names and values."""
        errors = []
        for name, value in given.items():
            axis = self.axes.get(name)
            if axis is None:
                known = ", ".join(self.axes)
                errors.append(FieldError(f"{path}.{name}", f"unknown axis; the axes of this project are {known}"))
            elif refusal := _refusal(axis, value):
                errors.append(FieldError(f"{path}.{name}", refusal))
        return errors


def taxonomy_of(settings: ProjectSettings) -> Taxonomy:
    """The shipped axes and values, and the project's own."""
    return with_additions(shipped_taxonomy(), settings.taxonomy.axes)


def with_additions(taxonomy: Taxonomy, additions: Mapping[str, Sequence[str]]) -> Taxonomy:
    """`additions`: axis → values, added to the axis of that name or as a new one."""
    axes = dict(taxonomy.axes)
    for name, words in additions.items():
        axis = axes.get(name) or Axis(name, ADDED, {})
        axes[name] = replace(axis, values={**axis.values, **{w: ADDED for w in words if w not in axis.values}})
    return Taxonomy(axes)


@cache
def shipped_taxonomy() -> Taxonomy:
    document = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))
    return Taxonomy(
        {
            name: Axis(name, table["about"], table["values"], table.get("whole_numbers", False))
            for name, table in document.items()
        }
    )


def _refusal(axis: Axis, value: object) -> str:
    try:
        axis.read(value)
    except ValueError as error:
        return str(error)
    return ""
