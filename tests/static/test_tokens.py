"""The colours can be read: WCAG 2.2 AA in both themes."""

import re
from pathlib import Path

import pytest

TOKENS = Path(__file__).resolve().parents[2] / "static" / "css" / "tokens.css"
PAIR = re.compile(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
SURFACES = ("bg-sunken", "bg", "bg-raised", "bg-hover", "bg-active", "bg-code", "accent-soft")
TONES = ("good", "bad", "borderline", "attention")
CODE = ("code-keyword", "code-string", "code-number", "code-name", "code-comment")


def _luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, 0 to 1 (WCAG 2.2, definition of relative luminance)."""
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture(params=[0, 1], ids=["light", "dark"])
def colours(request: pytest.FixtureRequest) -> dict[str, str]:
    return {name: (light, dark)[request.param] for name, light, dark in PAIR.findall(TOKENS.read_text())}


def test_text_can_be_read_on_every_surface(colours: dict[str, str]) -> None:
    texts = ("text", "text-2", "text-3", "accent", *TONES, *CODE)
    poor = {
        f"{text} on {surface}": ratio
        for text in texts
        for surface in SURFACES
        if (ratio := _contrast(colours[text], colours[surface])) < 4.5
    }
    assert poor == {}


@pytest.mark.parametrize("tone", TONES)
def test_a_tone_can_be_read_on_its_own_surface(colours: dict[str, str], tone: str) -> None:
    for text in (tone, "text", "text-2"):
        assert _contrast(colours[text], colours[f"{tone}-soft"]) >= 4.5, text


def test_the_primary_button_can_be_read(colours: dict[str, str]) -> None:
    assert _contrast(colours["on-accent"], colours["accent"]) >= 4.5
    assert _contrast(colours["on-accent"], colours["accent-hover"]) >= 4.5


def test_a_field_is_seen_before_it_is_used(colours: dict[str, str]) -> None:
    assert _contrast(colours["line-field"], colours["bg"]) >= 3
