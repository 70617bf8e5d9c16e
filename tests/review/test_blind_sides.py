"""One duel twice, with its sides exchanged and its seats drawn so that the same answer is on the left: a blind reviewer
gets the same bytes both times, on every page and by every call."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from django.urls import reverse

from curation.duels.models import Answer, AnswerText, Duel, PromptText
from curation.duels.score.stage import sample_texts
from curation.review.models import Draft, Lease
from curation.review.workspace.detail import facts_of
from curation.samples.models import Flag, Sample, SampleText
from tests.factories import make_bearer, make_duel, make_member, make_project
from tests.review.browsing import HTMX, left_of
from tests.sampled import one_of

pytestmark = pytest.mark.django_db
JSON = "application/json"
LEFT = "THOUGHT: I write to ann@billing.dev first.\n\n```bash\ngrep -n totals src/left.py\n```"
RIGHT = "THOUGHT: I write to bob@billing.dev first.\n\n```bash\nsed -n '1,80p' src/right.py\n```"
# What differs between two requests of the same thing, and the keyed names of sides.
OF_REQUEST = re.compile(
    r'name="csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": ?"\w+"|Request \w{32}|"request_id":"\w+"|'
    r'"(at|until|created_at|last_used_at|saved_at)": ?"[^"]*"|<time[^>]*>[^<]*</time>|datetime="[^"]*"|'
    r'(name="until" value|data-until)="[^"]*"|name="(of|left)" value="\w*"|\?of=[0-9a-f]{16}"'
)

ROW_ID = re.compile(r'"id": ?"\d+"')


class Review:
    """A reviewer with an open duel, and the responses to them. Its opponent is a king or the reference."""

    def __init__(self, *, reference: bool, **settings: object) -> None:
        self.project = make_project("billing", settings_json={"review": settings})
        self.duel = make_duel(self.project, flags=int(Flag.LEAK | Flag.FLIP | Flag.INFRA | Flag.PII), score=64.0)
        assert self.duel.king_id is not None
        self.king: int = self.duel.king_id
        Answer.objects.filter(pk=self.duel.challenger_id).update(tokens=7, model="challenger-model")
        Answer.objects.filter(pk=self.king).update(tokens=1234, model="king-model")
        if reference:
            Duel.objects.filter(pk=self.duel.pk).update(king=None, opponent="reference")
        assert self.duel.sample_id is not None
        self.sample = self.duel.sample_id
        user = make_member(self.project)
        self.browser, self.headers = Client(), make_bearer(user)
        self.browser.force_login(user)
        self.page("queue", post=True)

    def put(self, *, challenger_left: bool) -> None:
        """Make the left answer the challenger's or its opponent's; it is the same text either way."""
        texts = (LEFT, RIGHT) if challenger_left else (RIGHT, LEFT)
        for pk, text in zip((self.duel.challenger_id, self.king), texts, strict=True):
            AnswerText.objects.filter(pk=pk).update(text=text)
            Answer.objects.filter(pk=pk).update(action_style=facts_of(text).action_style)
        PromptText.objects.update(reference={"role": "assistant", "content": texts[1]})
        Sample.objects.update(action_style=facts_of(texts[0]).action_style, preview=texts[0])
        SampleText.objects.update(body=sample_texts([self.duel.pk])[self.duel.pk].body)
        Lease.objects.update(swapped=challenger_left)
        self.left = left_of(Lease.objects.get())
        cache.clear()

    def page(self, name: str, *args: object, post: bool = False, **given: Any) -> str:
        address = reverse(name, args=[self.project.slug, *args])
        send = self.browser.post if post else self.browser.get
        answer = send(address, given, headers=HTMX)
        return OF_REQUEST.sub("", f"{answer.status_code} {b''.join(answer).decode()}")

    def call(self, method: str, path: str, **body: object) -> str:
        text = json.dumps(body) if body else ""
        answer = self.browser.generic(method, f"/api/v1/{path}", text, JSON, headers=self.headers)
        return OF_REQUEST.sub("", f"{answer.status_code} {b''.join(answer).decode()}")


def both(review: Review) -> list[dict[str, str]]:
    """The responses with the challenger on the left, and with it on the right."""
    found = []
    for challenger_left in (True, False):
        with transaction.atomic():
            review.put(challenger_left=challenger_left)
            found.append(dict(answers(review)))
            transaction.set_rollback(True)
    return found


def answers(review: Review) -> Iterator[tuple[str, str]]:
    """A reviewer's reads of one sample, their attempts, and the responses."""
    pk, slug = review.sample, review.project.slug
    seat: dict[str, Any] = {"left": review.left, "preference": "left", "version": 1}
    yield "page", review.page("sample-page", pk)
    yield "open", review.page("sample-page", pk, post=True)
    yield "panel", review.page("sample-panel", pk)
    yield "editor", review.page("answer-editor", pk, **seat)
    yield "list", review.page("sample-list")
    yield "sample", review.call("GET", f"samples/{pk}")
    yield "next", review.call("POST", f"projects/{slug}/queue/next", resume=True)
    yield "findings", review.call("GET", f"samples/{pk}/findings")
    for phrase in ("left py thought", "right py thought"):
        yield f"text {phrase}", review.call("GET", f"projects/{slug}/samples?text=%22{phrase.replace(' ', '+')}%22")
    for text in (LEFT, RIGHT, "THOUGHT: other"):
        for named in ({}, {"preference": "challenger"}, {"preference": "king"}):
            given: dict[str, Any] = {"text": text, "version": 1, "left": review.left, **named}
            yield f"revise {named} {text}", review.page("sample-revise", pk, post=True, **given)
    for side in ("challenger", "king", "candidate", "opponent", "reference", "left", "right", "draw"):
        yield (
            f"draft {side}",
            review.page("sample-draft", pk, post=True, **{**seat, "preference": side, "comment": "hm"}),
        )
        yield f"drafted {side}", review.page("sample-page", pk, post=True)
        Draft.objects.all().delete()
    for text in ("half a line", ""):
        yield f"draft {text}", review.page("sample-draft", pk, post=True, text=text, note="n", left=review.left)
        yield f"editor of {text}", review.page("answer-editor", pk, **seat)
        Draft.objects.all().delete()
    for side in ("challenger", "king"):
        body = {"action": "skip", "preference": side, "comment": "hm"}
        # Numbers of rows that are rolled back are not given again on PostgreSQL.
        yield f"skip {side}", ROW_ID.sub("", review.call("POST", f"samples/{pk}/decisions", **body))
        yield f"undo {side}", ROW_ID.sub("", review.call("POST", f"samples/{pk}/undo"))
        yield f"picked {side}", str(list(Draft.objects.values_list("pick", "comment")))
        Draft.objects.all().delete()


@pytest.mark.parametrize("reference", one_of(2, [False, True]))
def test_the_sides_exchanged_are_the_same_to_a_blind_reviewer(reference: bool) -> None:
    one, two = both(Review(reference=reference))
    assert [name for name in one if one[name] != two[name]] == []
    assert "grep" in one["open"] and "infra" not in one["open"] and one["draft left"].startswith("200")
    assert one["findings"].count("email") == 2 and one["findings"].index('"left"') < one["findings"].index('"right"')
    assert one["picked challenger"] == "[('', 'hm')]"


@pytest.mark.parametrize("challenger_left", [True, False])
def test_a_decision_that_waits_says_nothing_of_the_side_that_it_kept(challenger_left: bool) -> None:
    """Approved without a preference the challenger's answer is kept; its hash would name it."""
    review = Review(reference=False, overlap=2, overlap_on="all")
    review.put(challenger_left=challenger_left)
    answer = review.call("POST", f"samples/{review.sample}/decisions", action="approve")
    assert answer.startswith("201") and '"waits":true' in answer
    assert all(f'"{name}":null' in answer for name in ("text_sha256", "revision", "pick", "seat"))
