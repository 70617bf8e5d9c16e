"""Two reviewers decide each sample without seeing each other, and a curator adjudicates, over pages and REST."""

from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape

from curation.exports.recipes.recipe import read_recipe
from curation.exports.rows.freeze import current_samples
from curation.exports.rows.skip_reasons import SkipReason, sample_reason
from curation.labels.models import Question
from curation.projects.models import AuditEntry, Member, Project, Role
from curation.review.bulk.decide import decide_selected
from curation.review.bulk.undo import undo_bulk
from curation.review.decisions.decide import decide
from curation.review.decisions.opinions import decisions_shown_to
from curation.review.decisions.outcome import standing_approvals
from curation.review.decisions.revise import revise
from curation.review.decisions.undo import undo
from curation.review.labels.save import save_labels
from curation.review.models import Decision, Lease, Revision
from curation.review.queue.next import lease_next, open_count
from curation.review.thresholds.queries import decided_cells
from curation.samples.models import Sample, SampleStatus, Unblinding
from curation.web.problems import Conflict, NotAllowed
from tests.factories import make_bearer, make_member, make_project
from tests.review.browsing import left_of
from tests.review.rows import access_of, judged, outcome_of, reviewer_of, taken_by

pytestmark = pytest.mark.django_db
REVISED = "THOUGHT: I read the file.\n\n```bash\nsed -n 1,40p billing/totals.py\n```"


@pytest.fixture
def project() -> Project:
    return make_project("billing", settings_json={"review": {"overlap": 2}})


def skipped(sample: Sample) -> SkipReason | None:
    recipe = read_recipe({"formats": ["sft-messages"], "filter": {}})
    found = {row.sample_id: row for row in current_samples(recipe.samples(sample.project))}
    return sample_reason(found[sample.pk], ())


def now(sample: Sample) -> Sample:
    return Sample.objects.get(pk=sample.pk)


def read(client: Client, path: str, headers: dict[str, str], **query: str) -> Any:
    return client.get(f"/api/v1{path}", query, headers=headers).json()


def test_equal_decisions_of_two_people_settle_a_sample_and_only_then_it_is_exported(project: Project) -> None:
    ada, ben = reviewer_of(project), reviewer_of(project)
    sample = judged(project)
    first = decide(access=ada, sample_id=sample.pk, action="approve", preference="challenger", comment="Fine.")
    assert (first.sample.status, first.sample.version, first.settles) == ("pending", 1, False)
    assert skipped(sample) is SkipReason.NOT_APPROVED and standing_approvals([sample.pk]) == {}
    second = decide(access=ben, sample_id=sample.pk, action="approve", preference="challenger", reason="short")
    assert (second.sample.status, second.settles) == ("approved", True)
    assert skipped(sample) is None and list(standing_approvals([sample.pk])) == [sample.pk]
    assert {row.round for row in Decision.objects.all()} == {1}


def test_one_person_alone_never_settles_a_sample(project: Project) -> None:
    ada = reviewer_of(project)
    sample = judged(project)
    for action in ("approve", "reject", "reject"):
        assert decide(access=ada, sample_id=sample.pk, action=action).sample.status == SampleStatus.PENDING
    assert not now(sample).disputed


@pytest.mark.parametrize(
    ("one", "two", "agree"),
    [
        ({"action": "approve", "preference": "challenger"}, {"action": "approve"}, True),
        ({"action": "approve", "preference": "challenger"}, {"action": "approve", "preference": "king"}, False),
        ({"action": "approve", "preference": "challenger"}, {"action": "approve", "preference": "draw"}, False),
        ({"action": "reject", "reason": "wrong"}, {"action": "reject", "reason": "leaks"}, True),
        ({"action": "reject"}, {"action": "refine"}, False),
        ({"action": "refine"}, {"action": "refine"}, True),
    ],
)
def test_decisions_are_equal_by_their_outcome_and_the_kept_answer(
    project: Project, one: dict[str, Any], two: dict[str, Any], agree: bool
) -> None:
    sample = judged(project)
    for person, decision in ((reviewer_of(project), one), (reviewer_of(project), two)):
        decide(access=person, sample_id=sample.pk, **decision)
    assert (now(sample).status != SampleStatus.PENDING, now(sample).disputed) == (agree, not agree)


