"""Facts of a pending sample that are hidden from reviewers are on no page and in no call.

The addresses come from the URL list and OpenAPI, so that a new one is tested.
"""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from curation.duels.models import Duel, Verdict
from curation.duels.score.models import Score
from curation.evaluations.models import Episode
from curation.exports.models import Export, FrozenRow
from curation.predictions.models import Prediction
from curation.projects.models import AuditEntry, Role
from curation.review.models import Lease
from curation.runs.models import Call, Item, Run
from curation.samples.models import Flag, Sample, Unblinding
from curation.trajectories.models import Outcome, Trajectory
from tests.factories import make_bearer, make_member, make_user
from tests.review.browsing import HTMX
from tests.review.rows import access_of, reviewer_of
from tests.web.http import test_refusals as refusals
from tests.web.http.test_refusals import DOCUMENT, Rows, everything
from tests.web.http.test_who_may import pages

pytestmark = pytest.mark.django_db
rows = refusals.rows
# Written into hidden fields, and into no others.
SCORE, PREVIEW, REASON, MODEL, CHECKED = "71.234", "candidate-preview", "judge-reason", "model-of-it", "checker-said"
TOKENS, FOUND = 71234, "what-a-run-found"
# Parts that differ from one request to the next: tokens, times, the state of the machine and its sandbox.
OF_REQUEST = re.compile(
    r'(?s:<section class="section" id="system".*?<div class="cols">)|'
    r'name="csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"|Request \w{32}|"request_id":"\w+"|'
    r'"(at|last_used_at)":"[^"]*"|<time[^>]*>[^<]*</time>'
)
MARKS = [SCORE, "71.2<", PREVIEW, REASON, MODEL, CHECKED, str(TOKENS), f"{TOKENS:,}", FOUND, "71.23"]
MARKS += ["challenger_left", "king_left"]
READS = [path for path, methods in DOCUMENT["paths"].items() if "get" in methods]


@pytest.fixture
def owner() -> User:
    return make_user()


@pytest.fixture
def hidden(rows: Rows) -> Rows:
    """The rows with the marks; their duel and their trajectory are pending."""
    values: dict[str, Any] = {"score": 71.234, "score_key": 71.234, "bucket": "refined", "flags": int(Flag.FLIP)}
    Sample.objects.update(preview=PREVIEW, **values)
    Duel.objects.update(**values, metrics={"correctness": 71.234})
    duel = Duel.objects.get(pk=rows.ids["duel_id"])
    for answer in (duel.king, duel.challenger):
        assert answer is not None
        type(answer).objects.filter(pk=answer.pk).update(model=MODEL)
    Verdict.objects.update(reason=REASON)
    Trajectory.objects.update(outcome=Outcome.CHECKER_FAILED)  # a scenario's rates by model count all its rollouts
    text = Trajectory.objects.get().text
    text.checker_output = CHECKED
    text.save()
    sample = Sample.objects.get(pk=rows.ids["sample_id"])
    assert duel.counting is not None
    type(duel.counting).objects.update(run=rows.ids["run_id"], **values)
    Export.objects.update(ready=False)  # it has no files
    FrozenRow.objects.create(export_id=rows.ids["export_id"], sample_id=sample.pk, version=sample.version)
    Run.objects.exclude(kind="evaluate").update(kind="judge", params={}, result={"note": FOUND})
    run = Run.objects.get(pk=rows.ids["run_id"])
    Item.objects.create(run=run, stage="judge", key="1", state="failed", reason=REASON, result={"outcome": FOUND})
    Call.objects.update(tokens_out=TOKENS)
    Episode.objects.update(trajectory=rows.ids["trajectory_id"], total_reward=71.234, terminal_reward=71.234)
    return rows


def told(text: str) -> list[str]:
    return [mark for mark in MARKS if mark in text]


def test_no_part_of_a_page_tells_a_reviewer_of_a_pending_sample(hidden: Rows) -> None:
    client = Client()
    client.force_login(make_member(hidden.project))
    opened, leaks = set(), {}
    for name, address in pages(hidden):
        answer = client.get(address, headers=HTMX)
        text = b"".join(answer)
        if answer.status_code == 200:
            opened.add(name)
        if found := told(text.decode()):
            leaks[name] = found
    assert leaks == {}
    assert {"sample-list", "sample-panel", "duel-list", "trajectory-list", "run-page", "overview"} <= opened
    assert {"run-live", "scenario-page", "evaluation-episodes", "round-list", "leaderboard"} <= opened


