import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from curation.projects.models import Role
from curation.review.decide import decide
from curation.review.models import Decision, Draft, Lease, Revision
from curation.review.revise import revise
from curation.samples.models import Flag, Sample
from tests.factories import CHALLENGER, make_duel, make_member, make_project, make_prompt, make_sample
from tests.review.rows import access_of, reviewer_of

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


@pytest.fixture
def project(db):
    return make_project("billing", guidelines="Prefer the **smallest** command.")


@pytest.fixture
def me(client, project):
    user = make_member(project)
    client.force_login(user)
    return access_of(user, project)


def url(name, *args):
    return reverse(name, args=["billing", *args])


def body(response):
    return response.content.decode()


def form(sample, **values):
    """What the page of this sample would send."""
    lease = Lease.objects.filter(sample=sample).first()
    return {"version": Sample.objects.get(pk=sample.pk).version, "lease": lease.pk if lease else "", **values}


def open_queue(client, query=""):
    response = client.get(url("queue") + query)
    assert response.status_code == 200
    return response


def test_the_queue_shows_the_next_sample_blind(client, me, project):
    sample = make_duel(project, flags=int(Flag.LEAK | Flag.INFRA), score=71.4).sample
    page = body(open_queue(client))
    assert Lease.objects.get().reviewer == me.user
    assert f"Sample {sample.pk}" in page and "in review by you" in page
    assert "Judges, score and seats are shown after the decision." in page
    for hidden in ("71.4", "judge-a", "challenger-a", "king-a", ">leak<"):
        assert hidden not in page, hidden
    assert "infra" in page and "<strong>smallest</strong>" in page
    assert "0 / 1" in page and "1 left" in page


def test_reloading_shows_the_same_sample_in_the_same_seats(client, me, project):
    for _ in range(3):
        make_duel(project)
    heads = [re.search(r"Sample (\d+)", body(open_queue(client))).group(1) for _ in range(2)]
    assert heads[0] == heads[1] and Lease.objects.count() == 1


def test_not_blind_shows_names_and_judges_at_once(client, project):
    project.settings_json = {"review": {"blind": False}}
    project.save()
    client.force_login(make_member(project))
    make_duel(project, score=71.4)
    page = body(open_queue(client))
    assert "Left · King" in page and "Right · Challenger" in page and "judge-a" in page and "71.4" in page


def test_the_end_of_the_queue_says_so(client, me, project):
    assert "Everything is decided" in body(open_queue(client))
    make_sample(project)
    other = reviewer_of(project)
    Lease.objects.create(
        sample=Sample.objects.get(), reviewer=other.user, swapped=False, until=timezone.now() + timedelta(minutes=1)
    )
    assert "in review by others" in body(open_queue(client))
    assert "Nothing in this queue" in body(open_queue(client, "?bucket=final"))


def test_an_order_or_filter_that_is_not_known_is_refused(client, me):
    assert client.get(url("queue") + "?order=best").status_code == 400
    assert client.get(url("queue") + "?colour=red").status_code == 400


def test_a_decision_answers_with_the_next_sample_and_says_what_was_done(client, me, project):
    first, second = make_duel(project, priority=1.0).sample, make_duel(project, priority=2.0).sample
    open_queue(client)
    Lease.objects.update(swapped=True)
    values = form(first, action="approve", preference="left", seconds="3.5", comment=" good ", queue="")
    response = client.post(url("sample-decide", first.pk), values, headers=HTMX)
    assert response.status_code == 200
    line = Decision.objects.get()
    assert (line.sample, line.pick, line.seconds, line.comment) == (first, "candidate", 3.5, "good")
    assert f"Sample {second.pk}" in body(response) and 'id="review"' in body(response)
    assert "<html" not in body(response)
    assert f"Approved sample {first.pk}." in response["HX-Trigger"]
    assert response["HX-Replace-Url"] == url("queue")
    assert "1 / 2" in body(response) and "3.5" in body(response)
    assert f"/samples/{first.pk}/" in body(response), "the decided one stays reachable"


def test_without_advancing_the_decided_sample_is_revealed(client, me, project):
    project.settings_json = {"review": {"advance": False}}
    project.save()
    sample = make_duel(project, flags=int(Flag.LEAK)).sample
    open_queue(client)
    page = body(
        client.post(url("sample-decide", sample.pk), form(sample, action="reject:leaks", queue=""), headers=HTMX)
    )
    assert "judge-a" in page and "Left · King" in page and "leak" in page
    assert Decision.objects.get().reason == "leaks"


