"""A system that asked for it hears of what happened, can tell that it was us, and is tried again when it was away."""

import hashlib
import hmac
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import orjson
import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from curation.webhooks.deliver import PAUSES, deliver_due
from curation.webhooks.emit import emit
from curation.webhooks.models import Delivery, Event, Webhook
from tests.factories import make_bearer, make_project, make_user

pytestmark = pytest.mark.django_db(transaction=True)


class Receiver(HTTPServer):
    """Keeps what it is sent; answers with `status`."""

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
    emit(hook.project, Event.RUN_FINISHED, {"run": "7"})
    emit(hook.project, Event.EXPORT_READY, {"export": "1"})
    assert deliver_due() == 1
    headers, body = receiver.got[0]
    assert orjson.loads(body)["data"] == {"run": "7"}
    stamp, sent = headers["Winnow-Signature"].removeprefix("t=").split(",v1=")
    assert hmac.new(made["secret"].encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest() == sent
    assert Delivery.objects.get().state == "delivered"
    assert deliver_due() == 0


def test_a_receiver_that_is_away_is_tried_again_and_then_given_up(client: Client, receiver: Receiver) -> None:
    make_hook(client, receiver)
    receiver.status = 503
    emit(Webhook.objects.get().project, Event.RUN_FINISHED, {})
    for tries in range(1, len(PAUSES) + 2):
        assert deliver_due() == 1
        row = Delivery.objects.get()
        assert (row.attempts, row.status) == (tries, 503)
        assert deliver_due() == 0, "it is not due yet"
        Delivery.objects.update(due_at=timezone.now() - timedelta(seconds=1))
    assert Delivery.objects.get().state == "failed"
    assert deliver_due() == 0


def test_private_addresses_are_refused_where_the_server_is_public(client: Client, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    user = make_user()
    make_project("acme", user=user)
    body = {"url": "http://127.0.0.1:1/x", "events": ["run.finished"]}
    answer = client.post(
        "/api/v1/projects/acme/webhooks", body, content_type="application/json", headers=make_bearer(user)
    )
    assert answer.status_code == 422
    assert not Webhook.objects.exists()


def test_only_admins_see_webhooks_and_unknown_events_are_named(client: Client) -> None:
    curator, admin = make_user(), make_user()
    make_project("acme", user=curator, role="curator")
    make_project("other", user=admin)
    assert client.get("/api/v1/projects/acme/webhooks", headers=make_bearer(curator)).status_code == 403
    body = {"url": "https://example.org/x", "events": ["run.begun"]}
    answer = client.post(
        "/api/v1/projects/other/webhooks", body, content_type="application/json", headers=make_bearer(admin)
    )
    assert answer.status_code == 422
    assert "run.begun" in answer.json()["detail"]


def test_the_settings_page_adds_and_removes(client: Client, receiver: Receiver) -> None:
    user = make_user()
    make_project("acme", user=user)
    client.force_login(user)
    page = client.post("/p/acme/settings/webhooks/", {"url": receiver.url, "events": ["review.decided"]})
    assert Webhook.objects.get().secret in page.content.decode()
    client.post(f"/p/acme/settings/webhooks/{Webhook.objects.get().pk}/delete/")
    assert not Webhook.objects.exists()
