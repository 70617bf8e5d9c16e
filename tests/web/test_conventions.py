"""What holds for every REST call: problems, credentials, CSRF, the rate limit, idempotency keys."""

import threading

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from curation.projects.models import AuditEntry, Project
from curation.runs.tasks import reap
from curation.web.http.idempotency import STORED_FOR
from curation.web.models import IdempotentResponse
from tests.factories import make_bearer, make_project, make_user

JSON = "application/json"
PATH = "/api/v1/projects"
MEMBERS = {"type", "title", "status", "detail", "code", "errors", "request_id"}


@pytest.mark.django_db
class TestProblems:
    @pytest.mark.parametrize(
        ("method", "path", "body", "status"),
        [
            ("GET", f"{PATH}?colour=red", None, 400),
            ("GET", f"{PATH}?limit=501", None, 400),
            ("GET", f"{PATH}?limit=many", None, 400),
            ("GET", f"{PATH}?cursor=nonsense", None, 400),
            ("GET", f"{PATH}?sort=colour", None, 400),
            ("GET", f"{PATH}/none", None, 404),
            ("GET", f"{PATH}/no%00ne", None, 400),
            ("GET", f"{PATH}?sort=%00", None, 400),
            ("POST", PATH, {"slug": "A"}, 422),
        ],
    )
    def test_every_refusal_has_one_shape(
        self, client: Client, method: str, path: str, body: dict[str, str] | None, status: int
    ) -> None:
        answer = client.generic(
            method, path, b"" if body is None else b'{"slug": "A"}', content_type=JSON, headers=make_bearer(make_user())
        )
        assert answer.status_code == status
        assert answer["Content-Type"] == "application/problem+json"
        problem = answer.json()
        assert set(problem) == MEMBERS
        assert problem["status"] == status
        assert problem["request_id"] == answer["X-Request-Id"]
        assert all(set(error) == {"path", "message"} for error in problem["errors"])

    def test_a_body_that_is_no_json_is_a_problem(self, client: Client) -> None:
        answer = client.post(PATH, b"{broken", content_type=JSON, headers=make_bearer(make_user()))
        assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")

    @pytest.mark.parametrize("body", [b'{"slug": "a", "name": "a\\u0000b"}', b'{"slug": "a\\u0000", "name": "b"}'])
    def test_a_nul_character_is_refused_with_its_field(self, client: Client, body: bytes) -> None:
        answer = client.post(PATH, body, content_type=JSON, headers=make_bearer(make_user()))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["message"].endswith("contains a NUL character")
        assert not Project.objects.exists()

    def test_a_page_tells_the_same_in_words(self, client: Client) -> None:
        client.force_login(make_user())
        answer = client.get("/p/none/settings/")
        assert answer.status_code == 404
        assert "no project" in answer.content.decode()

    def test_a_fragment_is_answered_with_plain_words(self, client: Client) -> None:
        client.force_login(make_user())
        answer = client.get("/p/none/settings/", headers={"HX-Request": "true"})
        assert (answer.status_code, answer["Content-Type"]) == (404, "text/plain; charset=utf-8")


@pytest.mark.django_db
class TestCredentials:
    @pytest.mark.parametrize("value", ["", "Bearer", "Bearer wn_wrong", "Basic YTpi", "wn_x"])
    def test_a_wrong_one_is_401(self, client: Client, value: str) -> None:
        answer = client.get(PATH, headers={"Authorization": value})
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
        assert answer.json()["code"] == "not_authenticated"

    def test_the_sessions_cookie_works_with_csrf_only(self) -> None:
        client = Client(enforce_csrf_checks=True)
        client.force_login(make_user())
        assert client.get(PATH).status_code == 200
        body = {"slug": "shell", "name": "Shell"}
        refused = client.post(PATH, body, content_type=JSON)
        assert refused.status_code == 403
        assert refused["Content-Type"] == "application/problem+json"
        assert not Project.objects.exists()
        client.get("/projects/new/")
        token = client.cookies["csrftoken"].value
        accepted = client.post(PATH, body, content_type=JSON, headers={"X-CSRFToken": token})
        assert accepted.status_code == 201

    def test_a_token_needs_no_csrf(self) -> None:
        client = Client(enforce_csrf_checks=True)
        body = {"slug": "shell", "name": "Shell"}
        answer = client.post(PATH, body, content_type=JSON, headers=make_bearer(make_user()))
        assert answer.status_code == 201

    def test_pages_refuse_a_form_without_its_token(self) -> None:
        client = Client(enforce_csrf_checks=True)
        client.force_login(make_user())
        assert client.post("/projects/new/", {"name": "Shell", "slug": "shell"}).status_code == 403
        assert not Project.objects.exists()


