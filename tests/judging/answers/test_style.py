"""Markdown and courtesies of an answer."""

import pytest

from judging.answers.facts import Style, style_of


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("THOUGHT: I look first.\n\n```bash\n# a comment\nls -la | grep '**x**'\n```", Style(0, 0)),
        ("## Plan\n- one\n- **two**\n1. `three`", Style(6, 0)),
        ("Thanks for the question! I am happy to help. Please run it.", Style(0, 3)),
        ("I unpleasantly glance at thankless code.", Style(0, 0)),
    ],
)
def test_markdown_outside_of_code_and_courtesies_are_counted(text: str, style: Style) -> None:
    assert style_of(text) == style
