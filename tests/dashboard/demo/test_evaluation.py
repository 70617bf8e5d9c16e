"""The evaluation of the demo project."""

from pathlib import Path

import pytest
from pytest_django import Settings

from curation.dashboard.demo.builder import Builder
from curation.dashboard.demo.project import BASE, TUNED, make_demo_evaluation
from curation.evaluations.compare.compare import compare
from curation.evaluations.models import Evaluation, Split
from curation.evaluations.screen.figures import overall
from curation.runs.engine import dispatch
from curation.runs.models import Run
from tests.driving import end
from tests.evaluations.evaluating import model_in
from tests.factories import make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def storage(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MEDIA_ROOT = tmp_path / "files"
    monkeypatch.setattr(dispatch, "send_work", lambda *args: None)


class QuietBuilder(Builder):
    """Does runs without a line for each."""

    def drive(self, run: Run) -> None:
        assert end(run).state == "succeeded", run.error


def test_two_scripted_models_are_screened_checked_and_compared() -> None:
    project, user, said = make_project(), make_user(), list[str]()
    for _ in range(2):  # after an interrupted start only the missing parts are made
        make_demo_evaluation(QuietBuilder(project, user, said.append))
    evaluation = Evaluation.objects.get()
    split = Split.objects.get()
    assert split.rows_count == 24 and split.checks.get().counts["contaminated"] == 3
    rows = {str(row["model"]): row for row in overall(evaluation)}
    assert list(rows) == [TUNED, BASE]
    assert rows[BASE]["exact"] == pytest.approx(0.29, abs=0.01) and rows[TUNED]["exact"] == pytest.approx(
        0.88, abs=0.01
    )
    assert float(str(rows[TUNED]["exact_shell"])) > float(str(rows[TUNED]["exact"]))
    found = compare(before=model_in(evaluation, BASE), after=model_in(evaluation, TUNED))
    exact = next(change for change in found.metrics if change.name == "exact")
    assert exact.said.value == "clearly different" and len(found.losses) == 0 and len(found.gains) > 10
    assert split.baseline is not None and split.baseline.name == BASE and len(said) == 1
