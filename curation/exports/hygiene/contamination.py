"""Contamination of an export: samples whose rows contain held-out rows, with the text that matches."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from pydantic import Field

from curation.exports.formats.parts import tool_texts
from curation.exports.formats.row import Preference, TrainingExample
from curation.exports.hygiene.embed import Paraphrases
from curation.exports.hygiene.held_out import (
    MOST_ROWS,
    HeldOut,
    find_held_out,
    named_origins,
    read_messages,
    row_digest,
)
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.filter import FilteredSample
from curation.exports.rows.freeze import CHUNK
from curation.projects.models import Project
from curation.web.problems import Invalid
from curation.web.schemas import out
from judging.contamination.contain import Containment
from judging.contamination.find import Match, contamination
from judging.contamination.levels import Level
from judging.contamination.rows import ComparedRow, TrainingRow

# Characters of a prompt and of an answer that are kept.
_SHOWN = 1_000
# A held-out row may be in the middle of a conversation, so each prompt is compared.
_EVERY = range(1_000_000)
# A shorter answer says nothing: with the same task, and by itself. Sessions on one machine share short commands.
_FEWEST_WORDS = {Level.TASK_ANSWER: 2, Level.ANSWER: 5}


@out
class ContaminatedSampleOut:
    """`prompt` is the end and `answer` the beginning of the held-out row's text; at the level `contained`, `prompt` is
    the sample's text around it."""

    sample: str = Field(examples=["17"])
    held_out: str = Field(examples=["export/12/val"])
    label: str = Field(examples=["val of export 12"], description="Names the held-out set.")
    row: int = Field(examples=[3], description="The held-out row, counted from 1.")
    levels: list[str] = Field(examples=[["near"]], description="How it matches, the strongest way first.")
    prompt: str = Field()
    answer: str = Field()

    def __str__(self) -> str:
        """The match without texts, as frozen rows have it."""
        return f"{self.levels[0]} {self.held_out} {self.row}"

    @property
    def is_contained(self) -> bool:
        return self.levels[:1] == [Level.CONTAINED]

    @property
    def sentences(self) -> list[str]:
        return [Level(level).sentence for level in self.levels]


def read_match(stored: str) -> dict[str, object]:
    """Return a match that frozen rows have, for `excluded.jsonl`."""
    level, held_out, row = stored.split(" ")
    return {"level": level, "held_out": held_out, "row": int(row)}


class _Reader:
    """Reads a held-out set once; the first pass builds the index of matches that samples may contain."""

    def __init__(
        self, rows: Iterator[ComparedRow], checkpoint: Callable[[], None], containment: Containment | None
    ) -> None:
        self._rows, self._checkpoint, self._containment = rows, checkpoint, containment
        self.count = 0
        self.digest = hashlib.sha256()

    def __iter__(self) -> Iterator[TrainingRow]:
        for row in self._rows:
            if self.count % 1_000 == 0:
                self._checkpoint()
            self.count += 1
            if self.count > MOST_ROWS:
                raise Invalid(f"A held-out set has more than {MOST_ROWS:,} rows. Compare with a part of it.")
            self.digest.update(row_digest(row))
            if self._containment is not None:
                self._containment.add(row)
            yield TrainingRow.of(row, line=self.count - 1)


@dataclass(slots=True)
class HeldOutSets:
    """The held-out sets of a recipe, and the matches found in them."""

    sets: Sequence[HeldOut]
    volatile: Sequence[str]
    paraphrases: Paraphrases | None = None
    matches: dict[int, ContaminatedSampleOut] = field(default_factory=dict)
    figures: dict[str, dict[str, object]] = field(default_factory=dict)
    containments: dict[str, Containment] = field(default_factory=dict)

    @classmethod
    def of(cls, project: Project, recipe: Recipe) -> "HeldOutSets":
        return cls(find_held_out(project, recipe.held_out), project.settings.evaluation.volatile)

    def compare(self, filtered: Iterable[FilteredSample], checkpoint: Callable[[], None]) -> None:
        bare: list[ComparedRow] = []
        samples: list[int] = []
        texts: dict[int, tuple[str, str]] = {}
        for one in filtered:
            if one.lines and one.example is not None:
                sample = _conversations(one.example, one.sample.instance_id)
                added = [row for row, _ in sample.answers(_EVERY)]
                bare += added
                samples += [one.sample.sample_id] * len(added)
                texts[one.sample.sample_id] = sample.text, tool_texts(one.example.tools)
        close = self.paraphrases.of if self.paraphrases else {}
        for held_out in self.sets:
            made = held_out.made(sorted(set(samples)))
            rows = [
                replace(row, origins=row.origins | made[pk]) if pk in made else row
                for row, pk in zip(bare, samples, strict=True)
            ]
            known = self.containments.get(held_out.name)
            containment = self.containments.setdefault(held_out.name, Containment(self.volatile))
            reader = _Reader(held_out.rows(), checkpoint, None if known else containment)
            for match in contamination(rows, reader, volatile=self.volatile, paraphrases=close):
                if _tells(match.levels, rows[match.row]):
                    self._add(samples[match.row], held_out, match)
            if known is None:
                containment.without_common(text for text, _ in islice(texts.values(), CHUNK))
            # Samples share their tools.
            in_tools = {tools: [*containment.find(tools)] for _, tools in texts.values() if tools}
            for pk, (text, tools) in texts.items():
                for found in (*containment.find(text), *in_tools.get(tools, ())):
                    around = ComparedRow(found.excerpt, "", "")
                    self._add(pk, held_out, Match(0, found.row, (Level.CONTAINED,), around))
            self.figures[held_out.name] = {
                "name": held_out.name,
                "label": held_out.label,
                "rows": reader.count,
                "whole_only": containment.whole_only,
                "sha256": reader.digest.hexdigest(),
            }

    def _add(self, sample_id: int, held_out: HeldOut, match: Match) -> None:
        known = self.matches.get(sample_id)
        order = list(Level)
        if known is None or order.index(match.levels[0]) < order.index(Level(known.levels[0])):
            row = match.training
            self.matches[sample_id] = ContaminatedSampleOut(
                str(sample_id),
                held_out.name,
                held_out.label,
                match.train_row + 1,
                [level.value for level in match.levels],
                row.prompt[-_SHOWN:],
                row.answer[:_SHOWN],
            )

    def as_json(self, matches: Mapping[int, ContaminatedSampleOut], *, left_out: bool) -> dict[str, object]:
        levels = Counter(match.levels[0] for match in matches.values())
        looked_for = [level for level in Level if level != Level.PARAPHRASE or self.paraphrases is not None]
        return {
            "held_out": list(self.figures.values()),
            "samples": len(matches),
            "levels": {level.value: levels[level] for level in looked_for},
            "left_out": left_out,
            "embedded": None if self.paraphrases is None else self.paraphrases.embedded,
            "not_embedded": None if self.paraphrases is None else self.paraphrases.missing,
        }


def _conversations(example: TrainingExample, task_id: str) -> TrainingRow:
    """Return a sample's conversation, and the rejected side of each pair."""
    rejected = [found for found in example.preferences if isinstance(found, Preference)]
    sides = [example.messages, *([*pair.prompt, *pair.rejected] for pair in rejected)]
    origins = named_origins({"instance_id": task_id})
    return TrainingRow([read_messages(side) for side in sides], task_id, origins)


def _tells(levels: Sequence[Level], row: ComparedRow) -> bool:
    """Return whether a match is more than the same short answer, such as `exit` below the same first paragraph."""
    return levels[0].contaminates and len(row.answer.split()) >= _FEWEST_WORDS.get(levels[0], 0)
