"""The form in which a part of a transcript is shown."""

import re

import pytest

from curation.web.text.markup import arguments_of, command_of, form_of, is_edit, is_test, line_diff, part_html

DIFF = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old = '<b>'\n+new = 1\n"
NOTES = "# Findings\n\n- one\n\n## Next\n\nRun `make`.\n"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("total 4\n-rw-r--r-- a.csv\n", "terminal"),
        (DIFF, "diff"),
        ("*** Begin Patch\n*** Update File: a.py\n@@\n-a\n+b\n*** End Patch", "diff"),
        ('{"rows": [1, 2]}', "json"),
        ('[{"id": 1}]\n', "json"),
        ("{not json}", "terminal"),
        ("[1] 4021\n", "terminal"),
        (NOTES, "markdown"),
        ("# a comment of a script\nset -e\n", "terminal"),
        ("[" * 100_000 + "]" * 100_000, "terminal"),
        ("", "terminal"),
    ],
)
def test_an_output_is_shown_as_what_it_is(text: str, form: str) -> None:
    assert form_of(text) == form


@pytest.mark.parametrize(
    ("function", "arguments", "command"),
    [
        ("bash", {"command": "ls -la"}, "ls -la"),
        ("bash_command", {"keystrokes": "ls\n", "duration": 0.5}, "ls\n"),
        ("shell", {"command": ["bash", "-lc", "pytest -q"]}, "pytest -q"),
        ("shell", {"command": ["git", "log", "--format=%h %s"]}, "git log '--format=%h %s'"),
        ("execute_ipython", {"code": "1 + 1"}, "1 + 1"),
        ("str_replace_editor", {"command": "view", "path": "a.py"}, None),
        ("lookup", {"code": "de"}, None),
        ("finish", {}, None),
    ],
)
def test_a_call_that_runs_a_command(function: str, arguments: dict[str, object], command: str | None) -> None:
    assert command_of(function, arguments) == command


def test_an_edit_is_a_path_and_a_diff() -> None:
    given = {"command": "str_replace", "path": "/a.py", "old_str": "a\nb\nc\n", "new_str": "a\nB\nc\n"}
    fields = {field.name: (field.form, field.text) for field in arguments_of("edit", given)}
    assert fields["edit"] == ("diff", " a\n-b\n+B\n c") and fields["path"] == ("text", "/a.py")
    assert fields["command"] == ("text", "str_replace") and list(fields)[0] == "path"
    several = {
        "file_path": "a",
        "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}],
    }
    assert [field.text for field in arguments_of("multi_edit", several)] == ["a", "-1\n+2\n@@\n-3\n+4"]


def test_other_arguments_are_fields_of_their_own() -> None:
    fields = list(arguments_of("search", {"query": "x", "limit": 3, "where": {"lang": "py"}, "patch": DIFF}))
    assert [(field.name, field.form) for field in fields] == [
        ("query", "text"),
        ("limit", "text"),
        ("where", "json"),
        ("patch", "diff"),
    ]
    assert fields[1].text == "3" and fields[2].text == '{\n  "lang": "py"\n}'


def test_a_diff_has_the_lines_around_a_change() -> None:
    before = "".join(f"{number}\n" for number in range(20))
    assert line_diff(before, before.replace("10\n", "ten\n")) == " 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13"
    assert line_diff("", "new\n") == "+new" and line_diff("same", "same") == " same"


def test_edits_and_tests_are_known() -> None:
    assert is_edit("edit", {"path": "a", "old_str": "1", "new_str": "2"})
    assert is_edit("create_file", {"path": "a", "content": "x"}) and not is_edit("read_file", {"path": "a"})
    assert is_edit("bash", {"command": "sed -i s/a/b/ x.py"}) and is_edit(
        "bash", {"command": "cat > a.py <<'EOF'\nx\nEOF"}
    )
    assert not is_edit("bash", {"command": "cat a.py | grep x"})
    assert all(map(is_test, ("pytest -q tests", "python -m unittest", "npm run test", "go test ./...", "make test")))
    assert not is_test("cat tests/latest.log")


def test_a_diff_is_drawn_by_line_and_harmless() -> None:
    html = part_html("diff", DIFF)
    assert '<span class="diff__line diff__line--del">old = &#x27;&lt;b&gt;&#x27;</span>' in html
    assert '<span class="diff__line diff__line--add">new = 1</span>' in html and html.count("diff__line--hunk") == 4
    at = DIFF.index("new = 1")
    assert '<mark class="leak">new</mark> = 1' in part_html("diff", DIFF, [(at, at + 3)])


def test_markdown_is_drawn_without_what_could_act() -> None:
    html = part_html("markdown", "# A\n\n## B\n\n<script>x</script> ![i](http://evil/x.png) [l](javascript:x) \u202e")
    assert re.search(r"<h2>A</h2>", html) and "<script" not in html and "<img" not in html
    assert "javascript:" not in html.replace("[l](javascript:x)", "") and "\u202e" not in html
