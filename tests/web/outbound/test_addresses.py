"""Where a model server may live."""

import ipaddress
import socket

import pytest
from pytest_django import Settings

from curation.web.outbound.addresses import MODELS, reach_of, refuse_private
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
    refuse_private(url, MODELS)
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    with pytest.raises(Invalid, match="private address"):
        refuse_private(url, MODELS)


@pytest.mark.parametrize("url", NEVER)
def test_metadata_and_link_local_are_always_refused(url: str, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = True
    with pytest.raises(Invalid, match="which Winnow never calls"):
        refuse_private(url, MODELS)


def test_public_addresses_pass(settings: Settings) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    refuse_private("https://1.1.1.1/v1", MODELS)
    refuse_private("https://[2606:4700::1111]:8443/v1", MODELS)


def test_one_private_address_among_public_ones_is_enough(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    names(monkeypatch, "1.1.1.1", "10.0.0.7")
    with pytest.raises(Invalid, match=r"10\.0\.0\.7"):
        refuse_private("https://models.example/v1", MODELS)


def test_a_name_that_moves_to_a_private_address_is_refused_then(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    names(monkeypatch, "1.1.1.1")
    refuse_private("https://models.example/v1", MODELS)
    names(monkeypatch, "127.0.0.1")
    with pytest.raises(Invalid, match="private address"):
        refuse_private("https://models.example/v1", MODELS)


def test_an_unknown_host_is_refused_only_if_it_must_be_checked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    names(monkeypatch)
    settings.ALLOW_PRIVATE_MODEL_HOSTS = True
    refuse_private("https://models.example/v1", MODELS)
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    with pytest.raises(Invalid) as refusal:
        refuse_private("https://models.example/v1", MODELS)
    assert refusal.value.code == "unresolvable_host"


@pytest.mark.parametrize(
    "url", ["", "host/v1", "ftp://host", "http://", "http://a b/", "http://host\\@1.1.1.1/", "http://[::1"]
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(Invalid):
        refuse_private(url, MODELS)


@pytest.mark.parametrize(
    ("address", "reach"),
    [
        *((public, "public") for public in ("1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00:1450::1")),
        *((private, "private") for private in ("fec0::1", "fc00::1", "5f00::1", "100::1", "::", "::1", "2001:db8::1")),
        *((private, "private") for private in ("64:ff9b::808:808", "64:ff9b:1::a00:1", "64:ff9b:1:a00:0:100::")),
        *((private, "private") for private in ("::ffff:10.0.0.1", "::ffff:8.8.8.8", "::10.0.0.1", "::ffff:0:10.0.0.1")),
        *((private, "private") for private in ("2002:a00:1::1", "2002:808:808::1", "2001:0:a00:1::f5ff:fffe")),
        *((private, "private") for private in ("2606:4700::5efe:10.0.0.1", "3fff::1", "192.88.99.1", "100.64.0.1")),
        *((private, "private") for private in ("0.0.0.1", "0.1.2.3", "198.18.0.1", "198.19.255.255", "240.0.0.1")),
        *((private, "private") for private in ("192.0.0.8", "192.0.2.1", "198.51.100.1", "203.0.113.1")),
        *((never, "never") for never in ("169.254.1.1", "224.0.0.1", "ff02::1", "fe80::1", "169.254.169.254")),
        *((never, "never") for never in ("64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::")),
        *((never, "never") for never in ("::ffff:169.254.169.254", "::169.254.169.254", "::ffff:0:169.254.169.254")),
        *((never, "never") for never in ("2002:a9fe:a9fe::1", "2001:0:4136:e378:8000:63bf:5601:5601")),
        *((never, "never") for never in ("168.63.129.16", "fd00:ec2::254", "100.100.100.200")),
    ],
)
def test_what_kind_of_address_it_is(address: str, reach: str) -> None:
    assert reach_of(ipaddress.ip_address(address)) == reach


@pytest.mark.parametrize("host", ["fe80::1%25lo", "fec0::1%1", "[fe80::1%25eth0]"])
def test_an_address_with_a_zone_is_refused(host: str, settings: Settings) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = False
    with pytest.raises(Invalid):
        refuse_private(f"http://[{host.strip('[]')}]/v1", MODELS)


def test_only_the_named_private_hosts_and_networks_are_allowed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ALLOW_PRIVATE_MODEL_HOSTS = ("10.1.0.0/16", "ollama", "fd12::/16")
    for url in ("http://10.1.2.3/v1", "http://[::ffff:10.1.2.3]/v1", "http://[fd12::7]/v1"):
        refuse_private(url, MODELS)
    for url in ("http://10.2.0.1/v1", "http://127.0.0.1/v1", "http://[64:ff9b::a01:203]/v1"):
        with pytest.raises(Invalid, match="ALLOW_PRIVATE_MODEL_HOSTS"):
            refuse_private(url, MODELS)
    names(monkeypatch, "192.168.0.9")
    refuse_private("http://Ollama:11434/v1", MODELS)
    with pytest.raises(Invalid):
        refuse_private("http://vllm:8000/v1", MODELS)
    names(monkeypatch, "169.254.169.254")
    with pytest.raises(Invalid, match="never calls"):
        refuse_private("http://ollama:11434/v1", MODELS)