def test_texts_of_refinements_must_be_equal_and_nobody_sees_those_of_others(project: Project) -> None:
    people = [reviewer_of(project) for _ in range(2)]
    same, other = judged(project), judged(project)
    for person, text in zip(people, (REVISED, REVISED + "\n"), strict=True):
        for sample, written in ((same, REVISED), (other, text)):
            revise(access=person, sample_id=sample.pk, text=written)
            seen = read(Client(), f"/samples/{sample.pk}/revisions", make_bearer(person.user))["data"]
            assert [row["text"] for row in seen] == [written]
            decide(access=person, sample_id=sample.pk, action="approve", preference="challenger", version=1)
    assert outcome_of(now(same)).chosen_text == REVISED and outcome_of(now(same)).as_approved
    assert now(same).status == "approved" and now(other).disputed
    kept = Decision.objects.filter(sample=other).first()
    assert kept is not None
    curator = reviewer_of(project, Role.CURATOR)
    decide(access=curator, sample_id=other.pk, action="approve", keep=kept.pk)
    outcome = outcome_of(now(other))
    assert (outcome.chosen_text, outcome.as_approved, outcome.reviewers) == (REVISED, True, (curator.user.username,))
    undo(access=curator, sample_id=other.pk)
    assert now(other).disputed and not Revision.objects.filter(sample=other, private_to=None).exists()


def test_the_editor_goes_on_from_the_own_text_that_others_do_not_see(project: Project, client: Client) -> None:
    ada, ben = reviewer_of(project), reviewer_of(project)
    sample = judged(project)
    revise(access=ada, sample_id=sample.pk, text=REVISED)
    decide(access=ada, sample_id=sample.pk, action="approve", preference="challenger", version=1)
    undo(access=ada, sample_id=sample.pk)
    shown = {}
    for person in (ada, ben):
        Lease.objects.all().delete()
        given = {"left": left_of(taken_by(person).lease)}
        client.force_login(person.user)
        path = reverse("answer-editor", args=[project.slug, sample.pk])
        editors = [client.get(path, {**given, "preference": side}) for side in ("left", "right")]
        assert [editor.status_code for editor in editors] == [200, 200]
        shown[person.user.pk] = sum("sed -n 1,40p" in editor.content.decode() for editor in editors)
    assert shown == {ada.user.pk: 1, ben.user.pk: 0}


def test_a_curator_adjudicates_and_nobody_else(project: Project) -> None:
    ada, ben, curator = reviewer_of(project), reviewer_of(project), reviewer_of(project, Role.CURATOR)
    sample = judged(project)
    mine = decide(access=ada, sample_id=sample.pk, action="approve", preference="king")
    decide(access=ben, sample_id=sample.pk, action="reject")
    with pytest.raises(NotAllowed):
        decide(access=ada, sample_id=sample.pk, action="approve", keep=mine.pk)
    Member.objects.filter(user=ben.user).update(role=Role.CURATOR)
    with pytest.raises(Conflict, match="you are one of them"):
        decide(access=access_of(ben.user, project), sample_id=sample.pk, action="approve")
    assert skipped(sample) is SkipReason.NOT_APPROVED
    done = decide(access=curator, sample_id=sample.pk, action="approve", keep=mine.pk)
    assert (done.sample.status, done.pick, done.round) == ("approved", "opponent", 0)
    assert not now(sample).disputed
    with pytest.raises(Conflict, match="Several people settled"):
        decide(access=ben, sample_id=sample.pk, action="reject", version=now(sample).version)


def test_undo_of_a_waiting_an_agreeing_and_an_adjudicating_decision(project: Project) -> None:
    ada, ben, curator = reviewer_of(project), reviewer_of(project), reviewer_of(project, Role.CURATOR)
    sample = judged(project)
    decide(access=ada, sample_id=sample.pk, action="approve")
    decide(access=ben, sample_id=sample.pk, action="approve")
    undo(access=ben)
    assert (now(sample).status, now(sample).opinions, standing_approvals([sample.pk])) == ("pending", 2, {})
    decide(access=ben, sample_id=sample.pk, action="reject")
    assert now(sample).disputed
    decide(access=curator, sample_id=sample.pk, action="reject")
    undo(access=curator)
    assert (now(sample).status, now(sample).disputed) == ("pending", True)
    undo(access=ada)  # not refused, which would say that another has decided since
    assert (now(sample).disputed, now(sample).opinions) == (False, 2)
    undo(access=ben)
    assert now(sample).opinions == 0


def test_the_queue_offers_a_sample_to_each_person_once_until_enough_have_decided(project: Project) -> None:
    ada, ben, eve = reviewer_of(project), reviewer_of(project), reviewer_of(project)
    sample = judged(project)
    assert taken_by(ada).sample.pk == sample.pk
    decide(access=ada, sample_id=sample.pk, action="approve")
    assert lease_next(access=ada) is None and lease_next(access=ada, order="newest") is None
    assert (open_count(project, ada.user.pk), open_count(project, ben.user.pk)) == (0, 1)
    assert taken_by(ben).sample.pk == sample.pk
    decide(access=ben, sample_id=sample.pk, action="reject")
    assert lease_next(access=eve) is None  # disputed: somebody adjudicates


