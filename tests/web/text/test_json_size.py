"""Bodies whose values would take all memory, or a thread for a minute, are refused before they are parsed."""

import time

import pytest
from django.test import Client

from curation.web.problems import Invalid, Problem, TooLarge
from curation.web.text.storable import MOST_VALUES, read_json
from tests.factories import make_bearer, make_project, make_user

BOMBS = {
    "lists": b"[" + b"[]," * 1_500_000 + b"[]]",
    "objects": b"[" + b"{}," * 1_500_000 + b"{}]",
    "towers": b"[" + (b"[" * 60 + b"]" * 60 + b",") * 30_000 + b"[]]",
    "numbers": b'{"ids":[' + b"1," * 2_000_000 + b"1]}",
    "names": b"{" + b'"":1,' * 1_500_000 + b'"":1}',
    "a string without an end": b"[" + b"0," * 1_500_000 + b'"' + b'\\"' * 50_000,
    "half an escape at the end": b"[" + b"0," * 1_500_000 + b'"' + b'\\"' * 50_000 + b"\\",
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("as_text", [False, True])
def test_too_many_values_are_refused_at_once(name: str, as_text: bool) -> None:
    body = BOMBS[name]
    began = time.process_time()
    with pytest.raises(TooLarge):
        read_json(body.decode() if as_text else body)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_values_are_not_hidden_in_another_encoding(encoding: str) -> None:
    """`∀` has the byte of a quotation mark: all after it would be a string without an end."""
    with pytest.raises(Problem, match="not JSON"):
        read_json(("{" + '"∀":[' + "1," * 2_000 + "1]}").encode(encoding))


def test_as_many_as_are_allowed_are_read_soon() -> None:
    body = b"[" + b"[]," * (MOST_VALUES // 2 - 2) + b"[]]"
    began = time.process_time()
    assert len(read_json(body)) == MOST_VALUES // 2 - 1
    assert time.process_time() - began < 5


def test_signs_in_a_text_are_no_values() -> None:
    assert read_json(b'{"text":"' + b"[,{" * 1_000_000 + b'"}') == {"text": "[,{" * 1_000_000}


@pytest.mark.parametrize("depth", [65, 900, 100_000])
@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_refused(depth: int, opens: str, closes: str) -> None:
    inner = "[]" if opens == "[" else "{}"
    with pytest.raises(Invalid):
        read_json(opens * depth + inner + closes * depth)


def test_a_wrong_value_is_still_named() -> None:
    with pytest.raises(Problem) as refused:
        read_json(b'{"a":[1,{"b":"\\u0000"}]}')
    assert refused.value.errors[0].path == "a.1.b"


@pytest.mark.django_db
@pytest.mark.parametrize("name", BOMBS)
def test_a_call_gets_413(client: Client, name: str) -> None:
    user = make_user()
    make_project("acme", user=user)
    answer = client.post(
        "/api/v1/tokens", BOMBS[name], content_type="application/json", headers=make_bearer(user, "read")
    )
    assert (answer.status_code, answer.json()["code"]) == (413, TooLarge.code)