def test_a_typed_reason_goes_with_its_own_action_only(client, me, project):
    sample = make_duel(project).sample
    open_queue(client)
    values = form(sample, action="flag", flag_reason="asks for a key", reject_reason="left over", queue="")
    client.post(url("sample-decide", sample.pk), values, headers=HTMX)
    assert Decision.objects.get().reason == "asks for a key"
    assert "asks for a key" in body(open_queue(client)), "whoever opens it next sees it"


def test_a_stale_decision_shows_what_changed_and_overwrites_nothing(client, me, project):
    sample = make_duel(project).sample
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


def test_a_decision_on_what_another_took_meanwhile_names_them(client, me, project):
    sample = make_duel(project).sample
    open_queue(client)
    values = form(sample, action="approve", queue="")
    other = reviewer_of(project)
    Lease.objects.update(reviewer=other.user)
    response = client.post(url("sample-decide", sample.pk), values, headers=HTMX)
    assert response.status_code == 409 and f"in review by {other.user.username}" in body(response)
    assert not Decision.objects.exists()


def test_a_pick_by_seats_that_were_drawn_again_is_refused(client, me, project):
    sample = make_duel(project).sample
    open_queue(client)
    values = form(sample, action="approve", preference="left", queue="")
    Lease.objects.all().delete()
    response = client.post(url("sample-decide", sample.pk), values, headers=HTMX)
    assert response.status_code == 409 and "seats were drawn again" in body(response)
    assert not Decision.objects.exists()


def test_a_form_without_a_version_or_with_nonsense_is_refused(client, me, project):
    sample = make_duel(project).sample
    decide_url = url("sample-decide", sample.pk)
    assert client.post(decide_url, {"action": "approve"}, headers=HTMX).status_code == 400
    assert client.post(decide_url, form(sample, action="bless"), headers=HTMX).status_code == 422
    assert client.post(decide_url, form(sample, action="approve", seconds="soon"), headers=HTMX).status_code == 422
    assert not Decision.objects.exists()


def test_undo_opens_the_sample_again(client, me, project):
    first = make_duel(project, priority=1.0).sample
    make_duel(project, priority=2.0)
    open_queue(client)
    client.post(url("sample-decide", first.pk), form(first, action="approve", queue=""), headers=HTMX)
    response = client.post(url("review-undo"), {"queue": ""}, headers=HTMX)
    assert f"Sample {first.pk}" in body(response) and "Undid approve" in response["HX-Trigger"]
    assert Lease.objects.filter(sample=first, reviewer=me.user).exists()
    first.refresh_from_db()
    assert first.status == "pending"


def test_undo_without_anything_to_undo_says_so(client, me):
    response = client.post(url("review-undo"), headers=HTMX)
    assert response.status_code == 409 and "no decision" in body(response)


def test_looking_back_leads_to_the_decided_ones_and_forward_to_the_queue(client, me, project):
    samples = [make_duel(project, priority=float(n)).sample for n in range(3)]
    for sample in samples[:2]:
        open_queue(client)
        client.post(url("sample-decide", sample.pk), form(sample, action="approve", queue=""), headers=HTMX)
    back = re.search(r'href="([^"]+)" data-key="arrowleft"', body(open_queue(client))).group(1).replace("&amp;", "&")
    page = body(client.get(back))
    assert f"Sample {samples[1].pk}" in page and "judge-a" in page, "a decided sample is revealed"
    further = re.search(r'href="([^"]+)" data-key="arrowleft"', page).group(1).replace("&amp;", "&")
    page = body(client.get(further))
    assert f"Sample {samples[0].pk}" in page
    forward = re.search(r'href="([^"]+)" data-key="arrowright"', page).group(1).replace("&amp;", "&")
    page = body(client.get(forward))
    assert re.search(r'href="([^"]+)" data-key="arrowright"', page).group(1) == url("queue")


