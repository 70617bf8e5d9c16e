"""The page: draw an audit, see what it proves, approve and withdraw."""

import pytest
from django.test import Client
from django.urls import reverse

from curation.guarantees.models import Audit, Guarantee
from curation.projects.models import Role
from tests.factories import make_member
from tests.review.guarantees.auditing import AUDIT, Caller

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(audited: object, reviewer: Caller) -> Client:
    client = Client()
    client.force_login(make_member(reviewer.project, role=Role.CURATOR))
    return client


def text(client: Client) -> str:
    answer = client.get(reverse("guarantee-page", args=["billing"]))
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_a_curator_draws_approves_and_withdraws(page: Client, reviewer: Caller) -> None:
    address = reverse("guarantee-page", args=["billing"])
    assert "40 pending samples" in text(page)
    assert page.post(address, {**AUDIT, "filter.repo": "acme/repo-1,acme/repo-2", "size": 30}).status_code == 422
    assert page.post(address, AUDIT).status_code == 302
    audit = Audit.objects.get()
    shown = text(page)
    assert "0 of 20, 0 agreed" in shown and "20 of 20 drawn samples wait for a look" in shown
    assert "Approve 20 under guarantee" not in shown
    reviewer.work_off()
    shown = text(page)
    assert "20 of 20, 20 agreed" in shown and "Approve 20 under guarantee" in shown
    assert "10 min 00 s, at 30 s per decision" in shown
    assert "approved unseen, %" in shown and '<th scope="row" class="num">20.0 %</th>' in shown
    page.post(reverse("audit-approve", args=["billing", audit.pk]), {"keep_alive": 0})
    guarantee = Guarantee.objects.get()
    shown = text(page)
    assert "With 90.0 % confidence, at most 20.0 % of these 20 samples would be rejected or changed" in shown
    assert f"?guarantee={guarantee.pk}" in shown and "Withdraw this guarantee?" in shown
    page.post(reverse("guarantee-withdraw", args=["billing", guarantee.pk]))
    assert "Withdrawn" in text(page) and "20 pending samples" in text(page)
    assert page.post(reverse("audit-approve", args=["billing", audit.pk]), {"keep_alive": 3}).status_code == 422


def test_the_page_is_for_curators(reviewer: Caller, page: Client) -> None:
    client = Client()
    client.force_login(reviewer.user)
    assert client.get(reverse("guarantee-page", args=["billing"])).status_code == 403
