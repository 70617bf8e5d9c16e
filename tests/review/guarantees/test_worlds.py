"""Worlds in which a promise could break, by REST alone: it holds, or the page and the calls say that it does not."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from curation.guarantees.models import Draw
from curation.projects.models import Project
from curation.review.guarantees import carry_out
from curation.samples.models import Sample
from tests.factories import make_duel
from tests.review.guarantees.auditing import LOOKS, SAMPLES, Caller

pytestmark = pytest.mark.django_db(transaction=True)
# Samples of which people would reject a part, known to the test alone.
BAD_SHARE = 3


def is_bad(sample_id: str) -> bool:
    return int(sample_id) % BAD_SHARE == 0


def is_mostly_bad(sample_id: str) -> bool:
    """Two of three: in no draw that a test will see are there ten good ones in turn, which would be a proof."""
    return int(sample_id) % BAD_SHARE != 0


def work_off_truly(reviewer: Caller, looks: int = LOOKS, bad: Callable[[str], bool] = is_bad) -> None:
    for _ in range(looks):
        sample = reviewer.next()["id"]
        reviewer.decide(sample, "reject" if bad(sample) else "approve", seconds=20.0)


def rescored(order: Any) -> None:
    samples = list(Sample.objects.order_by("pk"))
    for sample in samples:
        sample.score = order(sample)
    Sample.objects.bulk_update(samples, ["score"])


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("useless", lambda sample: float(sample.pk * 7919 % 100)),
        ("adversarial", lambda sample: 90.0 if is_mostly_bad(str(sample.pk)) else 10.0),
        ("equal", lambda sample: 50.0),
    ],
)
def test_a_score_that_says_nothing_proves_nothing(curator: Caller, reviewer: Caller, name: str, order: Any) -> None:
    rescored(order)
    audit = curator.draw()
    work_off_truly(reviewer, bad=is_mostly_bad)
    found = curator("GET", f"/audits/{audit['id']}")
    assert not found["proven"] and found["why_not"]
    assert curator("POST", f"/audits/{audit['id']}/guarantees", status=409)["code"] == "not_proven"


def test_a_good_score_approves_only_what_people_would(curator: Caller, reviewer: Caller) -> None:
    rescored(lambda sample: 10.0 if is_bad(str(sample.pk)) else 90.0)
    # With these figures any draw proves it, with as many bad samples in it as there can be.
    audit = curator.draw(size=25, alpha=0.3)
    work_off_truly(reviewer, 25)
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    unseen = list(curator.statuses(f"&guarantee={made['id']}"))
    assert unseen and not any(map(is_bad, unseen))


def test_samples_that_enter_or_leave_the_filter_change_nothing_of_the_set(
    curator: Caller, reviewer: Caller, project: Project
) -> None:
    audit = curator.draw(filter={"repo": [f"acme/repo-{n}" for n in range(20)]})
    late = make_duel(project, score=89.0, repo="acme/repo-3").sample
    drawn = set(Draw.objects.values_list("sample_id", flat=True))
    assert late is not None
    left = Sample.objects.exclude(pk__in=drawn).exclude(pk=late.pk).earliest("pk")
    Sample.objects.filter(pk=left.pk).update(repo="acme/elsewhere")
    for _ in range(LOOKS):
        reviewer.decide(reviewer.next()["id"])
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    unseen = curator.statuses(f"&guarantee={made['id']}")
    assert str(late.pk) not in unseen and str(left.pk) in unseen
    assert curator("GET", f"/audits/{audit['id']}")["set_sha256"] == audit["set_sha256"]


def test_a_score_that_changes_or_goes_after_the_draw_changes_no_proof(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw()
    reviewer.work_off()
    before = curator("GET", f"/audits/{audit['id']}")["proven"]
    Sample.objects.update(score=None, score_key=-1.0)
    assert curator("GET", f"/audits/{audit['id']}")["proven"] == before
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    assert (made["threshold"], made["approved"]) == (before["threshold"], before["samples"])


def test_what_people_decide_of_the_approved_samples_is_shown_and_kept(
    curator: Caller, reviewer: Caller, client: Client
) -> None:
    audit = curator.draw()
    reviewer.work_off()
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    unseen = sorted(curator.statuses(f"&guarantee={made['id']}"), key=int)
    for sample in unseen[:3]:
        reviewer.decide(sample, "reject")
    found = curator("GET", f"/guarantees/{made['id']}")
    # They are no random sample, so they withdraw nothing.
    assert (found["state"], found["since"]) == ("holds", {"decided": 3, "otherwise": 3})
    client.force_login(curator.user)
    page = re.sub(r"\s+", " ", client.get("/p/billing/samples/guarantee/").content.decode())
    assert "decided 3 of the approved samples since, 3 other than by an approval" in page
    assert len(curator.statuses(f"&guarantee={made['id']}")) == len(unseen) - 3


def test_a_second_audit_of_the_same_samples_says_what_both_may_break(
    curator: Caller, reviewer: Caller, client: Client
) -> None:
    first = curator.draw(size=15)
    assert first["several"] is None
    second = curator.draw(size=15)
    assert "up to 20.0 %" in second["several"]
    # Deleting the audits that proved nothing hides none of them.
    for audit in (first, second):
        curator("DELETE", f"/audits/{audit['id']}")
    third = curator.draw()
    assert "up to 30.0 %" in third["several"]
    reviewer.work_off()
    made = curator("POST", f"/audits/{third['id']}/guarantees")
    assert "up to 30.0 %" in made["promise"]
    client.force_login(curator.user)
    assert "up to 30.0 %" in client.get("/p/billing/samples/guarantee/").content.decode()


def test_a_sample_that_a_later_audit_drew_is_left_to_people(
    curator: Caller, reviewer: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a guarantee approves, another audit draws: the drawn samples wait for people."""
    audit = curator.draw(size=15)
    reviewer.work_off(15)
    monkeypatch.setattr(carry_out, "REQUEST_SECONDS", 0.0)
    monkeypatch.setattr(carry_out, "CHUNK", 5)
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    later = curator.draw(size=15)
    drawn = set(map(str, Draw.objects.filter(audit=later["id"]).values_list("sample_id", flat=True)))
    carry_out.continue_all()
    unseen = set(curator.statuses(f"&guarantee={made['id']}"))
    assert not unseen & drawn
    assert {curator.statuses()[pk] for pk in drawn} == {"pending"}