def test_saving_a_refinement_approves_it_and_goes_on(client, me, project):
    first, second = make_duel(project, priority=1.0).sample, make_duel(project, priority=2.0).sample
    open_queue(client)
    Lease.objects.update(swapped=True)
    values = form(
        first,
        text="THOUGHT: better.\r\n\r\n```bash\r\nls\r\n```",
        note="n",
        then="approve",
        preference="left",
        queue="",
    )
    response = client.post(url("sample-revise", first.pk), values, headers=HTMX)
    assert response.status_code == 200 and f"Sample {second.pk}" in body(response)
    revision = Revision.objects.get()
    assert (revision.of, revision.text) == ("candidate", "THOUGHT: better.\n\n```bash\nls\n```")
    assert Decision.objects.get().revision == revision


def test_an_empty_refinement_is_refused_and_nothing_is_decided(client, me, project):
    sample = make_duel(project).sample
    open_queue(client)
    response = client.post(url("sample-revise", sample.pk), form(sample, text=" ", then="approve"), headers=HTMX)
    assert response.status_code == 422 and "is empty" in body(response)
    assert response["HX-Retarget"] == "#editor-error"
    assert not Decision.objects.exists() and not Revision.objects.exists()


def test_an_unchanged_text_may_be_approved_but_not_saved(client, me, project):
    sample = make_duel(project).sample
    open_queue(client)
    unchanged = form(sample, text=CHALLENGER, preference="challenger")
    assert client.post(url("sample-revise", sample.pk), unchanged, headers=HTMX).status_code == 422
    client.post(url("sample-revise", sample.pk), {**unchanged, "then": "approve"}, headers=HTMX)
    assert Decision.objects.get().action == "approve" and not Revision.objects.exists()


def test_a_stale_refinement_keeps_neither_revision_nor_decision(client, me, project):
    sample = make_duel(project).sample
    open_queue(client)
    values = form(sample, text="mine", then="approve", queue="")
    Sample.objects.filter(pk=sample.pk).update(version=5)
    assert client.post(url("sample-revise", sample.pk), values, headers=HTMX).status_code == 412
    assert not Decision.objects.exists() and not Revision.objects.exists()


def test_the_editor_brings_the_draft_back(client, me, project):
    sample = make_duel(project).sample
    open_queue(client)
    lease = Lease.objects.get()
    side = "left" if lease.swapped else "right"
    query = {"preference": side, "lease": lease.pk}
    page = body(client.get(url("answer-editor", sample.pk), query))
    assert "sed -n" in page and "Your draft" not in page
    saved = client.post(url("sample-draft", sample.pk), {"text": "half a line", "comment": "hm"})
    assert saved.json()["saved_at"]
    client.post(url("sample-draft", sample.pk), {"comment": "hm hm"})
    assert Draft.objects.get().text == "half a line", "what is not sent stays"
    page = body(client.get(url("answer-editor", sample.pk), query))
    assert "half a line" in page and "Your draft" in page
    assert "hm hm" in body(open_queue(client))


def test_the_protocol_is_checked_while_typing(client, me):
    page = body(client.post(url("answer-facts"), {"text": "```bash\nls\npwd\n```\n```bash\nls\n```"}))
    assert "no thought" in page and "2 bash blocks" in page and "3 commands" in page


def test_heartbeat_keeps_the_sample_and_names_who_took_it(client, me, project):
    sample = make_duel(project).sample
    open_queue(client)
    Lease.objects.update(until=timezone.now() + timedelta(seconds=3))
    page = body(client.post(url("lease-heartbeat", sample.pk)))
    assert "in review by you" in page
    assert Lease.objects.get().until > timezone.now() + timedelta(seconds=200)
    other = reviewer_of(project)
    Lease.objects.update(reviewer=other.user)
    page = body(client.post(url("lease-heartbeat", sample.pk)))
    assert f"in review by {other.user.username}" in page and "hx-post" not in page


def test_leaving_the_page_releases_only_what_that_page_knew(client, me, project):
    sample = make_duel(project).sample
    client.get(url("sample-page", sample.pk))
    known = Lease.objects.get().until.isoformat()
    client.get(url("sample-page", sample.pk))
    client.post(url("lease-release", sample.pk), {"until": known})
    assert Lease.objects.exists(), "a reload has extended it"
    client.post(url("lease-release", sample.pk), {"until": Lease.objects.get().until.isoformat()})
    assert not Lease.objects.exists()


