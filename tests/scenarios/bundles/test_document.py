"""The allowed content of a bundle, and the place that a refusal names."""

import base64
import copy
from typing import Any

import pytest

from curation.scenarios.bundles.document import (
    MAX_FIXTURE_BYTES,
    Bundle,
    parse_bundle,
    setup_of,
    stored_bundle,
    terminal_of,
)
from curation.scenarios.taxonomy.axes import shipped_taxonomy, with_additions
from curation.web.problems import Invalid
from tests.factories import BUNDLE

GIVEN = {**BUNDLE, "name": "greeting"}


def bundle(**changes: Any) -> dict[str, Any]:
    """The believable bundle; a change to `...` leaves the key out."""
    given = {**copy.deepcopy(GIVEN), **changes}
    return {key: value for key, value in given.items() if value is not ...}


def file(path: str = "/srv/a", **values: Any) -> dict[str, Any]:
    return {"path": path, "content": "x", **values}


def refusals(document: object) -> dict[str, str]:
    with pytest.raises(Invalid) as refused:
        parse_bundle(document)
    assert refused.value.detail
    return {error.path: error.message for error in refused.value.errors}


def test_a_valid_bundle_is_parsed() -> None:
    read = parse_bundle(bundle(fixtures=[file(mode="0755")]))

    assert read.fixtures[0].mode == "755"
    assert read.axes == {**BUNDLE["axes"], "difficulty": 1}
    assert stored_bundle(read.document()) == read


def test_the_digest_is_of_what_it_means_not_of_how_it_is_spelt() -> None:
    one = parse_bundle(bundle(fixtures=[file(mode="0644")], env={}, seed=None))
    other = parse_bundle(dict(reversed(bundle(fixtures=[file()], env=..., seed=...).items())))

    assert one.sha256 == other.sha256 != parse_bundle(bundle(title="Another")).sha256


def test_what_may_be_left_out() -> None:
    needed = ("name", "announcement", "reference_solution", "checker", "expected_terminal")

    read = parse_bundle({key: GIVEN[key] for key in needed})

    assert (read.title, read.fixtures, read.axes, read.provider.name, read.seed) == ("", [], {}, "", None)


@pytest.mark.parametrize(
    ("document", "path", "said"),
    [
        ([], "", "JSON object"),
        (bundle(colour="red"), "colour", "unknown key"),
        (bundle(provider={"name": "todo", "url": "x"}), "provider.url", "unknown key"),
        (bundle(checker=...), "checker", "missing"),
        (bundle(checker=" \n"), "checker", "empty"),
        (bundle(name="a\nb"), "name", "control"),
        (bundle(name=" "), "name", "1 character"),
        (bundle(name="exit\u202etxe"), "name", "invisible"),
        (bundle(title="\x1b[31mred"), "title", "control"),
        (bundle(title=7), "title", "string"),
        (bundle(announcement={"kind": "mail", "text": "x"}), "announcement.kind", "'motd', 'banner', 'env' or 'file'"),
        (bundle(announcement={"kind": "motd", "text": ""}), "announcement.text", "1 character"),
        (bundle(announcement={"kind": "env", "text": "HOME=/tmp"}), "announcement.text", "set by the sandbox"),
        (bundle(env={"1A": "x"}), "env.1A", "not begin with a digit"),
        (bundle(env={"A=B": "x"}), "env.A=B", "letters"),
        (bundle(env={"HOME": "/srv"}), "env.HOME", "set by the sandbox"),
        (bundle(env={"A": 1}), "env.A", "string"),
        (bundle(env={"A": "x\0"}), "env.A", "NUL"),
        (bundle(checker="x\ud800"), "checker", "surrogate"),
        (bundle(axes={"colour": "red"}), "axes.colour", "unknown axis; the axes of this project are task, provider"),
        (bundle(axes={"doc_depth": "deep"}), "axes.doc_depth", "one of help, usage-error, man-page, layered"),
        (bundle(axes={"difficulty": 6}), "axes.difficulty", "one of 1, 2, 3, 4, 5"),
        (bundle(axes={"difficulty": True}), "axes.difficulty", "integer"),
        (bundle(axes={"task": ["cleanup"]}), "axes.task", "string"),
        (bundle(expected_terminal="stop"), "expected_terminal", "'exit' or 'panic'"),
        (bundle(expected_terminal="panic"), "reference_solution", "ends in exit"),
        (bundle(reference_solution="echo done"), "reference_solution", "last line"),
        (bundle(seed=2**70), "seed", "9223372036854775807"),
        (bundle(seed="1"), "seed", "integer"),
    ],
)
def test_an_error_has_the_path_of_its_field(document: object, path: str, said: str) -> None:
    found = refusals(document)

    assert list(found) == [path]
    assert said in found[path]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("notes.txt", "absolute"),
        ("/etc/passwd", "below /home/agent, /srv"),
        ("/usr/bin/todo", "below"),
        ("/home/agent/../../etc/passwd", "`..`"),
        ("/srv/./a", "`.`"),
        ("/srv//a", "`//`"),
        ("/srv/a/", "not a directory"),
        ("/srv", "is a directory"),
        ("/usr/local", "is a directory"),
        ("/home/agents/a", "below"),
        ("/srv/a\nb", "control"),
        ("/srv/" + "a" * 256, "255 bytes"),
    ],
)
def test_a_path_outside_the_roots_is_refused(path: str, said: str) -> None:
    assert said in refusals(bundle(fixtures=[file(path)]))["fixtures.0.path"]


