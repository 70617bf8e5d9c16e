"""The second factor: a password alone opens nothing, a code works once, and a server may require it."""

import re
import time
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django_otp.oath import TOTP
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice
from pytest_django.fixtures import Settings

from curation.projects.models import AuditEntry, Role
from curation.web.http.middleware import COPY_COOKIE, COPY_FIELD
from tests.factories import make_bearer, make_project, make_user
from tests.provider import Provider
from tests.provider import provider as provider

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"


def code_of(user: User, ahead: int = 0) -> str:
    """The app's code now, or `ahead` steps later."""
    device = TOTPDevice.objects.get(user=user)
    totp = TOTP(device.bin_key, device.step, device.t0, device.digits, device.drift)
    totp.time = time.time() + ahead * device.step
    return f"{totp.token():06d}"


def turned_on(user: User) -> tuple[Client, list[str]]:
    """A client of the person, and the recovery codes."""
    client = Client()
    client.force_login(user)
    assert "Scan the picture" in client.get("/second-factor/").content.decode()
    page = client.post("/second-factor/", {"code": code_of(user)}).content.decode()
    found = re.search(r'<code id="codes" tabindex="0">([^<]+)<', page)
    assert found, page
    return client, found[1].split()


def with_password(client: Client, after: str = "") -> Any:
    return client.post("/login/", {"username": "ada", "password": PASSWORD, "next": after}, follow=True)


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def allow_next_try() -> None:
    """Over the pause after a wrong code."""
    for model in (TOTPDevice, StaticDevice):
        model.objects.update(throttling_failure_timestamp=None, throttling_failure_count=0)


def test_a_password_alone_opens_nothing_and_a_code_works_once() -> None:
    ada = make_user("ada")
    make_project("acme", user=ada)
    turned_on(ada)
    client = Client()
    page = with_password(client, "/p/acme/samples/").content.decode()
    assert "Enter your code" in page and not is_signed_in(client)
    assert client.get("/p/acme/samples/").status_code == 302
    assert client.get("/api/v1/projects").status_code == 401
    used = code_of(ada)
    assert "not valid now" in client.post("/login/code/", {"code": used}).content.decode(), "used to turn it on"
    allow_next_try()
    fresh = code_of(ada, ahead=1)
    answer = client.post("/login/code/", {"code": fresh})
    assert answer["Location"] == "/p/acme/samples/" and is_signed_in(client)
    again = Client()
    with_password(again)
    again.post("/login/code/", {"code": fresh})
    assert not is_signed_in(again), "another session cannot use it again"


def test_guessing_is_slowed_down() -> None:
    ada = make_user("ada")
    turned_on(ada)
    TOTPDevice.objects.update(last_t=-1)
    client = Client()
    with_password(client)
    right = code_of(ada)
    client.post("/login/code/", {"code": "000000" if right != "000000" else "000001"})
    client.post("/login/code/", {"code": right})
    assert not is_signed_in(client), "the right code too has to wait after a wrong one"
    allow_next_try()
    client.post("/login/code/", {"code": right})
    assert is_signed_in(client)


def test_a_recovery_code_works_once_and_is_in_the_audit_log() -> None:
    ada = make_user("ada")
    _, codes = turned_on(ada)
    assert len(codes) == len(set(codes)) == 10
    for expected in (True, False):
        client = Client()
        with_password(client)
        client.post("/login/code/", {"code": f" {codes[3].upper()} "})
        assert is_signed_in(client) is expected
    entry = AuditEntry.objects.get(action="second_factor.recover")
    assert (entry.actor, entry.data) == (ada, {"codes_left": 9})


