"""Imported scores: files of their own, which find their duels."""

import io
import json
import zipfile
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from curation.duels.models import Answer, Duel
from curation.imports import row_kinds
from curation.projects.models import Project
from tests.imports.bringing import bad_rows
from tests.review.importing import ASKED, FOUR, bring_samples, texts

pytestmark = pytest.mark.django_db(transaction=True)


def duel_file(**values: str) -> dict[str, Any]:
    own = {"assistant": "The own turn.", "messages": ASKED, "instance_id": "acme__billing-9"}
    return {**own, "king": "Five.", "challenger": "Four.", **values}


def seed_archive(order: list[str], **others: dict[str, Any]) -> bytes:
    """Answers and scores in folders of their own, as the pipeline that Winnow grew from writes them."""
    files = {
        "answer_0/prompts_1.json": duel_file(),
        "answer_0/prompts_2.json": duel_file(king="Six.", challenger="", instance_id="acme__billing-8"),
        "score/prompts_1.json": {"score": 84.0, "metrics": {"correctness": 100.0}, "reason": {"judge-a": "It counts."}},
        "score/prompts_9.json": {"score": 10.0},
        "score/_duel.json": {"accepted": True},
        **others,
    }
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name in order:
            archive.writestr(name, json.dumps(files[name]))
    return target.getvalue()


ANSWERS, SCORES = [f"answer_0/prompts_{n}.json" for n in (1, 2)], ["score/prompts_1.json", "score/prompts_9.json"]


@pytest.mark.parametrize("most", [1, 1000])
@pytest.mark.parametrize("order", [[*ANSWERS, *SCORES], [*SCORES, *ANSWERS]], ids=["answers first", "scores first"])
def test_scores_in_files_of_their_own_find_their_duels(
    project: Project, user: User, monkeypatch: pytest.MonkeyPatch, most: int, order: list[str]
) -> None:
    monkeypatch.setattr(row_kinds, "MOST_ROWS", most)
    run = bring_samples(project, user, seed_archive([*order, "score/_duel.json"]), "seed.zip", decisions=True)
    figures = {name: run.result[name] for name in ("samples", "answers", "scores", "scores_without_duel", "pending")}
    assert figures == {"samples": 1, "answers": 1, "scores": 1, "scores_without_duel": 1, "pending": 1}
    reason = "score/_duel.json is about a whole run, and only scores of single duels are imported"
    assert bad_rows(run) == {"row 5": reason}
    duel = Duel.objects.select_related("sample", "prompt__text").get()
    assert texts(duel) == ("Four.", "Five.") and duel.prompt.text.reference["content"] == "The own turn."
    assert (duel.score, duel.bucket, duel.metrics) == (84.0, "final", {"correctness": 100.0})
    assert duel.sample is not None
    assert (duel.sample.score, duel.sample.bucket, duel.sample.status) == (84.0, "final", "pending")
    assert Answer.objects.filter(side="king").count() == 2


@pytest.mark.parametrize("most", [1, 1000])
@pytest.mark.parametrize(
    ("twin", "reason"),
    [
        ("answer_1/prompts_1.json", "2 duels are in files with the name prompts_1"),
        ("other/score/prompts_1.json", "two scores with the name prompts_1"),
    ],
)
@pytest.mark.parametrize("last", [True, False], ids=["last", "first"])
def test_a_score_that_may_belong_to_two_duels_ends_the_import(
    project: Project, user: User, monkeypatch: pytest.MonkeyPatch, most: int, twin: str, reason: str, last: bool
) -> None:
    monkeypatch.setattr(row_kinds, "MOST_ROWS", most)
    other = {twin: {"score": 12.0}} if "score" in twin else {twin: duel_file(challenger="Three.")}
    order = [ANSWERS[0], SCORES[0], twin] if last else [twin, SCORES[0], ANSWERS[0]]
    run = bring_samples(project, user, seed_archive(order, **other), "seed.zip")
    assert run.state == "failed" and reason in run.error


def test_an_imported_score_says_so_and_names_no_panel(project: Project, user: User) -> None:
    bring_samples(project, user, seed_archive([*ANSWERS, *SCORES]), "seed.zip")
    alone = [{"messages": [*ASKED, FOUR]}]
    bring_samples(project, user, alone)
    client, path = Client(), f"/api/v1/projects/{project.slug}"
    client.force_login(user)

    one, two = client.get(f"{path}/duels?sort=id").json()["data"]
    assert (one["score"], one["panel"], one["imported"]["file"]) == (84.0, None, "prompts_1")
    assert "It counts." in one["imported"]["reason"]
    assert (two["imported"], two["opponent"]) == (None, "none")
    for page in (f"duels/{one['id']}/", f"samples/{one['sample']}/panel/"):
        Project.objects.update(settings_json={"review": {"blind": False}})
        assert "An imported score (file prompts_1)" in client.get(f"/p/{project.slug}/{page}").content.decode()
    for rows in ("duels", "samples"):
        assert len(client.get(f"{path}/{rows}?opponent=none").json()["data"]) == 1
        assert client.get(f"/p/{project.slug}/{rows}/?opponent=none").status_code == 200
