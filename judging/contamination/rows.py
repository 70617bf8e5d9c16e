"""The rows to compare: rows of an evaluation, and training rows with everything that a trainer may read of them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

# Role and text of each message.
Messages = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """The compared parts of a row. `prompt` is every message before the answer, `length` their number, `opening` the
    first user message, `origins` are names of the row's sources."""

    prompt: str
    opening: str
    answer: str
    task_id: str = ""
    origins: frozenset[str] = frozenset()
    length: int = 1

    @classmethod
    def of(
        cls, messages: Messages, answer: str, task_id: str = "", origins: frozenset[str] = frozenset()
    ) -> "ComparedRow":
        """Return the row of an answer and the messages before it, each after its role."""
        prompt = "\n\n".join(f"{role}:\n{text}" for role, text in messages)
        return cls(prompt, opening_of(messages), answer, task_id, origins, len(messages))


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A conversation, or the two of a pair, which share their beginning. `line` counts from 0 in `file`;
    `made` is its one answer, where that is known."""

    sides: Sequence[Messages]
    task_id: str = ""
    origins: frozenset[str] = frozenset()
    line: int = 0
    file: str = ""
    made: ComparedRow | None = None

    @classmethod
    def of(cls, row: ComparedRow, line: int = 0) -> "TrainingRow":
        """Return a row whose one answer is known already."""
        return cls([[("user", row.prompt), ("assistant", row.answer)]], row.task_id, row.origins, line, made=row)

    @property
    def text(self) -> str:
        """All that the row says, each message once; nothing where its one answer is known."""
        if self.made is not None:
            return ""
        return "\n\n".join(text for start, side in self._parts() for _, text in side[start:])

    @property
    def opening(self) -> str:
        return opening_of(self.sides[0]) if self.sides else ""

    def answers(self, lengths: Collection[int]) -> Iterator[tuple[ComparedRow, bool]]:
        """Yield a row for each assistant message, and whether its prompt is compared as well.

        Of an earlier message it is if an evaluation has a prompt of so many messages (`lengths`); otherwise `prompt` is
        the message before it alone. What follows the last answer is a prompt without one.
        """
        if self.made is not None:
            yield self.made, True
            return
        for start, side in self._parts():
            last = max((place for place, (role, _) in enumerate(side) if role == "assistant"), default=-1)
            for place in range(start, len(side)):
                role, text = side[place]
                if role == "assistant":
                    is_whole = place == last or place in lengths
                    row = ComparedRow.of(side[:place] if is_whole else side[max(0, place - 1) : place], text)
                    yield ComparedRow(row.prompt, opening_of(side[:place]), text, self.task_id, self.origins), is_whole
            if side and last < len(side) - 1:
                yield ComparedRow.of(side, "", self.task_id, self.origins), True

    def _parts(self) -> Iterator[tuple[int, Messages]]:
        """Yield each side with the place of its first message that the side before does not have."""
        before: Messages = ()
        for side in self.sides:
            shared = (one == other for one, other in zip(before, side, strict=False))
            yield next((place for place, same in enumerate(shared) if not same), min(len(before), len(side))), side
            before = side


def opening_of(messages: Messages) -> str:
    """Return the first message of a user, which describes the task."""
    return next((text for role, text in messages if role == "user"), "")
