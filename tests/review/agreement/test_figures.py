import krippendorff
import numpy as np
import pytest
from django.test import Client

from curation.projects.access import Access
from curation.projects.models import Project, Role
from curation.review.agreement.figures import figures_of, units_of
from curation.review.decisions.decide import decide
from curation.review.decisions.undo import undo
from curation.samples.models import Sample, Unblinding
from judging.statistics.judges.controls import cohens_kappa
from tests.factories import make_bearer, make_member, make_project
from tests.review.rows import judged, reviewer_of

pytestmark = pytest.mark.django_db
ONE = ["approve"] * 7 + ["reject"] * 5
TWO = ["approve"] * 5 + ["reject"] * 2 + ["reject"] * 4 + ["approve"]


@pytest.fixture
def project() -> Project:
    """Twelve samples that two people decided; they agree about nine."""
    project = make_project("billing", settings_json={"review": {"overlap": 2}})
    people = [reviewer_of(project), reviewer_of(project)]
    for number, actions in enumerate(zip(ONE, TWO, strict=True)):
        sample = judged(project, bucket="refined" if number < 11 else "final")
        for person, action in zip(people, actions, strict=True):
            decide(access=person, sample_id=sample.pk, action=action)
    return project


def test_figures_are_those_of_the_libraries_and_small_numbers_say_too_few(project: Project) -> None:
    figures = {(one.of, one.names, one.dimension): one for one in figures_of(project)}
    codes = np.array([[word == "reject" for word in words] for words in (ONE, TWO)], dtype=float)
    alpha = krippendorff.alpha(reliability_data=codes, level_of_measurement="nominal")
    everybody = figures["all", (), "outcome"]
    assert everybody.value == pytest.approx(alpha) and (everybody.n, everybody.same) == (12, 9)
    assert everybody.interval is not None and everybody.interval[0] < alpha < everybody.interval[1]
    pair = next(one for key, one in figures.items() if key[0] == "pair" and key[2] == "outcome")
    assert pair.value == pytest.approx(cohens_kappa(ONE, TWO).kappa)
    final = figures["bucket", ("final",), "outcome"]
    assert (final.n, final.value, final.too_few) == (1, None, True)


def test_every_figure_opens_its_samples(client: Client, project: Project) -> None:
    curator = make_member(project, role=Role.CURATOR)
    answer = client.get("/api/v1/projects/billing/agreement", headers=make_bearer(curator))
    rows = answer.json()["data"]
    # No filter tells where both approve.
    assert all(bool(row["query"]) != (row["dimension"] == "kept") for row in rows)
    counted = [row for row in rows if row["query"]]
    assert {row["of"] for row in counted} == {"all", "pair", "reviewer", "bucket"}
    for row in counted:
        listed = client.get(f"/api/v1/projects/billing/samples?count=true&{row['query']}", headers=make_bearer(curator))
        assert listed.json()["total"] == row["n"], row["query"]
    client.force_login(curator)
    page = client.get("/p/billing/samples/agreement/").content.decode()
    assert "too few" in page and "κ 0.50" in page


def test_the_decision_of_someone_who_looked_before_is_not_independent(client: Client, project: Project) -> None:
    curator, ada = reviewer_of(project, Role.CURATOR), reviewer_of(project)
    sample = judged(project)
    Unblinding.objects.create(sample=sample, user=curator.user)
    for person in (curator, ada):
        decide(access=person, sample_id=sample.pk, action="approve")
    assert max(one.n for one in figures_of(project)) == 12
    path = "/api/v1/projects/billing/samples?count=true&independent=true"
    assert client.get(path, headers=make_bearer(curator.user)).json()["total"] == 12


def test_a_mind_that_is_changed_after_the_answer_does_not_count() -> None:
    project = make_project(settings_json={"review": {"overlap": 2}})
    ada, ben, eve = (reviewer_of(project) for _ in range(3))
    disputed, settled, left = judged(project), judged(project), judged(project)

    def decided(access: Access, sample: Sample, *actions: str) -> None:
        for action in actions:
            if action == "undo":
                undo(access=access, sample_id=sample.pk)
            else:
                decide(access=access, sample_id=sample.pk, action=action)

    decided(ada, disputed, "reject")
    decided(ben, disputed, "refine", "undo", "reject")  # it waited, so Ada had decided otherwise
    decided(ada, settled, "reject")
    decided(ben, settled, "reject", "undo", "refine")
    decided(ada, left, "reject")
    decided(ben, left, "reject", "undo")
    decided(eve, left, "reject")  # she has seen the sample rejected
    found = {tuple((one.reviewer, one.action, one.pick) for one in unit.opinions) for unit in units_of(project)}
    one, two = ada.user.username, ben.user.username
    assert found == {
        ((one, "reject", ""), (two, "refine", "")),
        ((one, "reject", ""), (two, "reject", "")),
    }
