"""Model endpoints that a project's settings name."""

from curation.llm.models import Endpoint
from curation.projects.models import Project
from curation.projects.settings.dependents import Dependent, MissingOut
from curation.projects.settings.document import ProjectSettings, model_names
from curation.web.problems import NotFound

WORDS = {
    "panel.judges": "judge",
    "generation.king_model": "king",
    "generation.challenger_model": "challenger",
    "generation.leak_reader": "leak reader",
}


class NamedEndpoints(Dependent):
    """A setting must not name an endpoint that does not exist. One that was deleted later is listed as missing."""

    def names(self, project: Project) -> dict[str, list[str]]:
        return {
            "models": list(Endpoint.objects.filter(project=project).order_by("name").values_list("name", flat=True))
        }

    def missing(self, project: Project, settings: ProjectSettings) -> list[MissingOut]:
        named = model_names(settings)
        known = set(
            Endpoint.objects.filter(project=project, name__in=[name for _, name in named]).values_list(
                "name", flat=True
            )
        )
        return [MissingOut(path, f"{WORDS.get(path, 'model')} {name}") for path, name in named if name not in known]


def endpoint_of(project: Project, name: str) -> Endpoint:
    endpoint = Endpoint.objects.of(project).filter(name=name).first()
    if endpoint is None:
        raise NotFound(f"There is no model endpoint {name[:60]!r} in {project.slug}.")
    return endpoint
