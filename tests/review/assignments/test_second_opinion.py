"""A second person decides a sample without seeing the first decision."""

import re

import pytest
from django.test import Client

from curation.assignments.models import Assignment
from curation.exports.recipes.recipe import read_recipe
from curation.notifications.models import Notification
from curation.projects.access import Access
from curation.projects.models import AuditEntry, Project, Role
from curation.review.agreement.figures import units_of
from curation.review.assignments.second_opinion import ask_second_opinion
from curation.review.decisions.decide import decide
from curation.review.decisions.revise import revise
from curation.review.decisions.undo import undo
from curation.review.decisions.withdraw_assignment import withdraw_assignment
from curation.review.models import Decision, Lease, Pick
from curation.review.queue.lease import hold
from curation.review.queue.next import lease_next
from curation.samples.models import Sample
from curation.web.problems import Conflict, Invalid, NotAllowed
from tests.factories import make_bearer
from tests.review.rows import judged, outcome_of, reviewer_of, show_all, taken_by

pytestmark = pytest.mark.django_db
TEXT = "THOUGHT: I read the file.\n\n```bash\nsed -n 1,40p billing/totals.py\n```"


def now(sample: Sample) -> Sample:
    return Sample.objects.get(pk=sample.pk)


def ask(access: Access, sample: Sample, whom: Access | None = None) -> None:
    ask_second_opinion(access=access, sample_id=sample.pk, username=whom.user.username if whom else "")


def test_a_decided_sample_waits_again_and_equal_decisions_settle_it(project: Project, client: Client) -> None:
    show_all(project)
    ana, ben, eve = (reviewer_of(project) for _ in range(3))
    sample = judged(project)
    revise(access=ana, sample_id=sample.pk, text=TEXT)
    decide(access=ana, sample_id=sample.pk, action="approve", comment="remark-of-ana", version=now(sample).version)
    ask(ana, sample, ben)
    assert (now(sample).status, now(sample).opinions, now(sample).decided_by) == ("pending", 2, None)
    assert not read_recipe({"formats": ["sft-messages"], "filter": {"status": "approved"}}).samples(project).exists()
    assert Notification.objects.get(user=ben.user).text.endswith(
        f"asked you for a second opinion on sample {sample.pk}"
    )
    for person in (ben, eve):
        for part in ("", "/decisions", "/revisions"):
            seen = client.get(f"/api/v1/samples/{sample.pk}{part}", headers=make_bearer(person.user)).content.decode()
            assert "remark-of-ana" not in seen and "sed -n 1,40p" not in seen
    assert lease_next(access=eve) is None and lease_next(access=ana) is None and taken_by(ben).sample.pk == sample.pk
    revise(access=ben, sample_id=sample.pk, text=TEXT)
    decide(access=ben, sample_id=sample.pk, action="approve", preference="challenger")
    assert now(sample).status == "approved" and outcome_of(now(sample)).chosen_text == TEXT
    assert [len(unit.opinions) for unit in units_of(project)] == [2]
    assert AuditEntry.objects.get(action="sample.second_opinion").data["person"] == ben.user.username


def test_different_decisions_are_adjudicated(project: Project) -> None:
    ana, ben, carl = reviewer_of(project), reviewer_of(project), reviewer_of(project, Role.CURATOR)
    sample = judged(project)
    decide(access=ana, sample_id=sample.pk, action="reject")
    ask(carl, sample)
    assert taken_by(ben).sample.pk == sample.pk
    decide(access=ben, sample_id=sample.pk, action="approve", preference="king")
    assert now(sample).disputed
    with pytest.raises(Conflict, match="A curator settles it"):
        ask(carl, sample, ben)
    decide(access=carl, sample_id=sample.pk, action="reject")
    assert (now(sample).status, now(sample).opinions) == ("rejected", 0)


def test_who_asks_before_deciding_decides_too_and_anybody_else_does_not(project: Project) -> None:
    ana, ben = reviewer_of(project), reviewer_of(project)
    sample, version = judged(project), 1
    ask(ana, sample, ben)
    assert (now(sample).opinions, now(sample).version) == (2, version)
    decide(access=ana, sample_id=sample.pk, action="reject")
    assert now(sample).status == "pending" and lease_next(access=reviewer_of(project)) is None
    undo(access=ana)
    assert now(sample).opinions == 2  # the request stays
    decide(access=ana, sample_id=sample.pk, action="reject")
    decide(access=ben, sample_id=sample.pk, action="reject")
    assert now(sample).status == "rejected"


