"""Rows tried against a chat template, as a trainer renders them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from curation.exports.formats.row import Example, Row
from curation.exports.recipes.chat_template import TemplateText
from curation.exports.rows.messages import Message, with_objects
from judging.chat_template.template import ChatTemplate, Failure


class Tried(NamedTuple):
    """A row of a format, and why it fails, or None."""

    format: str
    failure: Failure | None


class Trial:
    """Tries rows, those with the same messages once. After `most` rows it tries no more."""

    def __init__(self, template: ChatTemplate, *, most: int | None = None) -> None:
        self._template, self._left = template, most
        self._example: Example | None = None
        self._known: dict[tuple[int, ...], Failure | None] = {}

    def try_out(self, name: str, row: Row, example: Example) -> list[Tried]:
        """Return the result for a row, or nothing after the last try."""
        if self._left is not None:
            if self._left <= 0:
                return []
            self._left -= 1
        if example is not self._example:
            self._example, self._known = example, {}
        failures = [self._side(row, side, example) for side in row.sides]
        return [Tried(name, next(filter(None, failures), None))]

    def _side(self, row: Row, side: Sequence[Message], example: Example) -> Failure | None:
        messages = [*row.prompt, *side]
        learned = [index for index in range(len(row.prompt), len(messages)) if messages[index]["role"] == "assistant"]
        learned = learned if side else list(example.conversation.approved)
        key = (*map(id, messages), -1, *learned)
        if key not in self._known:
            self._known[key] = self._template.try_out(with_objects(messages), example.tools, learned)
        return self._known[key]


@contextmanager
def open_trial(template: TemplateText | None, *, most: int | None = None) -> Iterator[Trial | None]:
    """Open a trial of at most so many rows, if there is a template. Raises `TemplateRefused`."""
    if template is None:
        yield None
        return
    with ChatTemplate(template.text) as opened:
        yield Trial(opened, most=most)
