"""A launch's refusals before it starts, and the next steps on a run's page at its end."""

import pytest
from django.test import Client

from curation.runs.kinds import kind_of
from curation.runs.launch import launch
from curation.runs.models import Run
from curation.samples.models import Sample
from curation.web.problems import Invalid
from tests.factories import make_duel, make_endpoint, make_project, make_prompt, make_run, make_user

pytestmark = pytest.mark.django_db


def test_a_filter_that_matches_nothing_is_refused_before_the_launch(client: Client) -> None:
    user = make_user()
    project = make_project(user=user)
    make_endpoint(project, "king-a")
    make_prompt(project, repo="acme/billing")
    client.force_login(user)
    form = {"model": "king-a", "samples": "1", "attempts": "3", "filter.repo": "nosuch"}
    page = client.post(f"/p/{project.slug}/runs/new/?kind=king", form)
    assert page.status_code == 422
    assert "Nothing matches this filter" in page.content.decode() and "nosuch" in page.content.decode()
    assert not Run.objects.exists()


def test_a_project_without_turns_says_what_comes_first() -> None:
    project = make_project()
    make_endpoint(project, "king-a")
    with pytest.raises(Invalid, match=r"nothing to work on yet\. Import turns first\."):
        launch(project=project, kind="king", params={"model": "king-a"}, user=None)


def test_a_run_that_succeeded_ends_with_its_next_step(client: Client) -> None:
    user = make_user()
    project = make_project(user=user)
    run = make_run(project, kind="judge", state="succeeded")
    for bucket in ("final", "defeat"):
        duel = make_duel(project, bucket=bucket, score=70.0)
        Sample.objects.filter(duel=duel).update(run=run)
    assert kind_of("judge").next_steps(run) == [("Review 2 samples", f"/p/{project.slug}/queue/?run={run.pk}")]
    client.force_login(user)
    page = client.get(f"/p/{project.slug}/runs/{run.pk}/").content.decode()
    assert f'<a class="btn btn--primary" href="/p/{project.slug}/queue/?run={run.pk}">Review 2 samples</a>' in page
    assert client.get(f"/p/{project.slug}/queue/?run={run.pk}").status_code == 200