def test_the_step_between_ends_with_time_and_with_the_password() -> None:
    ada = make_user("ada")
    _, codes = turned_on(ada)
    client = Client()
    assert "Sign in again" in client.get("/login/code/", follow=True).content.decode()
    with_password(client)
    session = client.session
    session["second_factor_pending"] = session["second_factor_pending"] | {"at": time.time() - 601}
    session.save()
    client.post("/login/code/", {"code": codes[0]})
    assert not is_signed_in(client)
    with_password(client)
    ada.set_password("another long password")
    ada.save()
    client.post("/login/code/", {"code": codes[0]})
    assert not is_signed_in(client)


def test_codes_are_renewed_and_the_factor_turned_off_with_a_code_only() -> None:
    ada = make_user("ada")
    client, codes = turned_on(ada)
    assert "not valid now" in client.post("/second-factor/", {"code": "nonsense", "off": ""}).content.decode()
    assert TOTPDevice.objects.filter(confirmed=True).exists()
    allow_next_try()
    page = client.post("/second-factor/", {"code": codes[0]}).content.decode()
    assert "Store these recovery codes" in page and codes[1] not in page
    assert not StaticDevice.objects.get().token_set.filter(token__in=codes).exists()
    TOTPDevice.objects.update(last_t=-1)
    client.post("/second-factor/", {"code": code_of(ada), "off": ""})
    assert not TOTPDevice.objects.filter(confirmed=True).exists()
    with_password(other := Client())
    assert is_signed_in(other)
    assert list(AuditEntry.objects.order_by("id").values_list("action", flat=True)) == [
        "second_factor.enable",
        "second_factor.recover",
        "second_factor.new_codes",
        "second_factor.disable",
    ]


def test_a_server_that_requires_it_shows_nothing_before(settings: Settings) -> None:
    settings.SECOND_FACTOR = "required"
    ada = make_user("ada")
    make_project("acme", user=ada)
    client = Client()
    with_password(client)
    assert client.get("/p/acme/")["Location"] == "/second-factor/"
    assert client.get("/password/")["Location"] == "/second-factor/"
    for header in ("Basic YTpi", make_bearer(make_user())["Authorization"]):
        beside = client.get("/p/acme/", headers={"Authorization": header})
        assert beside.status_code == 302, "another credential does not open the session's pages"
    refused = client.get("/api/v1/projects")
    assert (refused.status_code, refused.json()["code"]) == (403, "second_factor")
    assert client.get("/api/v1/projects", headers=make_bearer(ada)).status_code == 200
    client.get("/second-factor/")
    page = client.post("/second-factor/", {"code": code_of(ada)}).content.decode()
    assert "Store these recovery codes" in page
    assert client.get("/p/acme/").status_code == 200
    TOTPDevice.objects.update(last_t=-1)
    client.post("/second-factor/", {"code": code_of(ada), "off": ""})
    assert TOTPDevice.objects.filter(confirmed=True).exists()
    call_command("second_factor", "off", "ada")
    assert not TOTPDevice.objects.exists() and not StaticDevice.objects.exists()


def test_a_form_that_was_not_read_keeps_its_copy(settings: Settings) -> None:
    """The session began before the server required it."""
    make_project("acme", user=make_user("ada"), role=Role.ADMIN)
    client = Client()
    with_password(client)
    typed = {"name": "Acme", "guidelines": "Long and careful", COPY_FIELD: "12-34"}
    settings.SECOND_FACTOR = "required"
    sent = client.post("/p/acme/settings/", typed)
    assert sent["Location"] == "/second-factor/" and f"{COPY_COOKIE}12-34" not in sent.cookies
    assert client.post("/p/acme/settings/", typed, headers={"X-Requested-With": "fetch"}).status_code == 403
    settings.SECOND_FACTOR = "optional"
    assert f"{COPY_COOKIE}12-34" in client.post("/p/acme/settings/", typed).cookies


def test_the_provider_has_a_second_factor_of_its_own(client: Client, provider: Provider, settings: Settings) -> None:
    settings.SECOND_FACTOR = "required"
    back = httpx.get(client.get("/login/oidc/")["Location"]).headers["Location"]
    client.get(back)
    assert client.get("/password/").status_code == 200
