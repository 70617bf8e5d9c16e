"""Sift: frozen samples in, rows and reasons out. Preview and writing both go through here, so they cannot differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import orjson

from curation.duels.models import Exclusion
from curation.exports.formats import FORMATS, Row
from curation.exports.hygiene import Facts, Reason, answer_reason, estimated_tokens, sample_reason
from curation.exports.messages import BadHistory, conversation
from curation.exports.models import FrozenRow
from curation.exports.reading import Prompt, read_facts, read_prompts
from curation.exports.recipe import Recipe
from curation.exports.splits import split_of
from curation.exports.turns import Turn
from curation.projects.models import Project
from curation.review.models import Pick
from curation.review.outcome import Outcome, outcomes
from curation.samples.models import UNSCORED

CHUNK = 1_000


@dataclass(frozen=True, slots=True)
class Line:
    """A row as bytes, its newline included, and its file: format, split, whether messages have tool-call keys."""

    format: str
    split: str
    tools: bool
    source: str
    data: bytes


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A reason, and the formats in which it keeps the sample out."""

    reason: Reason
    formats: tuple[str, ...]


@dataclass(slots=True)
class Sifted:
    """What became of one frozen sample."""

    frozen: FrozenRow
    lines: list[Line] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


class Sieve:
    """One recipe over one project; what all samples share is read once."""

    def __init__(self, project: Project, recipe: Recipe) -> None:
        self._recipe = recipe
        self._sources = tuple(recipe.sources)
        self._formats = [FORMATS[name] for name in recipe.formats]
        self._excluded = frozenset(Exclusion.objects.filter(project=project).values_list("instance_id", flat=True))

    def sift(self, chunk: Sequence[FrozenRow]) -> Iterator[Sifted]:
        """One result per frozen row, in the same order; a handful of queries for the whole chunk."""
        facts = read_facts(chunk)
        fit = [f.sample_id for f in facts.values() if sample_reason(f, self._excluded) is None]
        found = outcomes(fit)
        prompts = read_prompts(fit)
        for frozen in chunk:
            sifted = Sifted(frozen)
            known = facts.get(frozen.sample_id)
            reason = sample_reason(known, self._excluded) if known else Reason.CHANGED
            if reason is None and known is not None:
                outcome = found.get(frozen.sample_id)
                reason = self._rows(sifted, known, outcome, prompts.get(frozen.sample_id))
            if reason is not None:
                sifted.left_out.append(LeftOut(reason, tuple(self._recipe.formats)))
            yield sifted

    def _rows(self, sifted: Sifted, facts: Facts, outcome: Outcome | None, prompt: Prompt | None) -> Reason | None:
        """Adds the sample's lines, or says why it has none in any format."""
        if outcome is None or prompt is None:
            return Reason.NO_ANSWER
        if outcome.decided_at is None:
            return Reason.NOT_APPROVED
        if outcome.revision_id != sifted.frozen.revision_id:
            return Reason.CHANGED
        refused = answer_reason(outcome.chosen_text)
        if refused is not None:
            return refused
        try:
            history = conversation(prompt.history)
        except BadHistory as bad:
            return bad.reason
        draw = outcome.pick == Pick.DRAW
        turn = Turn(history, outcome.chosen_text, outcome.rejected_text, outcome.replaced_text, draw)
        group = getattr(facts, self._recipe.group_by) or prompt.place
        split = split_of(group, seed=self._recipe.seed, shares=self._recipe.splits)
        metadata = _metadata(facts, outcome) if self._recipe.metadata else {}
        self._format_rows(sifted, turn, split, metadata)
        return None

    def _format_rows(self, sifted: Sifted, turn: Turn, split: str, metadata: dict[str, object]) -> None:
        out: dict[Reason, list[str]] = {}
        for form in self._formats:
            for row in form.rows(turn, self._sources):
                data = row if isinstance(row, Reason) else self._written(row, metadata)
                if isinstance(data, Reason):
                    out.setdefault(data, []).append(form.name)
                elif isinstance(row, Row):
                    sifted.lines.append(Line(form.name, split, turn.prompt.tools, row.source, data))
        sifted.left_out += [LeftOut(reason, tuple(dict.fromkeys(names))) for reason, names in out.items()]

    def _written(self, row: Row, metadata: dict[str, object]) -> bytes | Reason:
        limit = self._recipe.max_tokens
        if limit is not None and estimated_tokens(row.characters) > limit:
            return Reason.TOO_LONG
        try:
            return orjson.dumps(row.body | metadata, option=orjson.OPT_APPEND_NEWLINE)
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