@pytest.mark.parametrize("mode", ["4755", "1777", "789", "rwx", "0o755", "", 755])
def test_a_mode_is_plain_permissions(mode: object) -> None:
    assert list(refusals(bundle(fixtures=[file(mode=mode)]))) == ["fixtures.0.mode"]


def test_places_that_collide() -> None:
    twice = refusals(bundle(fixtures=[file("/srv/a"), file("/srv/a")]))
    below = refusals(bundle(fixtures=[file("/srv/a/b/c"), file("/srv/a")]))
    announced = bundle(announcement={"kind": "file", "text": "x"}, fixtures=[file("/home/agent/NOTICE")])
    variable = bundle(announcement={"kind": "env", "text": "ask todo"}, env={"NOTICE": "x"})

    assert twice == {"fixtures.1.path": "fixtures.0 has the same path"}
    assert below == {"fixtures.0.path": "is below /srv/a, which is a file"}
    assert refusals(announced) == {"fixtures.0.path": "the announcement has the same path"}
    assert refusals(variable) == {"env.NOTICE": "the announcement sets this variable"}


def test_content_or_base64_one_of_the_two() -> None:
    assert "either `content` or `base64`" in refusals(bundle(fixtures=[{"path": "/srv/a"}]))["fixtures.0"]
    assert "either `content` or `base64`" in refusals(bundle(fixtures=[file(base64="AA==")]))["fixtures.0"]
    assert "base64" in refusals(bundle(fixtures=[{"path": "/srv/a", "base64": "A*=="}]))["fixtures.0.base64"]
    assert "base64" in refusals(bundle(fixtures=[file(content="a\0b")]))["fixtures.0.content"]


def test_fixtures_are_bounded_in_all() -> None:
    half = "x" * (MAX_FIXTURE_BYTES // 2)
    parse_bundle(bundle(fixtures=[file("/srv/a", content=half), file("/srv/b", content=half)]))

    found = refusals(bundle(fixtures=[file("/srv/a", content=half), file("/srv/b", content=half), file("/srv/c")]))

    assert found == {"fixtures": "262,145 bytes in total; at most 262,144 are allowed"}


def test_all_errors_are_reported_at_once() -> None:
    found = refusals(bundle(fixtures=[file("/etc/a"), file(mode="4755")], checker=..., colour=1))

    assert set(found) == {"fixtures.0.path", "fixtures.1.mode", "checker", "colour"}


def test_a_document_of_a_thousand_levels_is_refused_and_not_followed() -> None:
    deep: object = "x"
    for _ in range(5000):
        deep = [deep]

    assert "nested" in next(iter(refusals(bundle(fixtures=deep)).values()))


@pytest.mark.parametrize(
    ("reference", "body", "terminal", "reason"),
    [
        ("exit", "", "exit", ""),
        ("ls\nexit 0\n\n# done\n", "ls", "exit", ""),
        ("  panic no such disk  ", "", "panic", "no such disk"),
        ("cat <<E\nexit\nE\npanic", "cat <<E\nexit\nE", "panic", ""),
    ],
)
def test_a_reference_is_its_body_and_its_terminal(reference: str, body: str, terminal: str, reason: str) -> None:
    ending = terminal_of(reference)

    assert ending is not None
    assert (ending.body, ending.terminal, ending.reason) == (body, terminal, reason)


@pytest.mark.parametrize("reference", ["", "# exit", "exit 1", "exit; ls", "ls && exit", "panicked", "exitnow"])
def test_what_is_no_terminal(reference: str) -> None:
    assert terminal_of(reference) is None


def announced(kind: str, text: str) -> Bundle:
    return parse_bundle(bundle(announcement={"kind": kind, "text": text}, env={"LANG": "C"}))


def test_the_announcement_is_placed_by_its_kind() -> None:
    assert setup_of(announced("motd", "ask todo")).motd == "ask todo\n"
    assert setup_of(announced("banner", "ask todo\n")).banner == "ask todo\n"
    assert setup_of(announced("env", "ask todo")).env == {"LANG": "C", "NOTICE": "ask todo"}
    assert setup_of(announced("env", "WORK_FROM=todo list")).env == {"LANG": "C", "WORK_FROM": "todo list"}
    note = setup_of(announced("file", "ask todo")).fixtures[-1]
    assert (note.path, note.content, note.mode) == ("/home/agent/NOTICE", b"ask todo\n", 0o644)


def test_fixtures_become_bytes_and_permissions() -> None:
    binary = {"path": "/srv/b", "base64": base64.b64encode(b"\0\xff").decode(), "mode": "600"}
    setup = setup_of(parse_bundle(bundle(fixtures=[file("/srv/ä", content="ä", mode="0755"), binary])))

    assert [(f.path, f.content, f.mode) for f in setup.fixtures] == [
        ("/srv/ä", "ä".encode(), 0o755),
        ("/srv/b", b"\0\xff", 0o600),
    ]


def test_a_project_may_add_axes_and_values() -> None:
    wider = with_additions(shipped_taxonomy(), {"task": ["deploy"], "shell": ["dash"]})

    read = parse_bundle(bundle(axes={"task": "deploy", "shell": "dash", "difficulty": "3"}), taxonomy=wider)

    assert read.axes == {"task": "deploy", "shell": "dash", "difficulty": 3}
