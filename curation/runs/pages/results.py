"""To whom the results of runs are shown. An app above says from whom they are hidden, and why."""

from collections.abc import Callable

from curation.projects.access import Access
from curation.runs.kinds import kind_of
from curation.runs.models import Run
from curation.web.problems import Blind

# Returns why the results of a project's runs are hidden from the caller, as a sentence; "" where they are shown.
Rule = Callable[[Access], str]
_rules: list[Rule] = []


def hides_results(rule: Rule) -> Rule:
    _rules.append(rule)
    return rule


def why_hidden(access: Access, runs: list[Run]) -> dict[int, str]:
    """Run → why its results are hidden from the caller, without the runs whose results are shown. A result is all that
    a run found: its figures, its items and its calls. Its state, progress and cost are shown to every member."""
    asked = [run.pk for run in runs if kind_of(run.kind).tells_of_samples]
    why = next((found for rule in _rules if (found := rule(access))), "") if asked else ""
    return dict.fromkeys(asked, why) if why else {}


def require_results(access: Access, run: Run) -> None:
    if why := why_hidden(access, [run]).get(run.pk):
        raise Blind(why)