@pytest.mark.parametrize("role", [Role.CURATOR, Role.ADMIN])
def test_a_curator_sees_it_and_the_log_says_once_that_they_looked(hidden: Rows, role: str) -> None:
    user = make_member(hidden.project, role=role)
    headers, client = make_bearer(user), Client()
    client.force_login(user)
    for _ in range(2):
        for call in (f"duels/{hidden.ids['duel_id']}", f"samples/{hidden.ids['sample_id']}"):
            assert SCORE in client.get(f"/api/v1/{call}", headers=headers).content.decode()
        page = client.get(reverse("duel-page", args=[hidden.project.slug, hidden.ids["duel_id"]]))
        assert REASON in page.content.decode()
    entry = AuditEntry.objects.get(action="sample.look")
    assert (entry.actor, entry.subject) == (user, hidden.ids["sample_id"])


def test_a_reader_who_looks_at_nothing_hidden_is_not_in_the_log(hidden: Rows) -> None:
    headers = make_bearer(make_member(hidden.project, role=Role.CURATOR))
    Sample.objects.update(status="approved")
    assert Client().get(f"/api/v1/projects/{hidden.project.slug}/samples", headers=headers).status_code == 200
    before = everything()
    assert Client().get(f"/api/v1/duels/{hidden.ids['duel_id']}", headers=headers).status_code == 200
    assert not Unblinding.objects.exists() and before == everything()


@pytest.mark.parametrize(
    "query",
    [
        "score_min=70",
        "score_max=72",
        "bucket=refined",
        "flags=flip",
        "action_style=read",
        "sort=-score",
        "sort=priority",
    ],
)
def test_a_filter_or_an_order_that_would_tell_is_refused_in_words(hidden: Rows, query: str) -> None:
    user = make_member(hidden.project)
    headers, client = make_bearer(user), Client()
    client.force_login(user)
    slug, (name, _, value) = hidden.project.slug, query.partition("=")
    listed = f"/api/v1/projects/{slug}/samples"
    answer = client.get(f"{listed}?{query}", headers=headers)
    assert answer.status_code == 403 and answer.json()["code"] == "blind" and "pending" in answer.json()["detail"]
    assert client.get(f"{listed}?{query}&status=approved", headers=headers).status_code == 200
    page = client.get(f"{reverse('sample-list', args=[slug])}?{query}")
    assert page.status_code == 403 and "You review blind" in page.content.decode()
    if name != "sort":
        assert client.get(f"{reverse('sample-count', args=[slug])}?{query}").status_code == 403
        assert client.post(f"{reverse('queue', args=[slug])}?{query}").status_code == 403
        body = {"filter": {name: float(value) if "score" in name else value}}
        bulk = {"action": "approve", "project": slug, "count": 1, **body}
        for path, given in ((f"projects/{slug}/queue/next", body), ("samples/bulk", bulk)):
            assert client.post(f"/api/v1/{path}", given, "application/json", headers=headers).status_code == 403


def test_the_queue_answers_left_and_right_without_sides(hidden: Rows) -> None:
    Lease.objects.all().delete()
    access = reviewer_of(hidden.project)
    headers = make_bearer(access.user)
    taken: list[str] = []
    for _ in range(2):
        answer = Client().post(
            f"/api/v1/projects/{hidden.project.slug}/queue/next", {}, content_type="application/json", headers=headers
        )
        assert answer.status_code == 200 and told(answer.content.decode()) == []
        given = answer.json()
        assert given["lease"]["seats"] is None and given["sample"]["hidden"] is True
        taken.append(given["sample"]["kind"])
        if given["sample"]["kind"] == "turn":
            duel = Duel.objects.select_related("king__text", "challenger__text").get(sample=given["sample"]["id"])
            assert duel.king is not None and given["sample"]["answers"] is None
            texts = [duel.king.text.text, duel.challenger.text.text]
            swapped = Lease.objects.get(sample=duel.sample_id).swapped
            assert [given["sample"][side]["text"] for side in ("left", "right")] == (texts[::-1] if swapped else texts)
            path = f"/api/v1/samples/{duel.sample_id}"
            skipped = (
                Client()
                .post(f"{path}/decisions", {"action": "skip"}, content_type="application/json", headers=headers)
                .json()
            )
            assert skipped["seat"] is None and skipped["pick"] is None
            # The same answer, whether the text is that of the named side or not.
            for body in ({"text": text, **of} for text in (*texts, "ls -l") for of in ({"of": "king"}, {})):
                named = Client().post(f"{path}/revisions", body, content_type="application/json", headers=headers)
                assert (named.status_code, named.json()["code"]) == (422, "blind")
            revised = (
                Client()
                .post(
                    f"{path}/revisions",
                    {"text": "ls -l", "of": "left"},
                    content_type="application/json",
                    headers=headers,
                )
                .json()
            )
            assert revised["of"] == "left" and revised["leak"]["score"] is None
    assert sorted(taken) == ["trajectory", "turn"]


