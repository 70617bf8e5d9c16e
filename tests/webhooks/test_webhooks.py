"""A subscribed system hears of events, can verify the sender, and is tried again when it was away."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from curation.projects.models import AuditEntry, Project
from curation.web.problems import NotFound
from curation.webhooks.deliver import PAUSES, deliver_due, send_test
from curation.webhooks.emit import emit
from curation.webhooks.models import Delivery, Webhook, WebhookEvent
from tests.factories import make_bearer, make_project, make_user
from tests.serving import serving

pytestmark = pytest.mark.django_db(transaction=True)


class Receiver(HTTPServer):
    """Keeps the requests; answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.got: list[tuple[dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def make_hook(client: Client, receiver: Receiver, slug: str = "acme") -> dict[str, str]:
    user = make_user()
    make_project(slug, user=user)
    body = {"url": receiver.url, "events": ["run.finished"]}
    answer = client.post(
        f"/api/v1/projects/{slug}/webhooks", body, content_type="application/json", headers=make_bearer(user)
    )
    assert answer.status_code == 201, answer.content
    made: dict[str, str] = answer.json()
    return made


def test_a_notice_arrives_signed(client: Client, receiver: Receiver) -> None:
    made = make_hook(client, receiver)
    hook = Webhook.objects.get()
    assert made["secret"] not in str(Webhook.objects.values().get())
    emit(hook.project, WebhookEvent.RUN_FINISHED, {"run": "7"})
    emit(hook.project, WebhookEvent.EXPORT_READY, {"export": "1"})
    assert deliver_due() == 1
    headers, body = receiver.got[0]
    assert Verifier(made["secret"]).verify(body, headers)["data"] == {"run": "7"}
    with pytest.raises(WebhookVerificationError):
        Verifier(made["secret"]).verify(body.replace(b"7", b"8"), headers)
    with pytest.raises(WebhookVerificationError):
        Verifier(made["secret"]).verify(body, {**headers, "webhook-id": "msg_other"})
    assert "Winnow-Signature" not in headers
    assert Delivery.objects.get().state == "delivered"
    assert deliver_due() == 0


def test_an_old_secret_is_valid_until_its_time_is_over(client: Client, receiver: Receiver) -> None:
    made = make_hook(client, receiver)
    user = Project.objects.get().members.get().user
    hook = Webhook.objects.get()
    path = f"/api/v1/projects/acme/webhooks/{hook.pk}"

    def rotate(hours: int) -> dict[str, str]:
        answer = client.post(
            f"{path}/rotate", {"keep_hours": hours}, content_type="application/json", headers=make_bearer(user)
        )
        assert answer.status_code == 201, answer.content
        new: dict[str, str] = answer.json()
        return new

    def verified_by(*made: dict[str, str]) -> list[bool]:
        client.post(f"{path}/test", headers=make_bearer(user))
        headers, body = receiver.got[-1]
        told = []
        for one in made:
            try:
                told.append(bool(Verifier(one["secret"]).verify(body, headers)))
            except WebhookVerificationError:
                told.append(False)
        return told

    second = rotate(24)
    assert second["secret"] != made["secret"] and second["old_secret_until"]
    assert verified_by(made, second) == [True, True]
    Webhook.objects.update(previous_until=timezone.now())
    assert verified_by(made, second) == [False, True]
    third = rotate(24)
    assert verified_by(made, second, third) == [False, True, True]
    assert verified_by(third, rotate(0)) == [False, True]
    assert AuditEntry.objects.filter(action="webhook.rotate").count() == 3
    refused = client.post(f"{path}/rotate", {"keep_hours": 169}, "application/json", headers=make_bearer(user))
    assert refused.status_code == 422


def test_a_message_has_the_same_id_at_each_try(client: Client, receiver: Receiver) -> None:
    make_hook(client, receiver)
    receiver.status = 503
    emit(Webhook.objects.get().project, WebhookEvent.RUN_FINISHED, {})
    emit(Webhook.objects.get().project, WebhookEvent.RUN_FINISHED, {})
    for _ in range(2):
        deliver_due()
        Delivery.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert len(ids) == 4 and sorted(ids[:2]) == sorted(ids[2:]) and ids[0] != ids[1]


def test_a_receiver_that_is_away_is_tried_again_and_then_given_up(client: Client, receiver: Receiver) -> None:
    make_hook(client, receiver)
    receiver.status = 503
    emit(Webhook.objects.get().project, WebhookEvent.RUN_FINISHED, {})
    for tries in range(1, len(PAUSES) + 2):
        assert deliver_due() == 1
        row = Delivery.objects.get()
        assert (row.attempts, row.status) == (tries, 503)
        assert deliver_due() == 0, "it is not due yet"
        Delivery.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    assert Delivery.objects.get().state == "failed"
    assert deliver_due() == 0


@pytest.mark.parametrize(
    ("url", "event", "said"),
    [("http://127.0.0.1:1/x", "run.finished", "private"), ("https://example.org/x", "run.begun", "run.begun")],
)
def test_private_addresses_of_a_public_server_and_unknown_events_are_refused(
    client: Client, headers: dict[str, str], settings: Settings, url: str, event: str, said: str
) -> None:
    settings.ALLOW_PRIVATE_WEBHOOK_HOSTS = False
    path, body = "/api/v1/projects/acme/webhooks", {"url": url, "events": [event]}
    answer = client.post(path, body, content_type="application/json", headers=headers)
    assert answer.status_code == 422 and said in answer.json()["detail"]
    assert not Webhook.objects.exists()


@pytest.mark.usefixtures("signed_in")
def test_the_settings_page_adds_and_removes(client: Client, receiver: Receiver) -> None:
    page = client.post("/p/acme/settings/webhooks/", {"url": receiver.url, "events": ["review.decided"]})
    assert Webhook.objects.get().secret in page.content.decode()
    old = Webhook.objects.get().secret
    page = client.post(f"/p/acme/settings/webhooks/{Webhook.objects.get().pk}/rotate/")
    assert Webhook.objects.get().secret in page.content.decode() and old not in page.content.decode()
    client.post(f"/p/acme/settings/webhooks/{Webhook.objects.get().pk}/delete/")
    assert not Webhook.objects.exists()


class _Odd(BaseHTTPRequestHandler):
    """`/drip/head` and `/drip/body` never end, `/flood` sends 256 MB, `/slow` waits; anything else answers at once."""

    stopped: threading.Event

    def do_POST(self) -> None:
        with contextlib.suppress(OSError):
            if self.path == "/slow":
                self.stopped.wait(20)
            if self.path == "/drip/head":
                self._drip(b"HTTP/1.1 200 OK\r\nX-Long: ")
            self.send_response(200)
            self.end_headers()
            if self.path == "/drip/body":
                self._drip(b"begin")
            for _ in range(4096 if self.path == "/flood" else 0):
                self.wfile.write(b"\0" * 65536)
                self.server.sent += 65536  # type: ignore[attr-defined]
            self.wfile.write(b"thanks")

    def _drip(self, start: bytes) -> None:
        self.wfile.write(start)
        while not self.stopped.wait(0.1):
            self.wfile.write(b"x")

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def odd() -> Iterator[ThreadingHTTPServer]:
    _Odd.stopped = threading.Event()
    with serving(_Odd) as server:
        server.sent = 0  # type: ignore[attr-defined]
        yield server
        _Odd.stopped.set()


def hook_at(project: Project, server: HTTPServer, path: str) -> Webhook:
    url = f"http://127.0.0.1:{server.server_port}{path}"
    return Webhook.objects.create(project=project, url=url, events=["run.finished"], nonce="n")


def test_no_more_than_64_kb_of_a_response_is_read(odd: ThreadingHTTPServer) -> None:
    hook = hook_at(make_project(), odd, "/flood")
    emit(hook.project, WebhookEvent.RUN_FINISHED, {})
    assert deliver_due() == 1
    row = Delivery.objects.get()
    assert (row.state, row.status) == ("delivered", 200)
    # The system's buffers take some bytes: those are sent, not read.
    assert odd.sent < 16 * 1024 * 1024  # type: ignore[attr-defined]
    assert len(row.response) == 500 and "\0" not in row.response


@pytest.mark.parametrize(
    ("path", "state"), [("/drip/head", "pending"), ("/drip/body", "delivered"), ("/slow", "pending")]
)
def test_a_try_ends_in_time_however_slowly_the_receiver_sends(
    odd: ThreadingHTTPServer, path: str, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("curation.webhooks.deliver.TIMEOUT_SECONDS", 1.0)
    hook = hook_at(make_project(), odd, path)
    emit(hook.project, WebhookEvent.RUN_FINISHED, {})
    assert deliver_due() == 1
    row = Delivery.objects.get()
    assert row.state == state and "within 1 s" in row.error
    # Without the limit it would be 20 s or more.
    assert row.latency_ms is not None and 900 < row.latency_ms < 10_000


def test_a_slow_resolver_counts_too(odd: ThreadingHTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()

    def lookup(*_: object, **__: object) -> list[object]:
        answered.wait(30)
        return []

    monkeypatch.setattr("curation.webhooks.deliver.TIMEOUT_SECONDS", 0.5)
    hook = Webhook.objects.create(project=make_project(), url="http://slow.example/x", events=[], nonce="n")
    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    started = time.monotonic()
    assert send_test(hook, user=make_user()).error == "no response within 0.5 s"
    assert time.monotonic() - started < 20
    answered.set()


def test_a_slow_receiver_does_not_delay_the_others(odd: ThreadingHTTPServer, receiver: Receiver) -> None:
    project = make_project()
    slow = hook_at(project, odd, "/slow")
    for _ in range(60):
        emit(project, WebhookEvent.RUN_FINISHED, {})
    quick = hook_at(project, receiver, "/hook")
    Delivery.objects.bulk_create(
        Delivery(webhook=quick, event="run.finished", body={}, due_at=timezone.now()) for _ in range(10)
    )
    worker = threading.Thread(target=_deliver_and_close, daemon=True)
    worker.start()
    deadline = time.monotonic() + 9  # the slow one gets 10 s
    while Delivery.objects.filter(webhook=quick, state="delivered").count() < 10 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert Delivery.objects.filter(webhook=quick, state="delivered").count() == 10
    # An event that comes while the slow one is open does not wait either.
    Delivery.objects.create(webhook=quick, event="run.finished", body={}, due_at=timezone.now())
    while Delivery.objects.filter(webhook=quick, state="delivered").count() < 11 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert Delivery.objects.filter(webhook=quick, state="delivered").count() == 11
    assert Delivery.objects.filter(webhook=slow, state="delivered").count() == 0
    _Odd.stopped.set()
    worker.join(20)
    assert Delivery.objects.filter(webhook=slow, state="delivered").count() == 60


def _deliver_and_close() -> None:
    try:
        deliver_due()
    finally:
        connection.close()


def test_a_receiver_that_moves_to_a_private_address_gets_nothing(receiver: Receiver, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_WEBHOOK_HOSTS = False
    hook = hook_at(make_project(), receiver, "/hook")
    emit(hook.project, WebhookEvent.RUN_FINISHED, {})
    assert deliver_due() == 1
    assert receiver.got == [] and "private address" in Delivery.objects.get().error


def test_a_test_event_is_sent_at_once_and_listed(client: Client, receiver: Receiver) -> None:
    user = make_user()
    hook = hook_at(make_project("acme", user=user), receiver, "/hook")
    path = f"/api/v1/projects/acme/webhooks/{hook.pk}"
    sent = client.post(f"{path}/test", headers=make_bearer(user))
    assert sent.status_code == 200, sent.content
    assert (sent.json()["event"], sent.json()["state"], sent.json()["status"]) == ("test", "delivered", 200)
    assert receiver.got[0][0]["Winnow-Event"] == "test"
    receiver.status = 500
    assert client.post(f"{path}/test", headers=make_bearer(user)).json()["state"] == "failed"
    assert deliver_due() == 0, "a test is not repeated"
    log = client.get(f"{path}/deliveries", headers=make_bearer(user)).json()["data"]
    assert [(row["state"], row["status"], row["attempts"]) for row in log] == [
        ("failed", 500, 1),
        ("delivered", 200, 1),
    ]
    assert all(row["latency_ms"] is not None and row["due_at"] is None for row in log)


@pytest.mark.parametrize("deleted", ["first", "while it is sent"])
def test_a_test_of_a_deleted_webhook_finds_nothing(monkeypatch: pytest.MonkeyPatch, deleted: str) -> None:
    hook = Webhook.objects.create(project=make_project(), url="http://hooks.example/", events=[], nonce="n")

    def post(delivery: Delivery) -> None:
        Webhook.objects.all().delete()
        delivery.status = 200

    monkeypatch.setattr("curation.webhooks.deliver._post", post)
    if deleted == "first":
        Webhook.objects.all().delete()
    with pytest.raises(NotFound):
        send_test(hook, user=make_user())
    assert AuditEntry.objects.filter(action="webhook.test").exists() is (deleted != "first")


@pytest.mark.usefixtures("signed_in")
def test_the_page_sends_a_test_and_shows_its_outcome(client: Client, project: Project, receiver: Receiver) -> None:
    hook = hook_at(project, receiver, "/hook")
    page = client.post(f"/p/acme/settings/webhooks/{hook.pk}/test/", follow=True).content.decode()
    assert "The test event arrived: 200 after" in page
    receiver.status = 404
    page = client.post(f"/p/acme/settings/webhooks/{hook.pk}/test/", follow=True).content.decode()
    assert "did not arrive" in page and "badge--bad" in page
