from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.decisions.decide import decide
from curation.review.models import Decision, Lease, Pick
from curation.samples.models import Flag, Sample
from tests.factories import make_duel, make_member, make_prompt, make_sample
from tests.review.browsing import HTMX, body, first, form, open_queue, url
from tests.review.rows import judged, reviewer_of

pytestmark = pytest.mark.django_db


def test_the_queue_shows_the_next_sample_blind(client: Client, me: Access, project: Project) -> None:
    sample = judged(project, flags=int(Flag.LEAK | Flag.INFRA), score=71.4)
    page = body(open_queue(client))
    assert Lease.objects.get().reviewer == me.user
    assert f"Sample {sample.pk}" in page and "in review by you" in page
    assert "Judges, score and sides are shown after the decision." in page
    for hidden in ("71.4", "judge-a", "challenger-a", "king-a", ">leak<", ">infra<"):
        assert hidden not in page, hidden
    assert "<strong>smallest</strong>" in page
    assert "0 / 1" in page and "1 left" in page


def test_reloading_shows_the_same_sample_in_the_same_seats(client: Client, me: Access, project: Project) -> None:
    for _ in range(3):
        make_duel(project)
    heads = [first(r"Sample (\d+)", body(open_queue(client))) for _ in range(2)]
    assert heads[0] == heads[1] and Lease.objects.count() == 1


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_a_get_claims_nothing_and_extends_nothing(
    client: Client, me: Access, project: Project, headers: dict[str, str]
) -> None:
    sample = judged(project)
    for address in (url("queue"), url("sample-page", sample.pk)):
        page = body(client.get(address, headers=headers))
        assert f'hx-post="{address}"' in page and 'hx-trigger="load, submit"' in page
    assert not Lease.objects.exists()
    open_queue(client)
    before = Lease.objects.get().until
    assert f"Sample {sample.pk}" in body(client.get(url("queue"), headers=headers))
    client.get(url("sample-page", sample.pk), headers=headers)
    assert Lease.objects.get().until == before


def test_not_blind_shows_names_and_judges_at_once(client: Client, project: Project) -> None:
    project.settings_json = {"review": {"blind": False}}
    project.save()
    client.force_login(make_member(project))
    make_duel(project, score=71.4)
    page = body(open_queue(client))
    assert "Left · King" in page and "Right · Challenger" in page and "judge-a" in page and "71.4" in page


def test_the_end_of_the_queue_says_so(client: Client, me: Access, project: Project) -> None:
    assert "Nothing to review yet" in body(open_queue(client))
    make_sample(project, status="approved")
    assert "Everything is decided" in body(open_queue(client))
    Sample.objects.update(status="pending")
    other = reviewer_of(project)
    Lease.objects.create(
        sample=Sample.objects.get(), reviewer=other.user, swapped=False, until=timezone.now() + timedelta(minutes=1)
    )
    assert "in review by others" in body(open_queue(client))
    assert "Nothing in this queue" in body(open_queue(client, "?repo=elsewhere"))


def test_an_order_or_filter_that_is_not_known_is_refused(client: Client, me: Access) -> None:
    assert client.get(url("queue") + "?order=best").status_code == 400
    assert client.get(url("queue") + "?colour=red").status_code == 400


def test_a_decision_answers_with_the_next_sample_and_says_what_was_done(
    client: Client, me: Access, project: Project
) -> None:
    first, second = judged(project, priority=1.0), judged(project, priority=2.0)
    open_queue(client)
    Lease.objects.update(swapped=True)
    values = form(first, action="approve", preference="left", seconds="3.5", comment=" good ", queue="")
    response = client.post(url("sample-decide", first.pk), values, headers=HTMX)
    assert response.status_code == 200
    line = Decision.objects.get()
    assert (line.sample, line.pick, line.seconds, line.comment) == (first, Pick.CHALLENGER, 3.5, "good")
    assert f"Sample {second.pk}" in body(response) and 'id="review"' in body(response)
    assert "<html" not in body(response)
    assert f"Approved sample {first.pk}." in response["HX-Trigger"]
    assert response["HX-Replace-Url"] == url("queue")
    assert "1 / 2" in body(response) and "3.5" in body(response)
    assert f"/samples/{first.pk}/" in body(response), "the decided one stays reachable"


