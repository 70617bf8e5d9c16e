"""The samples page: its content, the targets of its links, and its refusals."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from curation.projects.models import AuditEntry, Project, Role
from curation.review.models import Lease
from curation.samples.list.filters import SampleList
from curation.samples.models import Flag, Sample, SavedView
from tests.factories import make_bearer, make_member, make_project, make_sample, make_user

pytestmark = pytest.mark.django_db


def sign_in(client: Client, project: Project, role: str = Role.CURATOR) -> Client:
    client.force_login(make_member(project, role=role))
    return client


def shown(html: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'<tr data-row id="sample-(\d+)"', html)]


def get(client: Client, path: str = "", status: int = 200, **headers: str) -> str:
    response = client.get(path if path.startswith("/") else f"/p/acme/samples/{path}", headers=headers)
    assert response.status_code == status, response.content
    return response.content.decode()


def link(html: str, rel: str) -> str | None:
    found = re.search(rf'rel="{rel}" href="([^"]+)"', html)
    return unescape(found[1]) if found else None


class TestList:
    def test_what_a_filter_lists_is_reviewed_and_nothing_else(self, client: Client, project: Project) -> None:
        sign_in(client, project)
        chosen = make_sample(project, repo="acme/mill")
        for n in range(3):
            make_sample(project, repo="other/mill", priority=float(n))
        (link,) = re.findall(r'href="([^"]+)"[^>]*>Review these<', get(client, "?repo=acme/mill"))
        assert link == "/p/acme/queue/?repo=acme/mill"
        first = client.post(link, follow=True).content.decode()
        assert f'data-sample="{chosen.pk}"' in first and 'title="repository acme/mill"' in first
        assert client.post("/p/acme/queue/ahead/?repo=acme/mill&view=terminal").status_code == 204
        assert "Review these" not in get(client)

    def test_a_row_says_who_else_has_the_sample_open(self, client: Client, ada: User, project: Project) -> None:
        free, held, mine, lapsed = (make_sample(project) for _ in range(4))
        me = make_member(project)
        soon = timezone.now() + timedelta(minutes=5)
        for sample, user, until in ((held, ada, soon), (mine, me, soon), (lapsed, ada, timezone.now())):
            Lease.objects.create(sample=sample, reviewer=user, swapped=False, until=until)
        client.force_login(me)
        rows = dict(re.findall(r'<tr data-row id="sample-(\d+)">(.*?)</tr>', get(client), re.DOTALL))
        assert [pk for pk, row in rows.items() if "in review by" in row] == [str(held.pk)]
        assert "in review by ada" in rows[str(held.pk)]
        answer = client.get("/api/v1/projects/acme/samples?sort=id", headers=make_bearer(me)).json()
        assert [row["in_review_by"] for row in answer["data"]] == [None, "ada", me.username, None]

    def test_a_row_shows_what_a_reviewer_looks_for(self, client: Client, ada: User, project: Project) -> None:
        sample = make_sample(
            project, score=79.2, flags=Flag.LEAK | Flag.FLIP, status="approved", decided_by=ada, repo="acme/billing",
            source="turns.jsonl", instance_id="acme-7", action_style="read", preview="Fix the <b>totals</b>",
        )  # fmt: skip
        make_sample(make_project())
        html = get(sign_in(client, project))
        assert shown(html) == [sample.pk]
        for text in (
            *("79.2", "refined", "Approved", "leak", "flip", "acme/billing", "turns.jsonl", "acme-7", "read", "ada"),
            *(
                "Fix the &lt;b&gt;totals&lt;/b&gt;",
                f"/p/acme/samples/{sample.pk}/",
                f"/p/acme/samples/{sample.pk}/panel/",
            ),
        ):
            assert text in html
        assert "<b>totals" not in html

    def test_the_page_names_its_call(self, client: Client, project: Project) -> None:
        html = get(sign_in(client, project), "?bucket=refined&sort=-score")
        assert "/api/v1/projects/acme/samples?bucket=refined&amp;sort=-score" in html

    def test_older_and_newer_meet_every_row_once(self, client: Client, project: Project) -> None:
        sign_in(client, project)
        made = [make_sample(project, score=float(n % 7)).pk for n in range(2 * SampleList().limit + 3)]
        for sort in ("-id", "score", "-created_at", "priority"):
            pages, url = [], f"/p/acme/samples/?sort={sort}"
            for _ in range(3):
                html = get(client, url)
                pages.append(shown(html))
                older = link(html, "next")
                url = older or url
            assert older is None
            assert sorted(sum(pages, [])) == made
            assert shown(get(client, link(html, "prev") or "")) == pages[1]
            first = get(client, link(get(client, link(html, "prev") or ""), "prev") or "")
            assert shown(first) == pages[0]
            assert link(first, "prev") is None

    def test_htmx_gets_the_list_alone_and_the_canonical_url(self, client: Client, project: Project) -> None:
        make_sample(project)
        response = sign_in(client, project).get(
            "/p/acme/samples/?bucket=refined&status=&text=&score_min=", headers={"HX-Request": "true"}
        )
        assert response.headers["HX-Push-Url"] == "/p/acme/samples/?bucket=refined"
        assert "HX-Request" in response.headers["Vary"]
        assert response.content.decode().lstrip().startswith('<div class="stack" id="samples"')

    def test_going_back_in_the_browser_gets_a_whole_page(self, client: Client, project: Project) -> None:
        sign_in(client, project)
        headers = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
        html = client.get("/p/acme/samples/", headers=headers).content.decode()
        assert html.startswith("<!doctype html>")

    def test_each_condition_can_be_removed(self, client: Client, project: Project) -> None:
        html = get(sign_in(client, project), "?bucket=final,refined&flags=leak&flags=flip")
        urls = [unescape(url) for url in re.findall(r'chip__remove" href="([^"]+)"', html)]
        assert urls == [
            "/p/acme/samples/?flags=leak&flags=flip",
            "/p/acme/samples/?bucket=final,refined&flags=flip",
            "/p/acme/samples/?bucket=final,refined&flags=leak",
        ]
        assert "Final or Refined" in html
        assert '<option value="final,refined" selected>' in html
        assert '<input type="hidden" name="flags" value="flip">' in html

    def test_empty_lists_say_what_to_do(self, client: Client, project: Project) -> None:
        sign_in(client, project)
        assert "No samples yet" in get(client)
        assert "No sample matches" in get(client, "?text=absent")

    def test_an_invalid_filter_is_explained_in_place(self, client: Client, project: Project) -> None:
        sign_in(client, project)
        html = get(client, "?score_min=500&repo=a/b", 400)
        assert "score_min" in html
        assert 'value="500"' in html
        assert 'value="a/b"' in html
        assert "The filter has an error" in get(client, "?bucket=purple", 422, **{"HX-Request": "true"})
        assert "The filter has an error" in get(client, "?sort=repo", 400)

    def test_count_is_asked_for_apart(self, client: Client, project: Project) -> None:
        for bucket in ("final", "final", "refined"):
            make_sample(project, bucket=bucket)
        sign_in(client, project)
        with CaptureQueriesContext(connection) as captured:
            get(client)
        samples = [q["sql"] for q in captured if 'FROM "samples_sample"' in q["sql"] and "LIMIT 51" in q["sql"]]
        assert len(samples) == 1
        assert "2 samples in total" in get(client, "/p/acme/samples/count/?bucket=final")

    def test_a_page_costs_the_same_queries_for_any_number_of_rows(self, client: Client, project: Project) -> None:
        sign_in(client, project)
        counts = []
        for _ in range(2):
            make_sample(project, decided_by=make_user())
            with CaptureQueriesContext(connection) as captured:
                get(client, "?bucket=refined")
            counts.append(len(captured))
            for _ in range(20):
                make_sample(project, decided_by=make_user())
        assert counts[0] == counts[1]

    def test_a_row_shows_every_text_as_text(self, client: Client, project: Project) -> None:
        hostile = "<i>\"'&"
        texts = {name: f"{name}{hostile}" for name in ("instance_id", "repo", "source", "action_style", "preview")}
        make_sample(project, decided_by=make_user(f"ada{hostile}"), **texts)
        html = get(sign_in(client, project))
        assert "<i>" not in html
        assert all(html.count(f"{text}&lt;i&gt;&quot;&#x27;&amp;") for text in (*texts, "ada"))


class TestBulkQuestion:
    def test_a_selection_is_named_and_counted(self, client: Client, project: Project) -> None:
        mine, other = make_sample(project), make_sample(make_project())
        html = get(
            sign_in(client, project), f"/p/acme/samples/bulk/confirm/?action=approve&ids={mine.pk}&ids={other.pk}&ids=x"
        )
        assert re.findall(r'name="ids" value="(\d+)"', html) == [str(mine.pk)]
        assert 'name="count" value="1"' in html
        assert 'action="/p/acme/samples/bulk/"' in html

    def test_all_that_match_are_counted_and_sent_as_a_filter(self, client: Client, project: Project) -> None:
        for bucket in ("final", "final", "refined"):
            make_sample(project, bucket=bucket)
        html = get(
            sign_in(client, project), "/p/acme/samples/bulk/confirm/?action=reject&all=1&bucket=final&text=totals"
        )
        assert 'name="all" value="1"' in html
        assert 'name="query" value="bucket=final&amp;text=totals"' in html
        assert 'name="count" value="2"' in html

    def test_no_action_is_offered_without_matches(self, client: Client, project: Project) -> None:
        html = get(sign_in(client, project), "/p/acme/samples/bulk/confirm/?action=reject&all=1&bucket=final")
        assert "<form" not in html

    def test_an_unknown_action_is_refused(self, client: Client, project: Project) -> None:
        response = sign_in(client, project).get(
            "/p/acme/samples/bulk/confirm/?action=burn", headers={"HX-Request": "true"}
        )
        assert response.status_code == 400


class TestSavedViews:
    def save(self, client: Client, name: str, query: str) -> int:
        response = client.post("/p/acme/samples/views/", {"name": name, "query": query}, headers={"HX-Request": "true"})
        return response.status_code

    def test_save_apply_delete(self, client: Client, project: Project) -> None:
        sign_in(client, project)
        assert self.save(client, " Leaky  finals ", "flags=leak&bucket=final&sort=-score&cursor=abc") == 302
        view = SavedView.objects.get()
        assert (view.name, view.query) == ("Leaky finals", "bucket=final&flags=leak&sort=-score")
        html = get(client, "?bucket=final&flags=leak&sort=-score")
        assert '<a href="/p/acme/samples/?bucket=final&amp;flags=leak&amp;sort=-score" aria-current="true">' in html
        assert client.post(f"/p/acme/samples/views/{view.pk}/delete/").status_code == 302
        assert not SavedView.objects.exists()
        assert list(AuditEntry.objects.order_by("id").values_list("action", "subject")) == [
            ("view.create", "Leaky finals"),
            ("view.delete", "Leaky finals"),
        ]

    @pytest.mark.parametrize(
        ("name", "address", "query"),
        [
            ("runs", "runs/", "state=failed"),
            ("calls", "calls/", "cost_unknown=true"),
            ("duels", "duels/", "bucket=final"),
            ("prompts", "prompts/", "has_record=true"),
            ("exclusions", "prompts/exclusions/", "limit=20"),
            ("scenarios", "scenarios/", "status=admitted"),
            ("trajectories", "trajectories/", "sort=-commands"),
            ("pairs", "pairs/", "limit=20"),
            ("exports", "exports/", "archived=true"),
            ("evaluations", "evaluations/", "archived=true"),
            ("splits", "evaluations/splits/", "archived=true"),
            ("flags", "samples/flags/", "state=resolved"),
            ("batches", "samples/batches/", "limit=20"),
            ("suggestions", "samples/suggestions/", "outcome=kept"),
            ("disputes", "samples/disputes/", "limit=20"),
            ("reigns", "duels/reigns/", "sort=id"),
            ("audit", "settings/audit/", "action=view.create"),
        ],
    )
    def test_every_list_has_views_of_its_own(
        self, client: Client, project: Project, name: str, address: str, query: str
    ) -> None:
        sign_in(client, project, Role.ADMIN)
        assert self.save(client, "Mine", "bucket=refined") == 302
        saved = client.post("/p/acme/samples/views/", {"name": "Mine", "query": f"?{query}&cursor=", "list": name})
        assert saved.headers["Location"] == f"/p/acme/{address}?{query}"
        page = client.get(saved.headers["Location"]).content.decode()
        assert f'<a href="/p/acme/{address}?{query}" aria-current="true">Mine</a>' in page
        assert "?bucket=refined" not in page.partition("<main")[2].partition("</header>")[0], "those of another list"
        assert f'name="list" value="{name}"' in page

    def test_a_list_that_does_not_exist_is_refused(self, client: Client, project: Project) -> None:
        sign_in(client, project)
        response = client.post("/p/acme/samples/views/", {"name": "A", "query": "", "list": "nosuch"})
        assert response.status_code == 422 and "The lists are audit, batches, calls" in response.content.decode()

    def test_a_view_needs_a_new_name_and_a_valid_filter(self, client: Client, project: Project) -> None:
        sign_in(client, project)
        assert self.save(client, "A", "bucket=final") == 302
        assert self.save(client, "A", "bucket=refined") == 422
        assert self.save(client, "B", "bucket=purple") == 422
        assert self.save(client, " ", "bucket=final") == 422
        assert SavedView.objects.count() == 1

    def test_another_reviewer_can_not_delete_it_but_a_curator_can(self, client: Client, project: Project) -> None:
        view = SavedView.objects.create(project=project, name="A", query="", created_by=make_user())
        url = f"/p/acme/samples/views/{view.pk}/delete/"
        reviewer = sign_in(client, project, Role.REVIEWER)
        assert reviewer.post(url, headers={"HX-Request": "true"}).status_code == 403
        assert SavedView.objects.exists()
        assert sign_in(client, project, Role.CURATOR).post(url).status_code == 302
        assert not SavedView.objects.exists()


def test_hostile_text_stays_text(client: Client, project: Project) -> None:
    make_sample(project, preview="<script>x</script>", repo='"><img src=x>', source="'", instance_id="{{ 7 }}")
    html = get(sign_in(client, project), "?text=%22%3E%3Cscript%3E&repo=%22%3E%3Cimg%20src=x%3E")
    assert "<script>x" not in html
    assert "<img" not in html
    assert Sample.objects.count() == 1