def test_refusals_say_what_is_wrong_and_tell_of_no_decision(project: Project) -> None:
    ana, ben, eve = (reviewer_of(project) for _ in range(3))
    sample = judged(project)
    with pytest.raises(Invalid, match="somebody else"):
        ask(ana, sample, ana)
    decide(access=ana, sample_id=sample.pk, action="reject")
    with pytest.raises(NotAllowed, match="or a curator"):
        ask(eve, sample, ben)
    with pytest.raises(Invalid, match="has decided"):
        ask(reviewer_of(project, Role.CURATOR), sample, ana)
    ask(ana, sample)
    ask(ben, sample, ana)  # Ana's decision waits: nobody may learn of it
    decide(access=ben, sample_id=sample.pk, action="reject")
    with pytest.raises(Conflict, match="not settled by one person"):
        ask(ben, sample, eve)


def test_a_reviewer_is_not_told_that_others_disagree(client: Client, project: Project) -> None:
    ana, ben, eve = (reviewer_of(project) for _ in range(3))
    waiting, disputed = judged(project), judged(project)
    for sample in (waiting, disputed):
        ask(ana, sample)
        decide(access=ana, sample_id=sample.pk, action="reject")
    decide(access=ben, sample_id=disputed.pk, action="approve", preference="king")
    assert now(disputed).disputed
    for person in (eve, ana):
        client.force_login(person.user)
        answers, folds = [], []
        for sample in (waiting, disputed):
            folds.append("<summary>Second opinion</summary>" in page_of(client, sample))
            answer = client.post(
                f"/api/v1/samples/{sample.pk}/second-opinion",
                content_type="application/json",
                headers=make_bearer(person.user),
            )
            answers.append((answer.status_code, {**answer.json(), "sample": "", "assignment": ""}))
        assert answers[0] == answers[1] and answers[0][0] == 201
        assert folds == [True, True]
        Lease.objects.all().delete()
    assert now(disputed).disputed, "a curator settles it as before"


def page_of(client: Client, sample: Sample) -> str:
    return client.post(f"/p/billing/samples/{sample.pk}/").content.decode()


def withdraw(project: Project, by: Access) -> None:
    for assignment in Assignment.objects.filter(project=project, second_opinion=True):
        withdraw_assignment(access=by, assignment=assignment)


def test_withdrawn_the_decision_that_waited_settles_its_sample_again(project: Project) -> None:
    ana, ben, carl = reviewer_of(project), reviewer_of(project), reviewer_of(project, Role.CURATOR)
    sample = judged(project)
    revise(access=ana, sample_id=sample.pk, text=TEXT)
    decide(access=ana, sample_id=sample.pk, action="approve", preference="challenger")
    ask(ana, sample, ben)
    before = now(sample).version

    withdraw(project, carl)

    found = now(sample)
    assert (found.status, found.decided_by, found.opinions) == ("approved", ana.user, 0)
    assert found.version > before and outcome_of(found).chosen_text == TEXT
    assert outcome_of(found).as_approved and outcome_of(found).reviewers == (ana.user.username,)
    undo(access=ana)
    assert (now(sample).status, now(sample).opinions) == ("pending", 0), "one person decides it again"
    decide(access=ben, sample_id=sample.pk, action="reject")
    assert now(sample).status == "rejected"


def test_withdrawn_before_anybody_decided_one_person_decides_as_before(project: Project) -> None:
    ana, ben, carl = reviewer_of(project), reviewer_of(project), reviewer_of(project, Role.CURATOR)
    asked, written = judged(project), judged(project)
    ask(ana, asked, ben)
    ask(ana, written, ben)
    revise(access=ben, sample_id=written.pk, text=TEXT)  # only Ben sees it
    withdraw(project, carl)
    assert now(asked).opinions == 0
    for sample in (asked, written):
        decide(access=ben, sample_id=sample.pk, action="approve", preference="challenger")
        assert now(sample).status == "approved"
    assert outcome_of(now(written)).chosen_text == TEXT and outcome_of(now(written)).as_approved


def test_withdrawn_where_two_disagree_a_curator_still_settles_it(project: Project) -> None:
    ana, ben, carl = reviewer_of(project), reviewer_of(project), reviewer_of(project, Role.CURATOR)
    sample = judged(project)
    ask(ana, sample, ben)
    decide(access=ana, sample_id=sample.pk, action="reject")
    decide(access=ben, sample_id=sample.pk, action="approve", preference="king")
    withdraw(project, carl)
    assert (now(sample).status, now(sample).disputed) == ("pending", True)


