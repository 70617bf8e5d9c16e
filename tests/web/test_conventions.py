"""What holds for every REST call: problems, credentials, CSRF, the rate limit, idempotency keys."""

import threading
from itertools import product

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from curation.projects.models import AuditEntry, Project
from curation.runs.tasks import reap
from curation.web.http.idempotency import LEASE, STORED_FOR
from curation.web.models import IdempotentResponse
from curation.web.problems import NotFound
from tests.factories import make_bearer, make_project, make_user

JSON = "application/json"
PATH = "/api/v1/projects"
BODY = {"slug": "shell", "name": "Shell"}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MEMBERS = {"type", "title", "status", "detail", "code", "errors", "request_id"}


@pytest.mark.django_db
class TestProblems:
    @pytest.mark.parametrize(
        ("method", "path", "body", "status"),
        [
            ("GET", f"{PATH}?colour=red", b"", 400),
            ("GET", f"{PATH}?limit=501", b"", 400),
            ("GET", f"{PATH}?limit=many", b"", 400),
            ("GET", f"{PATH}?cursor=nonsense", b"", 400),
            ("GET", f"{PATH}?sort=colour", b"", 400),
            ("GET", f"{PATH}/none", b"", 404),
            ("GET", f"{PATH}/no%00ne", b"", 400),
            ("GET", f"{PATH}?sort=%00", b"", 400),
            ("POST", PATH, b'{"slug": "A"}', 422),
            ("POST", PATH, b"{broken", 400),
        ],
    )
    def test_every_refusal_has_one_shape(
        self, client: Client, method: str, path: str, body: bytes, status: int
    ) -> None:
        headers = make_bearer(make_user(is_staff=True))
        answer = client.generic(method, path, body, content_type=JSON, headers=headers)
        assert answer.status_code == status
        assert answer["Content-Type"] == "application/problem+json"
        problem = answer.json()
        assert set(problem) == MEMBERS
        assert problem["status"] == status
        assert problem["request_id"] == answer["X-Request-Id"]
        assert all(set(error) == {"path", "message"} for error in problem["errors"])

    @pytest.mark.parametrize("body", [b'{"slug": "a", "name": "a\\u0000b"}', b'{"slug": "a\\u0000", "name": "b"}'])
    def test_a_nul_character_is_refused_with_its_field(self, client: Client, body: bytes) -> None:
        answer = client.post(PATH, body, content_type=JSON, headers=make_bearer(make_user(is_staff=True)))
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["message"].endswith("contains a NUL character")
        assert not Project.objects.exists()

    @pytest.mark.parametrize(("htmx", "kind"), [({}, "text/html"), ({"HX-Request": "true"}, "text/plain")])
    def test_a_page_and_a_fragment_tell_the_same_in_words(
        self, client: Client, htmx: dict[str, str], kind: str
    ) -> None:
        client.force_login(make_user(is_staff=True))
        answer = client.get("/p/none/settings/", headers=htmx)
        assert (answer.status_code, answer["Content-Type"]) == (404, f"{kind}; charset=utf-8")
        assert "no project" in answer.content.decode()