def test_overlap_on_borderline_samples_leaves_the_others_to_one_person() -> None:
    project = make_project(settings_json={"review": {"overlap": 2, "overlap_on": "borderline"}})
    ada = reviewer_of(project)
    clear, borderline = judged(project, bucket="final"), judged(project, bucket="refined")
    statuses = [decide(access=ada, sample_id=one.pk, action="approve").sample.status for one in (clear, borderline)]
    assert statuses == ["approved", "pending"]


def test_the_first_decision_fixes_how_many_people_decide(project: Project) -> None:
    sample = judged(project)
    decide(access=reviewer_of(project), sample_id=sample.pk, action="approve")
    project.settings_json = {}
    project.save()
    decide(access=reviewer_of(project), sample_id=sample.pk, action="reject")
    assert now(sample).disputed


def test_a_decision_on_a_refined_sample_is_one_of_several_too(project: Project) -> None:
    ada, ben = reviewer_of(project), reviewer_of(project)
    sample = judged(project)
    for access in (ada, ben):
        decide(access=access, sample_id=sample.pk, action="refine")
    assert now(sample).status == "needs_refine" and sum(cell.n for cell in decided_cells(project, [], every=True)) == 1
    revise(access=ada, sample_id=sample.pk, text="Refined.")
    decide(access=ada, sample_id=sample.pk, action="approve")
    assert (now(sample).status, now(sample).opinions) == ("pending", 2)
    assert decided_cells(project, [], every=True) == []
    shown = decisions_shown_to(ben, Decision.objects.filter(sample=sample))
    assert "approve" not in shown.values_list("action", flat=True)
    assert taken_by(ben).sample == sample
    Lease.objects.all().delete()
    for _ in range(2):  # the decision, and then the text
        undo(access=ada, sample_id=sample.pk)
    back = now(sample)
    assert (back.status, back.decided_by, back.opinions) == ("needs_refine", ben.user, 0)
    decide(access=ada, sample_id=sample.pk, action="reject")
    decide(access=ben, sample_id=sample.pk, action="reject")
    assert now(sample).status == "rejected"


def test_bulk_decisions_wait_too_and_are_undone_as_a_whole(project: Project) -> None:
    ada, ben = reviewer_of(project), reviewer_of(project)
    samples = [judged(project) for _ in range(3)]
    decide(access=ada, sample_id=samples[0].pk, action="approve")
    decide(access=ada, sample_id=samples[1].pk, action="reject")
    done = decide_selected(access=ben, action="approve", ids=[str(one.pk) for one in samples])
    assert [row.status for row in done.rows] == ["approved", "pending", "pending"]
    assert (done.changed, done.waiting) == (3, 2)
    assert [(now(one).status, now(one).disputed) for one in samples] == [
        ("approved", False), ("pending", True), ("pending", False)
    ]  # fmt: skip
    assert undo_bulk(access=ben, batch=done.batch).restored == 3
    assert [(now(one).status, now(one).disputed) for one in samples] == [("pending", False)] * 3
    assert [now(one).opinions for one in samples] == [2, 2, 0]


def test_one_reviewer_costs_no_query_more() -> None:
    counts = []
    for overlap in (1, 2):
        project = make_project(settings_json={"review": {"overlap": overlap}})
        ada, sample = reviewer_of(project), judged(project)
        decide(access=ada, sample_id=judged(project).pk, action="reject")
        with CaptureQueriesContext(connection) as queries:
            decide(access=ada, sample_id=sample.pk, action="reject")
        counts.append([query["sql"] for query in queries if "review_decision" in query["sql"]])
    assert len(counts[0]) == 1 and len(counts[1]) == 2


# What of one reviewer's decision must be found nowhere by another, nor by a viewer, before the sample is settled.
MARK = "remark-of-ada"
PATHS = (
    "/samples/{pk}", "/samples/{pk}/decisions", "/samples/{pk}/revisions", "/samples/{pk}/findings",
    "/projects/billing/decisions?count=true", "/projects/billing/samples?count=true", "/projects/billing/stats",
    "/projects/billing/batches",
)  # fmt: skip
PAGES = ("samples/", "samples/{pk}/", "samples/{pk}/panel/", "", "thresholds/", "judges/", "samples/batches/")


