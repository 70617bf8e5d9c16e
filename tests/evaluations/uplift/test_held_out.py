"""What an uplift experiment says of held-out rows in its training data."""

import pytest
from django.test import Client

from curation.runs.kinds import kind_of
from curation.runs.launch import launch
from tests.driving import end
from tests.evaluations.evaluating import make_rows, page, signed_in
from tests.evaluations.uplift.test_uplift import experiment, run, trainer
from tests.evaluations.uplift.worlds import export_of

__all__ = ["trainer"]
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_gain_says_whether_the_exports_were_searched_for_the_rows_of_the_split(client: Client) -> None:
    project = signed_in(client)
    params = experiment(project, equal_rows=False)
    rows = make_rows(60)
    wrong = [{**row, "messages": [row["messages"][0], {"role": "assistant", "content": "aws wrong"}]} for row in rows]
    params["before"] = str(export_of(project, wrong).pk)
    ended = run(project, params)
    assert f"Export {params['before']}: Not checked for rows of the split." in kind_of("uplift").conclude(ended)

    check = {"split": params["split"], "export": params["after"]}
    assert end(launch(project=project, kind="contamination", params=check, user=None)).state == "succeeded"

    found = f"Export {params['after']}: 30 of 60 rows are in the training data."
    assert found in kind_of("uplift").conclude(ended) and found in page(client, project, "run-page", ended.pk)
