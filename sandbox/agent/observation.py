"""The fields of a server's observation that an agent is shown, and their text."""

import re
from collections.abc import Mapping, Sequence

# Fields that an episode is scored by are never shown to an agent, at any depth.
SCORING = re.compile(
    r"criteri|(?<!un)expected|solution|answer|(?<!p)reference|rubric|ground_truth|grader|checker", re.IGNORECASE
)
# Fields of the server that are not part of the observation.
BESIDE = frozenset({"done", "reward", "metadata"})
# The most of a field that an agent is shown: as much text as of a shell, and no picture as numbers or as characters.
LONGEST_TEXT, LONGEST_DATA, MOST_NUMBERS = 64 * 1024, 512, 2_000
DATA = re.compile(r"data:[\w/+.;=-]{1,80},\S+|(?=\S*[A-Z])(?=\S*[a-z])(?=\S*\d)[A-Za-z0-9+/_-]+={0,2}")


def visible(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields that an agent may see: not empty, and none that it is scored by, at any depth."""
    return {
        name: _seen(value)
        for name, value in fields.items()
        if not (name in BESIDE or SCORING.search(name) or value is None or value == "")
    }


def _seen(value: object) -> object:
    """A value without fields that score. A text that is too long to read, and data that is no text, are described."""
    if isinstance(value, dict):
        return {name: _seen(inner) for name, inner in value.items() if not SCORING.search(name)}
    if isinstance(value, list):
        return f"({size} numbers, not shown)" if (size := _numbers(value)) > MOST_NUMBERS else [*map(_seen, value)]
    if isinstance(value, str) and len(value) > LONGEST_DATA and DATA.fullmatch(value):
        return f"({len(value):,} characters of data, not shown)"
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        left_out = len(value) - LONGEST_TEXT
        return f"{value[: LONGEST_TEXT // 2]}\n({left_out:,} characters not shown)\n{value[-(LONGEST_TEXT // 2) :]}"
    return value


def _numbers(values: Sequence[object]) -> int:
    """How many numbers a list or a list of lists has; 0 if it has anything else."""
    counts = [_numbers(value) if isinstance(value, list) else int(isinstance(value, int | float)) for value in values]
    return sum(counts) if all(counts) else 0


def visible_text(fields: Mapping[str, object]) -> str:
    """One line per field; nested fields as `name.inner`."""
    lines: list[str] = []

    def write(values: Mapping[str, object], before: str) -> None:
        for name, value in values.items():
            if (result := tool_result(value)) is not None:
                lines.append(f"{before}{name}: {result}")
            elif isinstance(value, dict) and value:
                write(value, f"{before}{name}.")
            else:
                lines.append(f"{before}{name}: {value}")

    write(visible(fields), "")
    return "\n".join(lines)


def tool_result(value: object) -> str | None:
    """The text of an MCP tool's result, None for anything else. Its other fields repeat the text as data."""
    content = value.get("content") if isinstance(value, dict) and ("is_error" in value or "isError" in value) else None
    if not isinstance(content, list) or not content:
        return None
    texts = [str(part.get("text", part)) if isinstance(part, dict) else str(part) for part in content]
    return "\n".join(texts)