def test_a_plain_form_is_sent_on_to_the_queue(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    response = client.post(url("sample-decide", sample.pk), form(sample, action="reject", queue="order=newest"))
    assert (response.status_code, response["Location"]) == (302, url("queue") + "?order=newest")
    assert Decision.objects.get().action == "reject"


def test_without_advancing_the_decided_sample_is_revealed(client: Client, me: Access, project: Project) -> None:
    project.settings_json = {"review": {"advance": False}}
    project.save()
    sample = judged(project, flags=int(Flag.LEAK))
    open_queue(client)
    page = body(
        client.post(url("sample-decide", sample.pk), form(sample, action="reject:leaks", queue=""), headers=HTMX)
    )
    king = "Left · King" if Decision.objects.get().seat == "king_left" else "Right · King"
    assert "judge-a" in page and king in page and "leak" in page
    assert Decision.objects.get().reason == "leaks"


def test_a_typed_reason_goes_with_its_own_action_only(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    values = form(sample, action="flag", flag_reason="asks for a key", reject_reason="left over", queue="")
    client.post(url("sample-decide", sample.pk), values, headers=HTMX)
    assert Decision.objects.get().reason == "asks for a key"
    assert "asks for a key" in body(open_queue(client)), "the next reviewer sees it"


def test_a_stale_decision_shows_what_changed_and_overwrites_nothing(
    client: Client, me: Access, project: Project
) -> None:
    sample = judged(project)
    open_queue(client)
    values = form(sample, action="approve", queue="")
    Lease.objects.all().delete()
    other = reviewer_of(project)
    decide(access=other, sample_id=sample.pk, action="reject")
    response = client.post(url("sample-decide", sample.pk), values, headers=HTMX)
    assert response.status_code == 412
    assert "Nothing was overwritten" in body(response) and f"decided by {other.user.username}" in body(response)
    sample.refresh_from_db()
    assert sample.status == "rejected"


def test_a_decision_on_a_sample_that_another_has_taken_names_them(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    values = form(sample, action="approve", queue="")
    other = reviewer_of(project)
    Lease.objects.update(reviewer=other.user)
    response = client.post(url("sample-decide", sample.pk), values, headers=HTMX)
    assert response.status_code == 409 and f"in review by {other.user.username}" in body(response)
    assert not Decision.objects.exists()


@pytest.mark.parametrize("swapped", [False, True])
def test_a_pick_means_the_answers_as_the_page_showed_them(
    client: Client, me: Access, project: Project, swapped: bool
) -> None:
    """A page that is left gives its lease back late, and may do so after the next page was read."""
    sample = judged(project)
    open_queue(client)
    Lease.objects.update(swapped=swapped)
    page = body(open_queue(client))
    left = first(r'name="left" value="(\w+)"', page)
    Lease.objects.all().delete()
    values = form(sample, action="approve", preference="left", queue="", left=left)
    response = client.post(url("sample-decide", sample.pk), values, headers=HTMX)
    assert response.status_code == 200
    decision = Decision.objects.get()
    assert (decision.pick, decision.seat) == (
        (Pick.CHALLENGER, "challenger_left") if swapped else (Pick.KING, "king_left")
    )


def test_a_page_that_names_no_answer_of_the_sample_is_refused(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    for left in ("", "0123456789abcdef"):
        values = form(sample, action="approve", preference="left", queue="", left=left)
        response = client.post(url("sample-decide", sample.pk), values, headers=HTMX)
        assert response.status_code == 422 and "names no answer of this sample" in body(response)
    assert not Decision.objects.exists()


def test_once_sides_are_shown_left_is_the_king_however_the_lease_was_drawn(
    client: Client, me: Access, project: Project
) -> None:
    sample = judged(project)
    open_queue(client)
    Lease.objects.update(swapped=True)
    project.settings_json = {"review": {"blind": False}}
    project.save()
    for action in ("approve", "reject"):
        page = body(client.post(url("sample-page", sample.pk)))
        assert "Left · King" in page
        left = first(r'name="left" value="(\w+)"', page)
        values = form(sample, action=action, preference="left", queue="", left=left)
        assert client.post(url("sample-decide", sample.pk), values, headers=HTMX).status_code == 200
    lines = list(Decision.objects.order_by("id"))
    assert [(line.preference, line.pick, line.seat) for line in lines] == [("left", Pick.KING, "king_left")] * 2


def test_a_form_without_a_version_or_with_nonsense_is_refused(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    decide_url = url("sample-decide", sample.pk)
    assert client.post(decide_url, {"action": "approve"}, headers=HTMX).status_code == 400
    assert client.post(decide_url, form(sample, action="bless"), headers=HTMX).status_code == 422
    assert client.post(decide_url, form(sample, action="approve", seconds="soon"), headers=HTMX).status_code == 422
    assert not Decision.objects.exists()


def test_undo_opens_the_sample_again(client: Client, me: Access, project: Project) -> None:
    first = judged(project, priority=1.0)
    make_duel(project, priority=2.0)
    open_queue(client)
    client.post(url("sample-decide", first.pk), form(first, action="approve", queue=""), headers=HTMX)
    response = client.post(url("review-undo"), {"queue": ""}, headers=HTMX)
    assert f"Sample {first.pk}" in body(response) and "Undid approve" in response["HX-Trigger"]
    assert Lease.objects.filter(sample=first, reviewer=me.user).exists()
    first.refresh_from_db()
    assert first.status == "pending"


def test_undo_without_anything_to_undo_says_so(client: Client, me: Access) -> None:
    response = client.post(url("review-undo"), headers=HTMX)
    assert response.status_code == 409 and "no decision" in body(response)


def test_looking_back_leads_to_the_decided_ones_and_forward_to_the_queue(
    client: Client, me: Access, project: Project
) -> None:
    samples = [judged(project, priority=float(n)) for n in range(3)]
    for sample in samples[:2]:
        open_queue(client)
        client.post(url("sample-decide", sample.pk), form(sample, action="approve", queue=""), headers=HTMX)
    back = first(r'href="([^"]+)" data-key="arrowleft"', body(open_queue(client))).replace("&amp;", "&")
    page = body(client.get(back))
    assert f"Sample {samples[1].pk}" in page and "judge-a" in page, "a decided sample is revealed"
    further = first(r'href="([^"]+)" data-key="arrowleft"', page).replace("&amp;", "&")
    page = body(client.get(further))
    assert f"Sample {samples[0].pk}" in page
    forward = first(r'href="([^"]+)" data-key="arrowright"', page).replace("&amp;", "&")
    page = body(client.get(forward))
    assert first(r'href="([^"]+)" data-key="arrowright"', page) == url("queue")


def test_heartbeat_keeps_the_sample_and_names_who_took_it(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    Lease.objects.update(until=timezone.now() + timedelta(seconds=3))
    page = body(client.post(url("lease-heartbeat", sample.pk)))
    assert "in review by you" in page
    assert Lease.objects.get().until > timezone.now() + timedelta(seconds=200)
    other = reviewer_of(project)
    Lease.objects.update(reviewer=other.user)
    page = body(client.post(url("lease-heartbeat", sample.pk)))
    assert f"in review by {other.user.username}" in page and "hx-post" not in page


def test_a_heartbeat_claims_a_sample_again_that_was_given_back(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    open_queue(client)
    seats = Lease.objects.get().swapped
    Lease.objects.all().delete()
    assert "in review by you" in body(client.post(url("lease-heartbeat", sample.pk)))
    lease = Lease.objects.get()
    assert (lease.reviewer, lease.swapped) == (me.user, seats)


def test_leaving_the_page_releases_only_what_that_page_knew(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    client.post(url("sample-page", sample.pk))
    known = Lease.objects.get().until.isoformat()
    client.post(url("sample-page", sample.pk))
    client.post(url("lease-release", sample.pk), {"until": known})
    assert Lease.objects.exists(), "a reload has extended it"
    client.post(url("lease-release", sample.pk), {"until": Lease.objects.get().until.isoformat()})
    assert not Lease.objects.exists()


def test_the_page_of_a_sample_that_another_holds_is_for_reading(client: Client, me: Access, project: Project) -> None:
    sample = judged(project)
    other = reviewer_of(project)
    Lease.objects.create(sample=sample, reviewer=other.user, swapped=False, until=timezone.now() + timedelta(minutes=1))
    page = body(client.get(url("sample-page", sample.pk)))
    assert f"In review by {other.user.username}" in page
    assert 'data-key="a"' not in page and "judge-a" not in page
    assert Lease.objects.get().reviewer == other.user


def test_the_number_of_queries_of_a_page_does_not_grow(
    client: Client, me: Access, project: Project, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(6):
        make_duel(project)
    with django_assert_max_num_queries(52):
        open_queue(client)


def test_a_prompt_without_a_reference_turn_still_opens(client: Client, me: Access, project: Project) -> None:
    make_prompt(project)
    make_sample(project)
    assert "No answers" in body(open_queue(client))