def test_a_project_that_is_not_blind_hides_nothing(hidden: Rows) -> None:
    hidden.project.settings_json = {"review": {"blind": False}}
    hidden.project.save()
    user = make_member(hidden.project)
    assert not access_of(user, hidden.project).may("run")
    headers = make_bearer(user)
    assert SCORE in Client().get(f"/api/v1/duels/{hidden.ids['duel_id']}", headers=headers).content.decode()
    assert not AuditEntry.objects.filter(action="sample.look").exists()
    assert re.search(
        PREVIEW, Client().get(f"/api/v1/samples/{hidden.ids['sample_id']}", headers=headers).content.decode()
    )


# POSTs that change nothing.
READING = sorted({*refusals.READING, "/api/v1/projects/{slug}/runs/estimate"})
# A curator's answers, which do change, show that the change is one that would tell.
SHOWN_TO_CURATORS = frozenset({"sample-list", "/api/v1/projects/{slug}/stats"})


def _answers(rows: Rows, user: User, headers: dict[str, str], only: frozenset[str] = frozenset()) -> dict[str, str]:
    """Statuses and contents of every page and every read of REST (or `only` these), without the times and ids of
    single requests."""
    browser, script = Client(), Client()
    browser.force_login(user)
    found = {}
    for path in READS:
        if path not in refusals.OPEN and (not only or path in only):
            cache.clear()
            found[path] = _answer(script.get(rows.address(path), headers=headers))
    for path in READING if not only else ():
        cache.clear()
        for wanted in ({}, {"score_min": 50.0}, {"flags": "flip"}, {"disputed": True}):
            body = rows.body("POST", path)
            place = body["params"] if "params" in body else body.get("recipe", body)
            place["filter"] = wanted
            answer = script.post(rows.address(path), body, "application/json", headers=headers)
            found[f"{path} {wanted}"] = _answer(answer)
    for name, address in pages(rows):
        if not only or name in only:
            cache.clear()
            found[name] = _answer(browser.get(address))
    return {name: OF_REQUEST.sub("", text) for name, text in found.items()}


def _answer(answer: Any) -> str:
    return f"{answer.status_code} {b''.join(answer).decode(errors='replace')}"


def test_no_page_call_or_figure_tells_a_reviewer_of_a_pending_sample(hidden: Rows) -> None:
    """Hidden facts of pending samples are nowhere. They change: a reviewer's pages and calls stay the same, a curator's
    do not."""
    reviewer, curator = (make_member(hidden.project, role=role) for role in (Role.REVIEWER, Role.CURATOR))
    theirs, curators = make_bearer(reviewer), make_bearer(curator)
    before, shown = _answers(hidden, reviewer, theirs), _answers(hidden, curator, curators, SHOWN_TO_CURATORS)
    assert len(before) > 200 and set(shown) == SHOWN_TO_CURATORS
    assert {name: told(text) for name, text in before.items() if told(text)} == {}
    opened = {name for name, text in before.items() if text.startswith("200")}
    assert {"/api/v1/samples/{sample_id}", "/api/v1/projects/{slug}/duels", "/api/v1/runs/{run_id}"} <= opened
    assert {"sample-list", "sample-page", "run-page", "overview", "leaderboard"} <= opened
    values: dict[str, Any] = {"score": 12.5, "score_key": 12.5, "bucket": "defeat", "flags": int(Flag.LEAK)}
    Sample.objects.update(**values, priority=3.0, predicted=0.12, predicted_key=0.12)
    Prediction.objects.update(probability=0.12)
    Duel.objects.update(**values, metrics={"correctness": 12.5})
    Trajectory.objects.update(outcome=Outcome.SOLVED, keep=True, checker_passed=True)
    Episode.objects.update(completed=True, total_reward=1.0)
    Item.objects.update(result={"outcome": "solved"}, reason="")
    Call.objects.update(tokens_out=7)
    Run.objects.update(result={"kept": 1})
    Score.objects.update(**values)
    Verdict.objects.update(dimensions={"correctness": 2}, parsed=True)
    after, changed = _answers(hidden, reviewer, theirs), _answers(hidden, curator, curators, SHOWN_TO_CURATORS)
    assert sorted(name for name in before if before[name] != after[name]) == []
    assert all(shown[name] != changed[name] for name in SHOWN_TO_CURATORS)
