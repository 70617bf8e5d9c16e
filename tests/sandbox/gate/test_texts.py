"""The wrong texts and archives that the gate puts in place of right ones."""

import io
import tarfile
import zipfile

from sandbox.gate.archives import wrong_insides
from sandbox.gate.edits import scripts_of
from sandbox.gate.foreign import (
    foreign_texts,
    literals_of,
    longer_line,
    other_answers,
    scrambled,
    stuffed,
    without_line,
)
from sandbox.gate.misread import texts_as_code
from sandbox.gate.state import PathEntry

TEXT = "ida,7\nbram,3\n"


def encrypted_zip() -> bytes:
    """An archive that says of its only file that it is encrypted."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a", "alpha\n")
    data = bytearray(packed.getvalue())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def test_scrambled_text_has_the_same_layout_and_none_of_the_words() -> None:
    wrong = scrambled(TEXT)
    assert [len(line) for line in wrong.splitlines()] == [5, 6]
    assert "," in wrong and not {"ida", "bram", "7", "3"} & set(wrong.replace("\n", ",").split(","))
    assert scrambled(TEXT, keep={"ida", "bram"}).startswith("ida,") and "7" not in scrambled(TEXT, keep={"ida"})


def test_foreign_texts_are_all_wrong_and_some_are_sorted() -> None:
    texts = [wrong for _, wrong in foreign_texts(TEXT, {"ida"})]
    assert TEXT not in texts and len(set(texts)) == len(texts)
    assert any(wrong.splitlines() == sorted(wrong.splitlines()) and len(wrong) == len(TEXT) for wrong in texts)


def test_a_stuffed_text_has_every_literal_on_a_line_of_its_own() -> None:
    checker = "grep -qx 'total 7' out || exit 1\nwant=\"a b\nc\"\ncat <<'END'\nfrom here\nEND\n"
    lines = stuffed(literals_of(checker)).splitlines()
    assert {"total 7", "a b", "c", "from here"} <= set(lines)
    assert all("foreign" in one or "foreign" in other for one, other in zip(lines, lines[1:], strict=False))


def test_a_line_is_left_out() -> None:
    assert without_line(TEXT, 0) == "bram,3\n"


def test_the_files_of_an_archive_are_changed_and_left_out_one_by_one() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("a", "b"):
            archive.writestr(name, f"{name}lpha\n")
    found = dict(wrong_insides(packed.getvalue(), ()))
    with zipfile.ZipFile(io.BytesIO(found["other contents in its b"])) as changed:
        assert changed.read("a") == b"alpha\n" and changed.read("b") != b"blpha\n"
    with zipfile.ZipFile(io.BytesIO(found["its a left out"])) as changed:
        assert changed.namelist() == ["b"]


def test_an_archive_keeps_its_names_and_loses_its_contents() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo("docs/a")
        info.size = 6
        archive.addfile(info, io.BytesIO(b"alpha\n"))
    found = dict(wrong_insides(packed.getvalue(), ()))
    assert len(found) == 3
    for data in found.values():
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            assert archive.getnames() == ["docs/a"]
            content = archive.extractfile("docs/a")
            assert content is not None and content.read() != b"alpha\n"
    kept = dict(wrong_insides(packed.getvalue(), ("alpha",)))
    assert len(kept) == 2, "the words of the checker are all that there is"
    assert list(wrong_insides(b"plain text\n", ())) == []
    assert list(wrong_insides(encrypted_zip(), ())) == []
    assert list(wrong_insides(b"\x1f\x8bno gzip", ())) == []


def test_edits_are_commands_that_a_person_can_read() -> None:
    state = {
        "/srv": PathEntry("folder", 0o755),
        "/srv/a": PathEntry("file", 0o644, b"old\n"),
        "/srv/b": PathEntry("file", 0o444),
    }
    edits = {
        "/srv/a": PathEntry("file", 0o644, b"it's\n"),
        "/srv/b": PathEntry("file"),
        "/srv/n/c": PathEntry("link", 0o777, b"/x"),
    }
    assert scripts_of({**edits, "/srv/gone": None}, state) == [
        "rm -rf -- /srv/gone\n"
        "printf '%s\\n' 'it'\"'\"'s' > /srv/a\n"
        "rm -rf /srv/b\n: > /srv/b\n"
        "mkdir -p /srv/n\nrm -rf /srv/n/c\nln -s /x /srv/n/c\n"
    ]


def test_large_content_is_split_into_commands_of_bounded_size() -> None:
    scripts = scripts_of(
        {"/srv/a": PathEntry("file", 0o644, bytes(range(256)) * 600)}, {"/srv": PathEntry("folder", 0o755)}
    )
    assert len(scripts) > 1 and max(map(len, scripts)) < 120 * 1024


def test_other_answers_are_the_values_that_the_checker_names_beside_the_right_one() -> None:
    script = 't=$(cat team.txt)\n[ "$t" = "disk sda" ] || grep -qxE \'^(red|blue dot)$\' team.txt || [ "$t" -eq 12 ]'
    assert {"blue dot\n", "disk sda\n"} <= {wrong for _, wrong in other_answers("red\n", script)}
    assert "red\n" in [wrong for _, wrong in other_answers("disk sda\n", script)]
    assert list(other_answers("12\n", script)) == list(other_answers("green\n", script)) == []


def test_a_line_gets_a_longer_word_at_either_end() -> None:
    assert [wrong for _, wrong in longer_line("a\n (b = 12)\n", 1)] == ["a\n (b = 122)\n", "a\n (bb = 12)\n"]


def test_a_decimal_number_gets_another_value_and_none_that_is_the_same_rounded() -> None:
    assert "8.296\n" in [wrong for _, wrong in foreign_texts("8.286\n", ())]
    assert [wrong for _, wrong in longer_line("0.50\n", 0)] == ["0.501\n", "10.50\n"]
    assert "58.\n" not in [wrong for _, wrong in texts_as_code("58.0\n")]
    script = 'case "$(cat mean)" in 8.285|8.286|9.286) exit 0 ;; esac'
    found = {wrong for _, wrong in other_answers("8.286\n", script)}
    assert "9.286\n" in found and "8.285\n" not in found