@pytest.mark.django_db
class TestCredentials:
    @pytest.mark.parametrize("value", ["", "Bearer", "Bearer wn_wrong", "Basic YTpi", "wn_x"])
    def test_a_wrong_one_is_401(self, client: Client, value: str) -> None:
        answer = client.get(PATH, headers={"Authorization": value})
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
        assert answer.json()["code"] == "not_authenticated"

    @pytest.mark.parametrize("path", [PATH, "/api/v1/tokens", "/", "/projects/new/", "/p/none/settings/"])
    @pytest.mark.parametrize("state", ["unknown", "expired", "revoked", "of a user who left"])
    def test_a_wrong_token_never_falls_back_to_the_session(self, client: Client, path: str, state: str) -> None:
        owner = make_user(is_staff=True)
        headers = make_bearer(owner) if state != "unknown" else {"Authorization": "Bearer wn_unknown"}
        if state == "expired":
            owner.api_tokens.update(expires_at=timezone.now())
        elif state == "revoked":
            owner.api_tokens.all().delete()
        elif state == "of a user who left":
            type(owner).objects.filter(pk=owner.pk).update(is_active=False)
        client.force_login(make_user(is_staff=True))
        for method, htmx in product(METHODS, ({}, {"HX-Request": "true"})):
            answer = client.generic(method, path, b"{}", content_type=JSON, headers={**headers, **htmx})
            assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer"), method

    def test_a_proxy_may_sign_people_in_before_the_pages(self, client: Client) -> None:
        client.force_login(make_user(is_staff=True))
        assert client.get("/projects/new/", headers={"Authorization": "Basic YTpi"}).status_code == 200

    def test_the_sessions_cookie_works_with_csrf_only(self) -> None:
        client = Client(enforce_csrf_checks=True)
        client.force_login(make_user(is_staff=True))
        assert client.get(PATH).status_code == 200
        refused = client.post(PATH, BODY, content_type=JSON)
        assert refused.status_code == 403
        assert refused["Content-Type"] == "application/problem+json"
        assert (refused.json()["code"], refused.json()["title"]) == (
            "csrf_failed",
            "The CSRF token is missing or wrong",
        )
        assert not Project.objects.exists()
        client.get("/projects/new/")
        token = client.cookies["csrftoken"].value
        accepted = client.post(PATH, BODY, content_type=JSON, headers={"X-CSRFToken": token})
        assert accepted.status_code == 201

    @pytest.mark.parametrize(
        ("method", "path"),
        [
            ("GET", PATH),
            ("POST", PATH),
            ("PATCH", f"{PATH}/demo"),
            ("DELETE", f"{PATH}/demo"),
            ("POST", f"{PATH}/demo/runs"),
            ("POST", f"{PATH}/demo/otlp/v1/traces"),
        ],
    )
    def test_without_any_every_call_is_401(self, method: str, path: str) -> None:
        answer = Client(enforce_csrf_checks=True).generic(method, path, b"{}", content_type=JSON)
        assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
        assert answer.json()["code"] == "not_authenticated"

    def test_a_token_needs_no_csrf(self) -> None:
        client = Client(enforce_csrf_checks=True)
        answer = client.post(PATH, BODY, content_type=JSON, headers=make_bearer(make_user(is_staff=True)))
        assert answer.status_code == 201

    def test_pages_refuse_a_form_without_its_token(self) -> None:
        client = Client(enforce_csrf_checks=True)
        client.force_login(make_user(is_staff=True))
        assert client.post("/projects/new/", {"name": "Shell", "slug": "shell"}).status_code == 403
        assert not Project.objects.exists()


@pytest.mark.django_db
class TestRateLimit:
    def test_counts_down_and_then_says_when_to_come_back(self, client: Client, settings: Settings) -> None:
        settings.API_REQUESTS_PER_MINUTE = 3
        headers = make_bearer(make_user(is_staff=True))
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
        statuses = [client.get(PATH, headers=make_bearer(make_user(is_staff=True))).status_code for _ in range(3)]
        assert statuses == [200, 200, 200]


@pytest.fixture
def keyed(db: None) -> dict[str, str]:
    """Headers of a call with a key."""
    return {**make_bearer(make_user(is_staff=True)), "Idempotency-Key": "k1"}


