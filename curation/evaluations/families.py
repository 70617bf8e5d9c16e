"""The command families of a project: the built-in ones and its own."""

from dataclasses import asdict

from curation.evaluations.models import Evaluation
from curation.projects.models import Project
from curation.web.problems import Invalid
from judging.commands.screen import FAMILIES, CommandFamily, prefix_family


def families_of(project: Project) -> dict[str, CommandFamily]:
    own = project.settings.evaluation.families
    return {**FAMILIES, **{name: prefix_family(name, prefix) for name, prefix in own.items()}}


def family_named(project: Project, name: str) -> CommandFamily:
    """Raises `Invalid` with the families that exist."""
    known = families_of(project)
    if name not in known:
        reason = f"There is no command family {name!r}; there are {', '.join(known)}."
        raise Invalid.at("params.family", reason, code="unknown_family")
    return known[name]


def family_of(evaluation: Evaluation) -> CommandFamily:
    """The family at the launch of the evaluation."""
    return CommandFamily(**evaluation.family)


def family_as_json(family: CommandFamily) -> dict[str, object]:
    return asdict(family)