def test_undone_looks_withdraw_the_guarantee_of_overlapping_audits_too(curator: Caller, reviewer: Caller) -> None:
    audits = [curator.draw(size=15, delta=0.3) for _ in range(2)]
    taken: list[str] = []
    while sample := reviewer.next():
        if len(taken) == len(set(Draw.objects.values_list("sample_id", flat=True))):
            break
        reviewer.decide(sample["id"])
        taken.append(sample["id"])
    assert {curator("GET", f"/audits/{one['id']}")["looked"] for one in audits} == {15}
    made = curator("POST", f"/audits/{audits[0]['id']}/guarantees")
    looks = Draw.objects.filter(audit=audits[0]["id"]).values_list("sample_id", flat=True)
    for sample in list(looks)[:8]:
        reviewer.decide(str(sample), "reject")
    found = curator("GET", f"/guarantees/{made['id']}")
    assert found["state"] == "withdrawn" and "changed or undone" in found["reason"]


EXTENSIONS = {"size": 8, "alpha": 0.3, "delta": 0.2, "extensions": 1}
# By a score, a draw in which the errors are at the low end would prove the rest.
WITHOUT_SCORE = {**EXTENSIONS, "score": "none"}


def test_an_audit_can_be_extended_as_often_as_was_planned(curator: Caller, reviewer: Caller, client: Client) -> None:
    audit = curator.draw(**WITHOUT_SCORE)
    assert (audit["drawn"], Draw.objects.count()) == (8, 16)
    first = Draw.objects.filter(place__lt=8)
    taken = reviewer.work_off(8, lambda number: "reject" if number < 2 else "approve")
    assert set(map(int, taken)) == set(first.values_list("sample_id", flat=True))
    found = curator("GET", f"/audits/{audit['id']}")
    assert (found["looked"], found["proven"]) == (8, None)
    client.force_login(curator.user)
    assert "Draw 8 more looks" in client.get("/p/billing/samples/guarantee/").content.decode()
    found = curator("POST", f"/audits/{audit['id']}/extensions")
    assert (found["drawn"], found["looked"]) == (16, 8)
    taken = reviewer.work_off(8)
    assert set(map(int, taken)) == set(Draw.objects.filter(place__gte=8).values_list("sample_id", flat=True))
    found = curator("GET", f"/audits/{audit['id']}")
    assert (found["looked"], found["agreed"]) == (16, 14)
    refused = curator("POST", f"/audits/{audit['id']}/extensions", status=409)
    assert refused["code"] == "no_extension"


def test_the_tests_of_an_extended_audit_share_delta(curator: Caller, reviewer: Caller) -> None:
    """Without an error 8 looks prove 30 % at δ = 20 %, and do not at the half that a second test leaves."""
    alone = curator.draw(**{**EXTENSIONS, "extensions": 0, "size": 6, "score": "none"})
    curator("DELETE", f"/audits/{alone['id']}")
    refused = curator("POST", "/projects/billing/audits", {**EXTENSIONS, "size": 5, "score": "none"}, status=422)
    assert refused["code"] == "size" and refused["current"]["needed"] > 5


def test_no_guarantee_stands_while_an_audit_is_extended(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw(**EXTENSIONS)
    reviewer.work_off(8)
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    assert curator("POST", f"/audits/{audit['id']}/extensions", status=409)["code"] == "has_guarantee"
    # What the extension would have drawn is approved as all other samples.
    assert made["samples"] == SAMPLES - 8
    curator("DELETE", f"/guarantees/{made['id']}")
    assert curator("POST", f"/audits/{audit['id']}/extensions")["drawn"] == 16


def test_errors_of_an_extension_end_what_the_first_looks_proved(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw(**WITHOUT_SCORE)
    reviewer.work_off(8)
    assert curator("GET", f"/audits/{audit['id']}")["proven"]
    curator("POST", f"/audits/{audit['id']}/extensions")
    reviewer.work_off(8, lambda number: "reject")
    assert curator("GET", f"/audits/{audit['id']}")["proven"] is None


def test_a_drawn_sample_that_is_deleted_stays_an_error(curator: Caller, reviewer: Caller) -> None:
    """A person who deletes a sample that people would reject gains nothing by it."""
    audit = curator.draw()
    Sample.objects.filter(draws__place=0).delete()
    reviewer.work_off(LOOKS - 1)
    found = curator("GET", f"/audits/{audit['id']}")
    assert (found["drawn"], found["looked"], found["agreed"]) == (LOOKS, LOOKS - 1, LOOKS - 1)
