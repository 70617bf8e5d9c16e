"""The pages of comparisons and the leaderboard."""

import pytest
from django.test import Client
from django.urls import reverse

from curation.evaluations.models import EvaluatedModel, ScreenedAnswer
from tests.evaluations.evaluating import (
    at_server,
    evaluate,
    make_rows,
    make_split,
    model_in,
    page,
    says,
    screened,
    signed_in,
)
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_comparison_shows_gains_and_can_be_downloaded(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    evaluation = screened(project, server)
    before, after = model_in(evaluation, "bad"), model_in(evaluation, "good")
    query = f"?before={before.pk}&after={after.pk}"
    shown = page(client, project, "evaluation-compare", query=query)
    assert "+60.0 pp" in shown and "Gains" in shown and "Nothing was lost." in shown
    gained = ScreenedAnswer.objects.get(by=after, row__number=1)
    assert reverse("evaluation-call", args=[project.slug, evaluation.pk, gained.pk]) in shown
    figure = client.get(reverse("compare-chart", args=[project.slug]) + query).json()
    assert [line["name"] for line in figure["data"]] == ["all rows", "easy", "hard"]
    same = client.get(reverse("evaluation-compare", args=[project.slug]) + f"?before={after.pk}&after={after.pk}")
    assert same.status_code == 422


def test_a_pinned_baseline_flags_regressions(client: Client, server: ModelServer) -> None:
    project = signed_in(client)
    rows = make_rows(12)
    split = make_split(project, rows)
    says(server, "good", rows, [row["messages"][-1]["content"] for row in rows])
    says(server, "worse", rows, ["no idea"] * len(rows))
    for name in ("good", "worse"):
        at_server(project, server, name)
    evaluation = evaluate(project, split, ["good", "worse"])
    pin = reverse("baseline-pin", args=[project.slug])
    assert client.post(pin, {"model": model_in(evaluation, "good").pk}).status_code == 302
    assert model_in(evaluation, "worse").regressed and not model_in(evaluation, "good").regressed
    board = page(client, project, "leaderboard")
    assert "baseline" in board and "regressed" in board
    later = evaluate(project, split, ["worse"])
    assert model_in(later, "worse").regressed
    assert "regressed" in page(client, project, "evaluation-list")
    client.post(reverse("baseline-unpin", args=[project.slug]), {"split": split.pk})
    assert not EvaluatedModel.objects.filter(regressed=True).exists()