def test_the_page_of_a_sample_that_another_holds_is_for_reading(client, me, project):
    sample = make_duel(project).sample
    other = reviewer_of(project)
    Lease.objects.create(sample=sample, reviewer=other.user, swapped=False, until=timezone.now() + timedelta(minutes=1))
    page = body(client.get(url("sample-page", sample.pk)))
    assert f"In review by {other.user.username}" in page
    assert 'data-key="a"' not in page and "judge-a" not in page
    assert Lease.objects.get().reviewer == other.user


def test_the_panel_claims_nothing_and_stays_blind_until_decided(client, me, project):
    sample = make_duel(project, flags=int(Flag.LEAK)).sample
    page = body(client.get(url("sample-panel", sample.pk), headers=HTMX))
    assert "shown after the decision" in page and "king-a" not in page and "leak" not in page
    assert not Lease.objects.exists()
    decide(access=me, sample_id=sample.pk, action="approve", preference="king")
    page = body(client.get(url("sample-panel", sample.pk), headers=HTMX))
    assert "judge-a" in page and "kept" in page and "leak" in page


def test_leak_spans_and_revisions_are_shown_after_the_decision(client, me, project):
    duel = make_duel(project, challenger="THOUGHT: call parse_comma now.\n\n```bash\ngrep parse_comma src\n```")
    text = duel.challenger.text.text
    starts = [text.index("parse_comma"), text.rindex("parse_comma")]
    duel.challenger.leak_spans = [{"start": start, "end": start + 11} for start in starts]
    duel.challenger.leak_flag = True
    duel.challenger.save()
    page = body(client.get(url("sample-page", duel.sample_id)))
    assert "<mark" not in page
    decide(access=me, sample_id=duel.sample_id, action="approve")
    page = body(client.get(url("sample-page", duel.sample_id)))
    assert page.count('<mark class="leak">parse_comma</mark>') == 2
    revise(access=me, sample_id=duel.sample_id, text="THOUGHT: call split now.", note="no names")
    page = body(client.get(url("sample-page", duel.sample_id)))
    assert "Revision 1 of the challenger" in page and "no names" in page and "<del>" in page and "<ins>" in page


def test_the_diff_marks_what_only_one_side_has(client, me, project):
    sample = make_duel(project, king="a b c", challenger="a x c").sample
    decide(access=me, sample_id=sample.pk, action="approve")
    page = body(client.get(url("answer-diff", sample.pk)))
    assert "<del>b</del>" in page and "<ins>x</ins>" in page


def test_hostile_history_is_escaped_and_control_characters_are_shown(client, me, project):
    history = [
        {"role": "user", "content": "<script>alert(1)</script>"},
        {"role": "assistant", "content": "THOUGHT: x\n\n```bash\necho '<img src=x>' \x1b]0;title\x07\n```"},
        {"role": "user", "content": "\x1b[31mred\x1b[0m \u202eevil"},
    ]
    duel = make_duel(project)
    duel.prompt.text.history = history
    duel.prompt.text.save()
    page = body(client.get(url("sample-page", duel.sample_id)))
    assert "<script>alert" not in page and "<img src=x>" not in page
    assert not re.search("[\x07\x1b\u202e]", page)
    assert "␛[31m" in page and "⟨U+202E⟩" in page


def test_a_long_history_opens_with_its_task_and_last_turns_and_loads_windows(client, me, project):
    history = [{"role": "system", "content": "s"}, {"role": "user", "content": "the task"}]
    history += [{"role": ("assistant", "user")[n % 2], "content": f"turn number {n}"} for n in range(200)]
    duel = make_duel(project)
    duel.prompt.text.history = history
    duel.prompt.text.save()
    pk = duel.sample_id
    page = body(client.get(url("sample-page", pk)))
    assert "the task" in page and "turn number 199" in page and "turn number 150" not in page
    assert "197 turns folded" in page
    window = body(client.get(url("history-window", pk), {"before": 198}))
    assert "157 turns folded" in window
    assert "turn number 195" in window and "turn number 156" in window and "turn number 155" not in window
    assert "turn number 42" in body(client.get(url("history-turn", pk, 44)))
    assert client.get(url("history-turn", pk, 900)).status_code == 404
    found = body(client.get(url("history-find", pk), {"q": "NUMBER 42"}))
    assert "<strong>1</strong> turn" in found and "q=NUMBER%2042" in found
    marked = body(client.get(url("history-turn", pk, 44), {"q": "number 42"}))
    assert '<mark class="found">number 42</mark>' in marked