@pytest.mark.django_db
class TestRateLimit:
    def test_counts_down_and_then_says_when_to_come_back(self, client: Client, settings: Settings) -> None:
        settings.API_REQUESTS_PER_MINUTE = 3
        cache.clear()
        headers = make_bearer(make_user())
        answers = [client.get(PATH, headers=headers) for _ in range(5)]
        # The window may turn over between two requests, which restarts the count.
        limited = [answer for answer in answers if answer.status_code == 429]
        assert limited
        assert limited[0].json()["code"] == "too_many_requests"
        assert 0 < int(limited[0]["Retry-After"]) <= 60
        assert limited[0]["RateLimit-Remaining"] == "0"
        assert (answers[0]["RateLimit-Limit"], answers[0]["RateLimit-Remaining"]) == ("3", "2")

    def test_each_credential_has_its_own_count(self, client: Client, settings: Settings) -> None:
        settings.API_REQUESTS_PER_MINUTE = 1
        cache.clear()
        statuses = [client.get(PATH, headers=make_bearer(make_user())).status_code for _ in range(3)]
        assert statuses == [200, 200, 200]


@pytest.mark.django_db
class TestIdempotency:
    def test_the_same_request_is_answered_from_the_record(self, client: Client) -> None:
        headers = {**make_bearer(make_user()), "Idempotency-Key": "k1"}
        body = {"slug": "shell", "name": "Shell"}
        first = client.post(PATH, body, content_type=JSON, headers=headers)
        again = client.post(PATH, body, content_type=JSON, headers=headers)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again["Location"] == first["Location"]
        assert again["Idempotent-Replayed"] == "true"
        assert Project.objects.count() == 1
        assert AuditEntry.objects.filter(action="project.create").count() == 1

    def test_another_body_with_the_key_is_a_conflict(self, client: Client) -> None:
        headers = {**make_bearer(make_user()), "Idempotency-Key": "k1"}
        client.post(PATH, {"slug": "one", "name": "One"}, content_type=JSON, headers=headers)
        answer = client.post(PATH, {"slug": "two", "name": "Two"}, content_type=JSON, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_reused")
        assert not Project.objects.filter(slug="two").exists()

    def test_keys_of_two_callers_do_not_meet(self, client: Client) -> None:
        for slug in ("one", "two"):
            headers = {**make_bearer(make_user()), "Idempotency-Key": "k1"}
            answer = client.post(PATH, {"slug": slug, "name": slug}, content_type=JSON, headers=headers)
            assert answer.status_code == 201

    def test_a_refused_request_may_be_sent_again_corrected(self, client: Client) -> None:
        headers = {**make_bearer(make_user()), "Idempotency-Key": "k1"}
        assert client.post(PATH, {"slug": "A", "name": "x"}, content_type=JSON, headers=headers).status_code == 422
        assert not IdempotentResponse.objects.exists()
        assert client.post(PATH, {"slug": "a", "name": "x"}, content_type=JSON, headers=headers).status_code == 201

    def test_the_reaper_deletes_responses_after_a_day(self, client: Client) -> None:
        bearer = make_bearer(make_user())
        for slug in ("one", "two"):
            headers = {**bearer, "Idempotency-Key": slug}
            client.post(PATH, {"slug": slug, "name": slug}, content_type=JSON, headers=headers)
        IdempotentResponse.objects.filter(key="one").update(created_at=timezone.now() - STORED_FOR)
        reap()
        assert list(IdempotentResponse.objects.values_list("key", flat=True)) == ["two"]

    @pytest.mark.parametrize("key", ["", "x" * 256])
    def test_a_key_must_have_a_sensible_length(self, client: Client, key: str) -> None:
        headers = {**make_bearer(make_user()), "Idempotency-Key": key}
        answer = client.post(PATH, {"slug": "a", "name": "x"}, content_type=JSON, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_idempotency_key")


@pytest.mark.django_db(transaction=True)
def test_eight_equal_requests_at_once_write_one_row() -> None:
    owner = make_user()
    make_project("other", user=owner)
    headers = {**make_bearer(owner), "Idempotency-Key": "k1"}
    answers: list[tuple[int, bytes]] = []
    start = threading.Barrier(8)

    def send() -> None:
        start.wait()
        try:
            answer = Client().post(PATH, {"slug": "shell", "name": "Shell"}, content_type=JSON, headers=headers)
            answers.append((answer.status_code, answer.content))
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {status for status, _ in answers} == {201}
    assert len(answers) == 8
    assert len({body for _, body in answers}) == 1
    assert Project.objects.filter(slug="shell").count() == 1
    assert AuditEntry.objects.filter(action="project.create").count() == 1
