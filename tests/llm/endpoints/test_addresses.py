"""Where a model server may live."""

import socket

import pytest
from pytest_django import Settings

from curation.llm.endpoints import addresses
from curation.llm.endpoints.addresses import refuse_private
from curation.web.problems import Invalid

PRIVATE = [
    "http://127.0.0.1:8001/v1",
    "http://127.1/v1",
    "http://2130706433/v1",
    "http://0x7f.0.0.1/v1",
    "http://0177.0.0.1/v1",
    "http://localhost/v1",
    "http://0.0.0.0/v1",
    "http://10.1.2.3/v1",
    "http://172.16.0.1/v1",
    "http://192.168.1.1/v1",
    "http://100.64.0.1/v1",
    "http://[::1]/v1",
    "http://[::ffff:10.0.0.1]/v1",
    "http://[64:ff9b::a00:1]/v1",
    "http://[fd00::1]/v1",
]
NEVER = [
    "http://169.254.169.254/latest",
    "http://169.254.1.1/v1",
    "http://2852039166/latest",
    "http://[fe80::1]/v1",
    "http://[::ffff:169.254.169.254]/",
    "http://[fd00:ec2::254]/",
    "http://100.100.100.200/",
]


@pytest.fixture(autouse=True)
def no_lookup_is_kept() -> None:
    addresses._addresses.cache_clear()


def names(monkeypatch: pytest.MonkeyPatch, *found: str) -> None:
    """Every name leads to these addresses."""

    def lookup(host: str, port: object, **kwargs: object) -> list[tuple[object, ...]]:
        if not found:
            raise socket.gaierror("unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)


@pytest.mark.parametrize("url", PRIVATE)
def test_private_hosts_are_refused_unless_allowed(url: str, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = True
    refuse_private(url)
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    with pytest.raises(Invalid, match="private address"):
        refuse_private(url)


@pytest.mark.parametrize("url", NEVER)
def test_metadata_and_link_local_are_always_refused(url: str, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = True
    with pytest.raises(Invalid, match="which Winnow never calls"):
        refuse_private(url)


def test_public_addresses_pass(settings: Settings) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    refuse_private("https://1.1.1.1/v1")
    refuse_private("https://[2606:4700::1111]:8443/v1")


def test_one_private_address_among_public_ones_is_enough(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    names(monkeypatch, "1.1.1.1", "10.0.0.7")
    with pytest.raises(Invalid, match=r"10\.0\.0\.7"):
        refuse_private("https://models.example/v1")


def test_a_name_that_moves_to_a_private_address_is_refused_then(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    clock = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    names(monkeypatch, "1.1.1.1")
    refuse_private("https://models.example/v1")
    names(monkeypatch, "127.0.0.1")
    clock[0] += addresses.LOOKUP_SECONDS
    with pytest.raises(Invalid, match="private address"):
        refuse_private("https://models.example/v1")


def test_an_unknown_host_is_refused_only_if_it_must_be_checked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    names(monkeypatch)
    settings.ALLOW_PRIVATE_MODEL_HOSTS = True
    refuse_private("https://models.example/v1")
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    with pytest.raises(Invalid) as refusal:
        refuse_private("https://models.example/v1")
    assert refusal.value.code == "unresolvable_host"


@pytest.mark.parametrize(
    "url", ["", "host/v1", "ftp://host", "http://", "http://a b/", "http://host\\@1.1.1.1/", "http://[::1"]
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        refuse_private(url)
