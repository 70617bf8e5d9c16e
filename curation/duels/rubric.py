"""The rubric of a project, or of a run: judges and people use the same."""

from collections.abc import Mapping, Sequence

from curation.projects.instructions.texts import instructions_for
from curation.projects.models import Project
from curation.projects.settings.dependents import Dependent, MissingOut
from curation.projects.settings.document import ProjectSettings
from curation.runs.calls.targets import run_instructions
from curation.runs.models import Run
from judging.panel.rubric import Dimension, read_rubric


def rubric_of(project: Project) -> tuple[Dimension, ...]:
    return read_rubric(instructions_for(project, "rubric").text)


def dimensions_of(run: Run) -> tuple[str, ...]:
    """The names of the rubric that was in force at the run's launch."""
    return names_of(read_rubric(run_instructions(run, "rubric").text))


def names_of(rubric: Sequence[Dimension]) -> tuple[str, ...]:
    return tuple(dimension.name for dimension in rubric)


def complete(weights: Mapping[str, float] | None, dimensions: Sequence[str]) -> dict[str, float] | None:
    """Return a weight for every dimension, 1 for those without one; None if there are no weights."""
    return {name: weights.get(name, 1.0) for name in dimensions} if weights else None


class RubricWeights(Dependent):
    def missing(self, project: Project, settings: ProjectSettings) -> list[MissingOut]:
        if not settings.panel.weights:
            return []
        known = names_of(rubric_of(project))
        return [
            MissingOut("panel.weights", f"dimension {name}") for name in settings.panel.weights if name not in known
        ]
