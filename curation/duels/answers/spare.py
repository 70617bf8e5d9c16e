"""Which model reads challenger answers for leaks after the lint."""

from collections.abc import Sequence

from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named

# The reader of a run without one.
NONE = "none"


def settle_reader(project: Project, given: str | None, *, judges: Sequence[str], generators: Sequence[str]) -> str:
    """Return the endpoint that the run or the settings name, else the judge to spare, else `NONE`.

    Raises `Invalid` for a name that is unknown.
    """
    named = given or project.settings.generation.leak_reader
    if named and named != NONE:
        return targets_named(project, [named], "leak_reader")[0].name
    if named == NONE or not project.settings.generation.read_leaks:
        return NONE
    return _spare(project, judges, generators) or NONE


def _spare(project: Project, judges: Sequence[str], generators: Sequence[str]) -> str:
    """Return the first judge whose model is not that of king or challenger; one of another family goes first."""
    found = {one.name: one for one in Endpoint.objects.of(project).filter(name__in=[*judges, *generators])}
    writers = [found[name] for name in generators if name in found]
    models = {(one.model, one.api_base) for one in writers}
    families = {one.family for one in writers if one.family}
    free = [one for name in judges if (one := found.get(name)) and (one.model, one.api_base) not in models]
    free.sort(key=lambda one: one.family in families)
    return free[0].name if free else ""


def reader_note(reader: str) -> str:
    """Say for the launch who will read."""
    if reader == NONE:
        return "Leaks: lint only. No model reads the answers for their meaning: none is named, no judge is to spare."
    return f"Leaks: {reader} reads each challenger answer that the lint passes."
