"""Checks before live episodes start, and an estimate of their cost."""

from collections.abc import Sequence
from contextlib import suppress

from curation.evaluations.families import families_of
from curation.evaluations.live.stage import check_address, fitting_form
from curation.evaluations.live.task_set import tasks_of
from curation.evaluations.models import Split
from curation.evaluations.params import SANDBOX, EvaluateParams
from curation.llm.client.completion import EndpointTarget
from curation.projects.models import Project
from curation.runs.kinds import Estimate
from curation.runs.workers.sandbox_report import require_sandbox
from curation.web.problems import Invalid
from curation.web.refusals import all_checks
from curation.web.text.figures import counted
from sandbox.errors import SandboxFailed

# Tokens of one turn, measured on short tasks: the prompt with its history, and a one-line command.
TURN_TOKENS_IN, TURN_TOKENS_OUT = 600, 30


def check_live(project: Project, params: EvaluateParams, split: Split | None) -> None:
    """Raise `Invalid` or `NoSandbox` if the episodes cannot start."""
    with all_checks() as check:
        with check():
            if params.file:
                raise _wrong(
                    "file", "Live episodes take a `split`, scenarios or seeds; import the file's rows as a split."
                )
        with check():
            if params.environment == SANDBOX:
                _check_sandbox(project, params, split)
            else:
                _check_server(project, params, split)


def _check_sandbox(project: Project, params: EvaluateParams, split: Split | None) -> None:
    with all_checks() as check:
        with check():
            if params.trajectories:
                raise _wrong("trajectories", "Episodes in the sandbox are no trajectories; launch a rollout instead.")
        with check():
            if split is not None:
                raise _wrong("split", "In the sandbox the tasks are the project's scenarios; leave `split` out.")
        with check():
            if not tasks_of(project, params, None):
                text = "No admitted scenario matches this filter. Change it, or launch a gate to admit scenarios."
                raise Invalid.at("params.filter", text, code="no_scenarios")
        with check():
            require_sandbox()


def _check_server(project: Project, params: EvaluateParams, split: Split | None) -> None:
    with all_checks() as check:
        with check():
            check_address(params.environment)
            if family := families_of(project).get(params.family):
                with suppress(SandboxFailed):  # the server is down: the episodes will wait for it
                    fitting_form(params, family)
        with check():
            if not tasks_of(project, params, split):
                raise _wrong("split", "The split has no rows yet.")


def live_estimate(
    targets: Sequence[EndpointTarget], project: Project, params: EvaluateParams, split: Split | None
) -> Estimate:
    """An upper bound: every episode takes all of its steps."""
    episodes = len(tasks_of(project, params, split))
    calls = episodes * params.max_steps
    return Estimate.total(
        [
            Estimate.of_calls(
                target,
                items=episodes,
                calls=calls,
                tokens_in=calls * TURN_TOKENS_IN,
                tokens_out=calls * TURN_TOKENS_OUT,
            )
            for target in targets
        ],
        f"An upper bound: {counted(params.max_steps, 'step')} in each episode; most episodes end sooner.",
    )


def _wrong(param: str, reason: str) -> Invalid:
    return Invalid.at(f"params.{param}", reason)