@pytest.mark.parametrize(("role", "blind"), [(Role.REVIEWER, True), (Role.REVIEWER, False), (Role.VIEWER, False)])
def test_nothing_tells_of_a_decision_before_the_sample_is_settled(
    client: Client, project: Project, role: Role, blind: bool
) -> None:
    project.settings_json = {"review": {"overlap": 2, "blind": blind}}
    project.save()
    ada, ben = reviewer_of(project), reviewer_of(project)
    other = access_of(make_member(project, role=role), project)
    sample = judged(project)
    headers = make_bearer(other.user)
    client.force_login(other.user)

    def shown() -> dict[str, Any]:
        cache.clear()
        found = {path: read(client, path.format(pk=sample.pk).split("?")[0], headers) for path in PATHS}
        for answer in found.values():  # the time, and the id of a refused request
            answer.pop("at", None)
            answer.pop("request_id", None)
        pages = {page: client.get(f"/p/billing/{page.format(pk=sample.pk)}").content.decode() for page in PAGES}
        assert all(MARK not in text for text in pages.values())
        return found

    before = shown()
    remark = f"{MARK} @{other.user.username}"
    revise(access=ada, sample_id=sample.pk, text=REVISED, note=remark)
    decide(access=ada, sample_id=sample.pk, action="reject", comment=remark, reason="wrong")
    assert shown() == before
    decide(access=ben, sample_id=sample.pk, action="approve", comment=MARK)
    assert read(client, "/notifications", headers)["data"] == []
    assert shown() == before  # disputed, which would tell Ben what Ada decided
    for query in ("disputed=true", "independent=true", f"decided_by={ada.user.username}"):
        assert client.get(f"/api/v1/projects/billing/samples?{query}", headers=headers).status_code == 403
    for path in ("disputes", "agreement"):
        assert client.get(f"/api/v1/projects/billing/{path}", headers=headers).status_code == 403
        assert client.get(f"/p/billing/samples/{path}/").status_code == 403
    keep = Decision.objects.filter(reviewer=ada.user).get().pk
    answer = client.post(f"/p/billing/samples/{sample.pk}/adjudicate/", {"keep": keep, "action": "reject"})
    assert answer.status_code == 403 and now(sample).status == SampleStatus.PENDING
    decide(access=reviewer_of(project, Role.CURATOR), sample_id=sample.pk, action="reject")
    assert len(read(client, f"/samples/{sample.pk}/decisions", headers)["data"]) == 3


def test_a_curator_sees_every_decision_adjudicates_on_the_page_and_the_log_says_that_they_looked(
    client: Client, project: Project
) -> None:
    ada, ben = reviewer_of(project), reviewer_of(project)
    sample = judged(project)
    decide(access=ada, sample_id=sample.pk, action="approve", comment=MARK)
    rejected = decide(access=ben, sample_id=sample.pk, action="reject")
    curator = make_member(project, role=Role.CURATOR)
    client.force_login(curator)
    page = client.get("/p/billing/samples/disputes/").content.decode()
    assert MARK in page and "Keep this one" in page
    assert f"<pre>{escape(sample.duel.challenger.text.text)}</pre>" in page
    assert Unblinding.objects.filter(user=curator, sample=sample).exists()
    assert AuditEntry.objects.filter(action="sample.look", actor=curator).count() == 1
    rows = read(client, "/projects/billing/disputes", make_bearer(curator))["data"]
    assert [(row["sample"], len(row["decisions"])) for row in rows] == [(str(sample.pk), 2)]
    assert read(client, "/projects/billing/decisions", make_bearer(curator), waits="true")["data"][0]["waits"]
    listed = read(client, "/projects/billing/samples", make_bearer(curator), disputed="true")["data"]
    assert [row["id"] for row in listed] == [str(sample.pk)]
    answer = client.post(f"/p/billing/samples/{sample.pk}/adjudicate/", {"keep": rejected.pk, "action": "reject"})
    assert answer.status_code == 302 and now(sample).status == "rejected"
    assert "No disputed samples" in client.get("/p/billing/samples/disputes/").content.decode()


def test_the_labels_of_the_decision_to_keep_serve_who_adjudicates(client: Client, project: Project) -> None:
    ada, ben, curator = reviewer_of(project), reviewer_of(project), reviewer_of(project, Role.CURATOR)
    question = Question.objects.create(project=project, name="error", title="Error?", choices=["a"], required=True)
    kept = []
    for how in ("page", "rest", "unanswered"):
        sample = judged(project)
        save_labels(access=ada, sample_id=sample.pk, given={"error": "a"})
        kept.append(decide(access=ada, sample_id=sample.pk, action="approve", preference="king"))
        decide(access=ben, sample_id=sample.pk, action="reject")
        if how == "unanswered":  # as where the question is required since
            save_labels(access=ada, sample_id=sample.pk, given={"error": None})
    client.force_login(curator.user)
    page = f"/p/billing/samples/{kept[0].sample_id}/adjudicate/"
    assert client.post(page, {"keep": kept[0].pk, "action": "approve"}).status_code == 302
    headers = make_bearer(curator.user)
    for row, status in ((kept[1], 201), (kept[2], 422)):
        body = {"action": "approve", "keep": str(row.pk)}
        address = f"/api/v1/samples/{row.sample_id}/decisions"
        assert client.post(address, body, "application/json", headers=headers).status_code == status
    assert [now(row.sample).status for row in kept] == ["approved", "approved", "pending"]
    assert question.required