def test_a_huge_output_comes_in_pieces_and_raw(client, me, project):
    duel = make_duel(project)
    duel.prompt.text.history = [
        {"role": "user", "content": "task"},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "line of output\n" * 80_000 + "needle"},
    ]
    duel.prompt.text.save()
    pk = duel.sample_id
    page = client.get(url("sample-page", pk))
    assert len(page.content) < 120_000 and "Show more" in body(page)
    more = body(client.get(url("history-turn", pk, 2), {"start": 16_000}))
    assert "from character 16000" in more and "start=32000" in more
    assert '<mark class="found">needle</mark>' in body(client.get(url("history-turn", pk, 2), {"q": "needle"}))
    raw = client.get(url("history-raw", pk))
    assert raw["Content-Type"].startswith("text/plain") and raw.content.endswith(b"needle")
    assert client.get(url("history-raw", pk), {"turn": 1}).content == b"x"


def test_bulk_from_the_list_gives_a_toast_with_one_undo(client, me, project):
    samples = [make_sample(project) for _ in range(2)]
    values = {"action": "approve", "ids": [sample.pk for sample in samples]}
    response = client.post(url("sample-bulk"), values, headers=HTMX)
    assert response.status_code == 204 and "2 approved." in response["HX-Trigger"]
    undo_url = re.search(r'"url": "([^"]+)"', response["HX-Trigger"]).group(1)
    response = client.post(undo_url, headers=HTMX)
    assert "2 samples are as before" in response["HX-Trigger"]
    assert not Sample.objects.exclude(status="pending").exists()


def test_bulk_over_all_that_match_returns_to_the_list(client, me, project):
    for _ in range(3):
        make_sample(project, bucket="final")
    make_sample(project, bucket="defeat")
    values = {"action": "reject", "all": "1", "query": "bucket=final&sort=-score", "count": "3"}
    response = client.post(
        url("sample-bulk"), values, headers={"Referer": "http://testserver/p/billing/samples/?bucket=final"}
    )
    assert response.status_code == 302 and response["Location"] == "/p/billing/samples/?bucket=final"
    assert Sample.objects.filter(status="rejected").count() == 3
    refused = client.post(url("sample-bulk"), {**values, "count": "9"}, headers=HTMX)
    assert refused.status_code == 409


def test_strangers_find_nothing_and_viewers_may_only_look(client, project):
    sample = make_duel(project).sample
    pages = ["sample-page", "sample-panel", "history-window", "history-find", "history-raw", "answer-diff"]
    posts = ["sample-decide", "sample-revise", "sample-draft", "lease-heartbeat", "lease-release"]
    assert client.get(url("queue")).status_code == 302, "sign in first"
    client.force_login(make_member(make_project()))
    for name in [*pages, "answer-editor"]:
        assert client.get(url(name, sample.pk)).status_code == 404
    for name in posts:
        assert client.post(url(name, sample.pk), {"version": 1}).status_code == 404
    client.force_login(make_member(project, role=Role.VIEWER))
    for name in pages:
        assert client.get(url(name, sample.pk)).status_code == 200, name
    for name in posts:
        assert client.post(url(name, sample.pk), {"version": 1}).status_code == 403
    for path in ("review-undo", "answer-facts", "sample-bulk"):
        assert client.post(url(path)).status_code == 403
    assert client.get(url("queue")).status_code == 403
    assert client.get(url("answer-editor", sample.pk)).status_code == 403
    assert not Lease.objects.exists() and not Decision.objects.exists()


def test_a_sample_of_another_project_is_not_found(client, me):
    foreign = make_sample(make_project())
    assert client.get(url("sample-page", foreign.pk)).status_code == 404
    assert client.post(url("sample-decide", foreign.pk), {"version": 1, "action": "approve"}).status_code == 404


def test_the_number_of_queries_of_a_page_does_not_grow(client, me, project, django_assert_max_num_queries):
    for _ in range(6):
        make_duel(project)
    with django_assert_max_num_queries(40):
        open_queue(client)


def test_a_prompt_without_a_reference_turn_still_opens(client, me, project):
    make_prompt(project)
    make_sample(project)
    assert "No answers" in body(open_queue(client))
