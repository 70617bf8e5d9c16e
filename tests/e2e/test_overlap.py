"""Two reviewers and an adjudicator in real Chromium: blind until both have decided, then disputes and agreement."""

import krippendorff
import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from curation.projects.models import Role
from curation.review.decisions.decide import decide
from curation.review.models import Lease
from curation.samples.models import Sample
from tests.e2e.conftest import tab_of
from tests.factories import make_bearer, make_duel, make_member, make_project, make_user
from tests.review.rows import access_of, sample_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# Each person's decisions on twelve samples: "a" approves the king, "x" rejects. The first eight are decided beforehand.
ADA, BEN, BEFORE = "aaaaaxxxaxax", "aaaaxxxxaxxa", 8


def kappa(one: str, two: str) -> float:
    """Cohen's κ as one less the observed disagreement over that of chance: Cohen, "Weighted kappa", Psychological
    Bulletin 70 (1968), with all disagreements weighing the same."""
    table = np.zeros((2, 2))
    for pair in zip(one, two, strict=True):
        table["ax".index(pair[0]), "ax".index(pair[1])] += 1
    by_chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    apart = ~np.eye(2, dtype=bool)
    return float(1 - table[apart].sum() / by_chance[apart].sum())


def review(tab: Page, samples: list[Sample], actions: str) -> None:
    """Decide the whole queue by keys."""
    tab.goto("/p/billing/queue/")
    for sample, action in zip(samples, actions, strict=True):
        expect(tab.locator("#review")).to_have_attribute("data-sample", str(sample.pk))
        expect(tab.locator('[aria-busy="true"]')).to_have_count(0)
        pick = "2" if Lease.objects.get(sample=sample).swapped else "1"
        for key in (pick, "a") if action == "a" else ("x", "1"):
            tab.keyboard.press(key)
    expect(tab.locator("#review[data-sample]")).to_have_count(0)


@pytest.mark.slow
def test_two_decide_blind_a_curator_adjudicates_and_agreement_is_that_of_the_libraries(
    browser: Browser, live_server: LiveServer
) -> None:
    project = make_project("billing", name="Billing", settings_json={"review": {"overlap": 2}})
    ada, ben = (make_member(project, make_user(name)) for name in ("adaline", "ben"))
    curator = make_member(project, make_user("cleo"), role=Role.CURATOR)
    samples = [sample_of(make_duel(project, priority=float(n))) for n in range(len(ADA))]
    for user, actions in ((ada, ADA), (ben, BEN)):
        for sample, action in zip(samples[:BEFORE], actions, strict=False):
            word, pick = ("approve", "king") if action == "a" else ("reject", "")
            decide(access=access_of(user, project), sample_id=sample.pk, action=word, preference=pick)
    ours = samples[BEFORE:]

    with tab_of(browser, live_server, ada) as tab:
        review(tab, ours, ADA[BEFORE:])
    with tab_of(browser, live_server, ben) as tab:
        tab.goto("/p/billing/queue/")
        expect(tab.locator("#review")).to_have_attribute("data-sample", str(ours[0].pk))
        # She is named only as somebody to ask for a second opinion.
        expect(tab.locator("//*[not(self::option)][text()[contains(., 'adaline')]]")).to_have_count(0)
        listed = tab.request.get(f"/api/v1/samples/{ours[0].pk}/decisions", headers=make_bearer(ben))
        assert listed.ok and listed.json()["data"] == []
        review(tab, ours, BEN[BEFORE:])

    apart = [sample for sample, one, two in zip(samples, ADA, BEN, strict=True) if one != two]
    with tab_of(browser, live_server, curator) as tab:
        tab.goto("/p/billing/samples/disputes/")
        disputes = tab.locator('section[id^="dispute-"]')
        expect(disputes).to_have_count(len(apart))
        row = tab.locator(f"#dispute-{apart[-1].pk}").get_by_role("row").filter(has_text="adaline")
        row.get_by_role("button", name="Keep this one").click()
        expect(disputes).to_have_count(len(apart) - 1)
        tab.goto("/p/billing/samples/agreement/")
        codes = [["ax".index(action) for action in actions] for actions in (ADA, BEN)]
        alpha = krippendorff.alpha(reliability_data=codes, level_of_measurement="nominal")
        rows = tab.locator("#agreement-outcome").get_by_role("row")
        same = str(len(ADA) - len(apart))
        for words, value in (("adaline and ben", f"κ {kappa(ADA, BEN):.2f}"), ("all", f"α {alpha:.2f}")):
            expect(rows.filter(has_text=words).filter(has_text=value).filter(has_text=same)).not_to_have_count(0)
    statuses = ["approved" if one == "a" else "rejected" for one in ADA]
    for number, sample in enumerate(samples):
        open_still = sample in apart[:-1]
        assert Sample.objects.get(pk=sample.pk).status == ("pending" if open_still else statuses[number])
