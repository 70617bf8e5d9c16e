"""Sift: frozen samples in, rows and reasons out. Preview and writing both go through here, so they cannot differ."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from curation.duels.models import Exclusion
from curation.exports.formats import FORMATS, Row
from curation.exports.hygiene import Facts, Frozen, Reason, answer_reason, estimated_tokens, sample_reason
from curation.exports.messages import BadHistory, conversation
from curation.exports.reading import Texts, parsed, read_facts, read_texts
from curation.exports.recipe import Recipe
from curation.exports.splits import split_of
from curation.exports.turns import Turn
from curation.projects.models import Project
from curation.review.models import Pick
from curation.review.outcome import Outcome, Reviewed
from curation.samples.models import UNSCORED

CHUNK = 1_000
_DRAW = Pick.DRAW.value


class Line(NamedTuple):
    """A row as bytes, its newline included, and its file: format, split, whether messages have tool-call keys."""

    format: str
    split: str
    tools: bool
    source: str
    data: bytes


class LeftOut(NamedTuple):
    """A reason, and the formats in which it keeps the sample out."""

    reason: Reason
    formats: tuple[str, ...]


class Sifted(NamedTuple):
    """What became of one frozen sample."""

    frozen: Frozen
    lines: list[Line]
    left_out: list[LeftOut]


class Sieve:
    """One recipe over one project; what all samples share is read once."""

    def __init__(self, project: Project, recipe: Recipe) -> None:
        self._recipe = recipe
        self._sources = tuple(recipe.sources)
        self._formats = [FORMATS[name] for name in recipe.formats]
        self._only = recipe.only_split()
        self._excluded = frozenset(Exclusion.objects.filter(project=project).values_list("instance_id", flat=True))

    def sift(self, chunk: Sequence[Frozen]) -> Iterator[Sifted]:
        """One result per frozen row, in the same order, which is that of the samples; four queries for the chunk."""
        facts = read_facts(chunk)
        reasons = [self._unfit(facts.get(frozen.sample_id)) for frozen in chunk]
        fit = [frozen.sample_id for frozen, reason in zip(chunk, reasons, strict=True) if reason is None]
        reviewed, texts = Reviewed(fit), read_texts(fit)
        for frozen, reason in zip(chunk, reasons, strict=True):
            sifted = Sifted(frozen, [], [])
            if reason is None:
                reason = self._rows(sifted, facts[frozen.sample_id], reviewed, next(texts))
            if reason is not None:
                sifted.left_out.append(LeftOut(reason, tuple(self._recipe.formats)))
            yield sifted

    def _unfit(self, facts: Facts | None) -> Reason | None:
        return Reason.CHANGED if facts is None else sample_reason(facts, self._excluded)

    def _rows(self, sifted: Sifted, facts: Facts, reviewed: Reviewed, texts: Texts | None) -> Reason | None:
        """Adds the sample's lines, or says why it has none in any format."""
        if texts is None:
            return Reason.NO_ANSWER
        outcome = reviewed.outcome(facts.sample_id, texts.candidate, texts.opponent)
        if not outcome.reviewers:
            return Reason.NOT_APPROVED
        if outcome.revision_id != sifted.frozen.revision_id:
            return Reason.CHANGED
        refused = answer_reason(outcome.chosen_text)
        if refused is not None:
            return refused
        try:
            history = conversation(parsed(texts.history))
        except BadHistory as bad:
            return bad.reason
        draw = outcome.pick == _DRAW
        turn = Turn(history, outcome.chosen_text, outcome.rejected_text, outcome.replaced_text, draw)
        group = getattr(facts, self._recipe.group_by) or texts.place
        split = self._split(group)
        metadata = _metadata(facts, outcome) if self._recipe.metadata else {}
        self._format_rows(sifted, turn, split, metadata)
        return None

    def _format_rows(self, sifted: Sifted, turn: Turn, split: str, metadata: dict[str, object]) -> None:
        out: dict[Reason, list[str]] = {}
        lines, tools = sifted.lines, turn.prompt.tools
        for form in self._formats:
            for row in form.rows(turn, self._sources):
                data = self._written(row, metadata) if isinstance(row, Row) else row
                if isinstance(data, Reason):
                    out.setdefault(data, []).append(form.name)
                elif isinstance(row, Row):
                    lines.append(Line(form.name, split, tools, row.source, data))
        if out:
            sifted.left_out.extend(LeftOut(reason, tuple(dict.fromkeys(names))) for reason, names in out.items())

    def _split(self, group: str) -> str:
        return self._only or split_of(group, seed=self._recipe.seed, shares=self._recipe.splits)

    def _written(self, row: Row, metadata: dict[str, object]) -> bytes | Reason:
        limit = self._recipe.max_tokens
        if limit is not None and estimated_tokens(row.characters) > limit:
            return Reason.TOO_LONG
        try:
            return orjson.dumps(row.body | metadata if metadata else row.body, option=orjson.OPT_APPEND_NEWLINE)
        except orjson.JSONEncodeError:
            return Reason.NOT_UTF8


def _metadata(facts: Facts, outcome: Outcome) -> dict[str, object]:
    """The columns of `metadata: true`. A score that was never given is -1, since a column of nulls has no type."""
    return {
        "id": str(facts.sample_id),
        "source": facts.source,
        "score": UNSCORED if facts.score is None else float(facts.score),
        "bucket": facts.bucket,
        "reviewers": list(outcome.reviewers),
        "run": "" if facts.run_id is None else str(facts.run_id),
    }
