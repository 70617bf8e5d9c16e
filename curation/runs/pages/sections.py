"""Sections that upper apps add to a run's page, by the run's kind."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from curation.runs.models import Run

Context = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Section:
    """What an app has to say of one run, drawn by its own template with its own context."""

    template: str
    context: Context

    @property
    def html(self) -> SafeString:
        return render_to_string(self.template, dict(self.context))


_sections: dict[str, tuple[str, Callable[[Run], Context]]] = {}


def register_section(kinds: Collection[str], template: str, context: Callable[[Run], Context]) -> None:
    """Shows `template` on the pages of runs of these kinds. A kind has at most one section."""
    for kind in kinds:
        _sections[kind] = (template, context)


def section_of(run: Run) -> Section | None:
    found = _sections.get(run.kind)
    return Section(found[0], found[1](run)) if found else None