def test_where_the_project_wants_two_people_one_decision_does_not_suffice(project: Project) -> None:
    project.settings_json = {"review": {"overlap": 2}}
    project.save()
    ana, ben, carl = reviewer_of(project), reviewer_of(project), reviewer_of(project, Role.CURATOR)
    sample = judged(project)
    ask(ana, sample, ben)
    decide(access=ana, sample_id=sample.pk, action="reject")
    withdraw(project, carl)
    assert (now(sample).status, now(sample).opinions) == ("pending", 2)


def test_rest_asks(client: Client, project: Project) -> None:
    ana, ben = reviewer_of(project), reviewer_of(project)
    sample = judged(project)
    address, headers = f"/api/v1/samples/{sample.pk}/second-opinion", make_bearer(ana.user)
    answer = client.post(address, {"username": ben.user.username}, "application/json", headers=headers)
    assert answer.status_code == 201 and answer.json()["username"] == ben.user.username
    again = client.post(address, {"username": ben.user.username}, "application/json", headers=headers)
    assert again.json()["assignment"] == answer.json()["assignment"]
    withdrawal = f"/api/v1/assignments/{answer.json()['assignment']}"
    assert client.delete(withdrawal, headers=make_bearer(ben.user)).status_code == 403
    carl = reviewer_of(project, Role.CURATOR)
    assert client.delete(withdrawal, headers=make_bearer(carl.user)).status_code == 204
    assert now(sample).opinions == 0
    assert client.post(address, {"username": "nobody"}, "application/json", headers=headers).status_code == 422


def test_who_asked_withdraws_the_request(client: Client, project: Project) -> None:
    ana, ben = reviewer_of(project), reviewer_of(project)
    sample = judged(project)
    decide(access=ana, sample_id=sample.pk, action="reject")
    address, headers = f"/api/v1/samples/{sample.pk}/second-opinion", make_bearer(ana.user)
    made = client.post(address, {"username": ben.user.username}, "application/json", headers=headers).json()
    assert now(sample).status == "pending"
    assert client.delete(f"/api/v1/assignments/{made['assignment']}", headers=headers).status_code == 204
    assert (now(sample).status, now(sample).decided_by, now(sample).opinions) == ("rejected", ana.user, 0)


def test_the_page_of_a_sample_withdraws_ones_own_request(client: Client, project: Project) -> None:
    ana, ben = reviewer_of(project), reviewer_of(project)
    sample, other = judged(project), judged(project)
    ask(ana, sample, ben)
    ask(ben, other)
    client.force_login(ana.user)
    page = page_of(client, sample)
    found = re.search(r'action="(/p/billing/samples/\d+/second-opinion/\d+/withdraw/)"', page)
    assert found and f"Second opinion asked of {ben.user.username}" in page
    client.force_login(ben.user)
    Lease.objects.all().delete()
    assert "asked of" not in page_of(client, sample), "only who asked may withdraw"
    assert client.post(found[1]).status_code == 403 and now(sample).opinions == 2
    client.force_login(ana.user)
    Lease.objects.all().delete()
    answer = client.post(found[1], {"queue": ""})
    assert answer["Location"] == "/p/billing/queue/" and now(sample).opinions == 0
    assert "asked of" not in page_of(client, sample)
    theirs = Assignment.objects.get(created_by=ben.user)
    assert client.post(f"/p/billing/samples/{other.pk}/second-opinion/{theirs.pk}/withdraw/").status_code == 403
    assert client.post(f"/p/billing/samples/{sample.pk}/second-opinion/{theirs.pk}/withdraw/").status_code == 404


@pytest.mark.parametrize("blind", [True, False])
def test_a_decision_that_waits_says_which_side_was_approved(client: Client, project: Project, blind: bool) -> None:
    if not blind:
        show_all(project)
    ana, ben = reviewer_of(project), reviewer_of(project)
    client.force_login(ana.user)
    for preference in ("left", "right"):
        sample = judged(project)
        ask(ana, sample, ben)
        lease = hold(access=ana, sample_id=sample.pk)
        decide(access=ana, sample_id=sample.pk, action="approve", preference=preference)
        kept = Pick.KING if lease.swapped == (preference == "right") else Pick.CHALLENGER
        page = " ".join(page_of(client, sample).split())
        assert Decision.objects.get(sample=sample).pick == kept
        assert f"You approved {preference}; others decide too." in page
    rejected = judged(project)
    ask(ana, rejected, ben)
    decide(access=ana, sample_id=rejected.pk, action="reject")
    assert "You rejected it; others decide too." in page_of(client, rejected)
