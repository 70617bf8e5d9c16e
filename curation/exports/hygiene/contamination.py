"""Contamination of an export: samples whose rows contain held-out rows, with the text that matches."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from curation.exports.formats.row import Example
from curation.exports.hygiene.embed import Paraphrases
from curation.exports.hygiene.held_out import (
    MOST_ROWS,
    HeldOut,
    compared_row,
    find_held_out,
    named_origins,
    read_messages,
    row_digest,
)
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.filter import FilteredSample
from curation.projects.models import Project
from curation.web.problems import Invalid
from judging.contamination.find import EvalRow, Match, contamination
from judging.contamination.levels import Level

# Characters of a prompt and of an answer that are kept.
_SHOWN = 1_000
# A shorter answer says nothing: with the same task, and by itself. Sessions on one machine share short commands.
_FEWEST_WORDS = {Level.TASK_ANSWER: 2, Level.ANSWER: 5}


@dataclass(frozen=True, slots=True)
class HeldOutMatch:
    """The held-out row that a sample contains: its number from 1, in which set, how it matches, the strongest way
    first, the end of its prompt and the beginning of its answer. `label` names the set for people."""

    held_out: str
    label: str
    row: int
    levels: tuple[Level, ...]
    prompt: str
    answer: str

    def __str__(self) -> str:
        """The match without texts, as frozen rows have it."""
        return f"{self.levels[0].value} {self.held_out} {self.row}"


def read_match(stored: str) -> dict[str, object]:
    """Return a match that frozen rows have, for `excluded.jsonl`."""
    level, held_out, row = stored.split(" ")
    return {"level": level, "held_out": held_out, "row": int(row)}


class _Reader:
    """Reads a held-out set."""

    def __init__(self, rows: Iterator[EvalRow], checkpoint: Callable[[], None]) -> None:
        self._rows, self._checkpoint = rows, checkpoint
        self.count = 0
        self.digest = hashlib.sha256()

    def __iter__(self) -> Iterator[EvalRow]:
        for row in self._rows:
            if self.count % 1_000 == 0:
                self._checkpoint()
            self.count += 1
            if self.count > MOST_ROWS:
                raise Invalid(f"A held-out set has more than {MOST_ROWS:,} rows. Compare with a part of it.")
            self.digest.update(row_digest(row))
            yield row


@dataclass(slots=True)
class HeldOutSets:
    """The held-out sets of a recipe, and what was found in them."""

    sets: Sequence[HeldOut]
    volatile: Sequence[str]
    paraphrases: Paraphrases | None = None
    matches: dict[int, HeldOutMatch] = field(default_factory=dict)
    figures: dict[str, dict[str, object]] = field(default_factory=dict)

    @classmethod
    def of(cls, project: Project, recipe: Recipe) -> "HeldOutSets":
        return cls(find_held_out(project, recipe.held_out), project.settings.evaluation.volatile)

    def compare(self, filtered: Iterable[FilteredSample], checkpoint: Callable[[], None]) -> None:
        """Compare the rows of some samples with all sets."""
        bare: list[EvalRow] = []
        samples: list[int] = []
        for one in filtered:
            if one.lines and one.example is not None:
                added = list(_compared(one.example, one.sample.instance_id))
                bare += added
                samples += [one.sample.sample_id] * len(added)
        close = self.paraphrases.of if self.paraphrases else {}
        for held_out in self.sets:
            made = held_out.made(sorted(set(samples)))
            rows = [
                replace(row, origins=row.origins | made[pk]) if pk in made else row
                for row, pk in zip(bare, samples, strict=True)
            ]
            reader = _Reader(held_out.rows(), checkpoint)
            for match in contamination(rows, reader, volatile=self.volatile, paraphrases=close):
                if _tells(match.levels, rows[match.row]):
                    self._add(samples[match.row], held_out, match)
            self.figures[held_out.name] = {
                "name": held_out.name,
                "label": held_out.label,
                "rows": reader.count,
                "sha256": reader.digest.hexdigest(),
            }

    def _add(self, sample_id: int, held_out: HeldOut, match: Match) -> None:
        known = self.matches.get(sample_id)
        order = list(Level)
        if known is None or order.index(match.levels[0]) < order.index(known.levels[0]):
            row = match.training
            self.matches[sample_id] = HeldOutMatch(
                held_out.name,
                held_out.label,
                match.train_row + 1,
                match.levels,
                row.prompt[-_SHOWN:],
                row.answer[:_SHOWN],
            )

    def as_json(self, matches: Mapping[int, HeldOutMatch], *, left_out: bool) -> dict[str, object]:
        """Return the figures of these matches as exports store them."""
        levels = Counter(match.levels[0] for match in matches.values())
        return {
            "held_out": list(self.figures.values()),
            "samples": len(matches),
            "levels": {level.value: levels[level] for level in Level},
            "left_out": left_out,
            "embedded": None if self.paraphrases is None else self.paraphrases.embedded,
            "not_embedded": None if self.paraphrases is None else self.paraphrases.missing,
        }


def _compared(example: Example, task_id: str) -> Iterator[EvalRow]:
    """Yield one row for each assistant message: a held-out row may be in the middle of a conversation."""
    messages = read_messages(example.conversation.messages)
    for number, (role, text) in enumerate(messages):
        if role == "assistant":
            yield compared_row(messages[:number], text, task_id, named_origins({"instance_id": task_id}))


def _tells(levels: Sequence[Level], row: EvalRow) -> bool:
    """Return whether a match is more than the same short answer, such as `exit` below the same first paragraph."""
    return levels[0].contaminates and len(row.answer.split()) >= _FEWEST_WORDS.get(levels[0], 0)
