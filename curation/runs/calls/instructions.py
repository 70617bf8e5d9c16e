"""What a run tells its models: the texts that were in force when it was launched."""

from curation.projects.instructions.texts import Instructions, instructions_for
from curation.runs.models import Run


def run_instructions(run: Run, name: str) -> Instructions:
    """The text of stage `name` as the run was launched with it, whatever was written since."""
    return instructions_for(run.project, name, version=run.instructions.get(name, 0))
