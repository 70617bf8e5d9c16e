from typing import Annotated, Any

from pydantic import Field

from curation.duels.params import Attempts, JudgeParams, panel_of
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.web.refusals import all_checks
from curation.web.schemas import StrictModel


class PanelParams(StrictModel):
    """The panel that judges new texts. Missing values come from the project's settings."""

    judges: list[str] | None = None
    swap: bool | None = None
    attempts: Attempts | None = None
    min_judges: Annotated[int, Field(ge=1)] | None = None
    show_reference: bool | None = None
    fresh: bool = False

    def judging(self) -> JudgeParams:
        return JudgeParams(**{name: getattr(self, name) for name in PanelParams.model_fields})

    def settle(self, project: Project) -> None:
        """Store the settings that apply, so that later changes do not affect the run. Raises `Invalid` for judges that
        do not exist."""
        with all_checks() as check:
            with check():
                judges = self.judges if self.judges is not None else project.settings.panel.judges
                targets_named(project, judges, "judges")
            with check():
                panel = panel_of(project.settings, self.judging())
        self.judges, self.swap, self.attempts = list(panel.judges), len(panel.orders) == 2, panel.attempts
        self.min_judges, self.show_reference = panel.min_judges or len(panel.judges), panel.show_reference


class RefineParams(PanelParams):
    """`refine`: the model that improves the answers, and the samples; by default the bucket `refined`."""

    model: str
    filter: dict[str, Any] = {}


class RejudgeParams(PanelParams):
    """`rejudge`: the revision that is judged again."""

    revision: str
