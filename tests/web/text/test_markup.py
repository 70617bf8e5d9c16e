import re

from hypothesis import given
from hypothesis import strategies as st

from curation.review.workspace.diff import diff_html, unified_diff, word_diff
from curation.web.text.markup import answer_segments, code_html, marked, visible


def plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


def test_control_sequences_are_shown_and_line_ends_kept() -> None:
    assert visible("a\r\nb\tc") == "a\nb\tc"
    assert visible("\x1b[31mred") == '<span class="control">␛[31m</span>red'
    assert plain(visible("\x00\x7f\u202e\x9b")) == "␀␡⟨U+202E⟩⟨U+009B⟩"


@given(st.text())
def test_nothing_that_acts_is_left_in_any_text(text: str) -> None:
    html = plain(visible(text))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e<>]", html)


def test_an_answer_is_cut_into_text_and_commands_without_the_fences() -> None:
    segments = answer_segments("THOUGHT: look.\n\n```bash\nls -la\n```\nthen\n```python\nx = 1\n```")
    assert [(s.kind, plain(s.html)) for s in segments] == [
        ("text", "THOUGHT: look."),
        ("command", "ls -la"),
        ("text", "then"),
        ("code", "x = 1\n"),
    ]


def test_a_fence_inside_a_heredoc_is_part_of_the_command() -> None:
    text = "THOUGHT: doc.\n\n```bash\ncat > a.md <<'EOF'\n```\nx\n```\nEOF\n```"
    assert [s.kind for s in answer_segments(text)] == ["text", "command"]


@given(st.text(alphabet="ab<& \n'$(){}#|;"), st.data())
def test_marks_and_colours_lose_no_character(script: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(script)))
    spans = [(start, data.draw(st.integers(start, len(script))))]
    escaped = plain(visible(script.rstrip("\n")))
    assert plain(code_html(script, spans)) == escaped
    assert plain(marked(script, spans)) == plain(visible(script))


def test_a_mark_covers_its_span_through_tokens() -> None:
    html = code_html("grep name src", [(2, 9)])
    assert "".join(re.findall(r'<mark class="leak">(.*?)</mark>', html)) == "ep name"


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_word_diff_holds_both_texts(before: str, after: str) -> None:
    pieces = word_diff(before, after)
    assert "".join(p.text for p in pieces if p.kind != "add") == before
    assert "".join(p.text for p in pieces if p.kind != "del") == after


def test_each_side_shows_its_own_words() -> None:
    pieces = word_diff("cat a.py", "cat b.py")
    assert diff_html(pieces, show="del") == "cat <del>a</del>.py"
    assert diff_html(pieces, show="add") == "cat <ins>b</ins>.py"


def test_texts_of_a_megabyte_are_compared_in_time() -> None:
    before = "".join(f"line {n}\n" for n in range(100_000))
    assert [p.kind for p in word_diff(before, before + "more\n")] == ["", "add"]


def test_a_unified_diff_names_no_files() -> None:
    assert unified_diff("a\nb", "a\nc").splitlines() == ["@@ -1,2 +1,2 @@", " a", "-b", "+c"]