@pytest.mark.django_db
class TestIdempotency:
    def test_the_same_request_is_answered_from_the_record(self, client: Client, keyed: dict[str, str]) -> None:
        first = client.post(PATH, BODY, content_type=JSON, headers=keyed)
        again = client.post(PATH, BODY, content_type=JSON, headers=keyed)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again["Location"] == first["Location"]
        assert again["Idempotent-Replayed"] == "true"
        assert Project.objects.count() == 1
        assert AuditEntry.objects.filter(action="project.create").count() == 1

    def test_another_body_with_the_key_is_a_conflict(self, client: Client, keyed: dict[str, str]) -> None:
        client.post(PATH, {"slug": "one", "name": "One"}, content_type=JSON, headers=keyed)
        answer = client.post(PATH, {"slug": "two", "name": "Two"}, content_type=JSON, headers=keyed)
        assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_key_reused")
        assert not Project.objects.filter(slug="two").exists()

    def test_keys_of_two_callers_do_not_meet(self, client: Client) -> None:
        for slug in ("one", "two"):
            headers = {**make_bearer(make_user(is_staff=True)), "Idempotency-Key": "k1"}
            answer = client.post(PATH, {"slug": slug, "name": slug}, content_type=JSON, headers=headers)
            assert answer.status_code == 201

    def test_a_refused_request_may_be_sent_again_corrected(self, client: Client, keyed: dict[str, str]) -> None:
        assert client.post(PATH, {"slug": "A", "name": "x"}, content_type=JSON, headers=keyed).status_code == 422
        assert not IdempotentResponse.objects.exists()
        assert client.post(PATH, {"slug": "a", "name": "x"}, content_type=JSON, headers=keyed).status_code == 201

    def test_the_reaper_deletes_responses_after_a_day(self, client: Client) -> None:
        bearer = make_bearer(make_user(is_staff=True))
        for slug in ("one", "two"):
            headers = {**bearer, "Idempotency-Key": slug}
            client.post(PATH, {"slug": slug, "name": slug}, content_type=JSON, headers=headers)
        IdempotentResponse.objects.filter(key="one").update(created_at=timezone.now() - STORED_FOR)
        reap()
        assert list(IdempotentResponse.objects.values_list("key", flat=True)) == ["two"]

    def test_a_revoked_token_gets_no_stored_response(self, client: Client) -> None:
        user = make_user(is_staff=True)
        headers = {**make_bearer(user), "Idempotency-Key": "k1"}
        assert client.post(PATH, BODY, content_type=JSON, headers=headers).status_code == 201
        user.api_tokens.all().delete()
        client.force_login(user)
        answer = client.post(PATH, BODY, content_type=JSON, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")

    def test_another_token_of_the_same_user_has_keys_of_its_own(self, client: Client) -> None:
        user = make_user(is_staff=True)
        statuses = []
        for _ in range(2):
            headers = {**make_bearer(user), "Idempotency-Key": "k1"}
            statuses.append(
                client.post("/api/v1/tokens", {"name": "x"}, content_type=JSON, headers=headers).status_code
            )
        assert statuses == [201, 201]

    def test_the_same_key_for_another_call_is_another_request(self, client: Client, keyed: dict[str, str]) -> None:
        assert client.post(PATH, BODY, content_type=JSON, headers=keyed).status_code == 201
        assert client.post("/api/v1/tokens", {"name": "x"}, content_type=JSON, headers=keyed).status_code == 201

    def test_a_session_has_keys_only_with_csrf(self) -> None:
        client = Client(enforce_csrf_checks=True)
        client.force_login(make_user(is_staff=True))
        client.get("/projects/new/")
        csrf = {"X-CSRFToken": client.cookies["csrftoken"].value, "Idempotency-Key": "k1"}
        first = client.post(PATH, BODY, content_type=JSON, headers=csrf)
        again = client.post(PATH, BODY, content_type=JSON, headers=csrf)
        assert (first.status_code, again.content) == (201, first.content)
        refused = client.post(PATH, BODY, content_type=JSON, headers={"Idempotency-Key": "k1"})
        assert refused.status_code == 403

    def test_a_request_in_progress_is_a_conflict_and_a_crashed_one_is_taken_over(
        self, client: Client, keyed: dict[str, str]
    ) -> None:
        client.post(PATH, BODY, content_type=JSON, headers=keyed)
        Project.objects.all().delete()
        IdempotentResponse.objects.update(status=0, created_at=timezone.now())
        refused = client.post(PATH, BODY, content_type=JSON, headers=keyed)
        assert (refused.status_code, refused.json()["code"]) == (409, "in_progress")
        assert int(refused["Retry-After"]) > 0
        assert not Project.objects.exists()
        IdempotentResponse.objects.update(created_at=timezone.now() - LEASE)
        assert client.post(PATH, BODY, content_type=JSON, headers=keyed).status_code == 201
        assert client.post(PATH, BODY, content_type=JSON, headers=keyed)["Idempotent-Replayed"] == "true"

    def test_no_transaction_is_open_while_the_request_works(
        self, client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        depth = len(connection.savepoint_ids)
        seen: list[int] = []

        def create(**_: object) -> None:
            seen.append(len(connection.savepoint_ids))
            raise NotFound("enough")

        monkeypatch.setattr("curation.projects.pages.api.create_project", create)
        headers = {**make_bearer(make_user(is_staff=True)), "Idempotency-Key": "k1"}
        client.post(PATH, {"slug": "shell", "name": "Shell"}, content_type=JSON, headers=headers)
        assert seen == [depth]

    @pytest.mark.parametrize("key", ["", "x" * 256])
    def test_a_key_must_have_a_sensible_length(self, client: Client, key: str) -> None:
        headers = {**make_bearer(make_user(is_staff=True)), "Idempotency-Key": key}
        answer = client.post(PATH, {"slug": "a", "name": "x"}, content_type=JSON, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_idempotency_key")


@pytest.mark.django_db(transaction=True)
def test_eight_equal_requests_at_once_write_one_row() -> None:
    owner = make_user(is_staff=True)
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
    assert len(answers) == 8
    assert {status for status, _ in answers} <= {201, 409}
    assert len({body for status, body in answers if status == 201}) == 1
    assert all(b'"in_progress"' in body for status, body in answers if status == 409)
    assert Project.objects.filter(slug="shell").count() == 1
    assert AuditEntry.objects.filter(action="project.create").count() == 1
