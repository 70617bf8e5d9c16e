"""Sift: frozen samples in, rows and reasons out. Preview and writing both go through here, so they cannot differ."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from curation.duels.models import Exclusion
from curation.exports.formats import FORMATS, Row
from curation.exports.freeze import PairKey, frozen_pairs, standing_pairs
from curation.exports.hygiene import Facts, Frozen, Reason, answer_reason, estimated_tokens, sample_reason
from curation.exports.messages import BadHistory, conversation
from curation.exports.models import Export
from curation.exports.reading import parsed, read_facts, read_texts
from curation.exports.recipe import Recipe
from curation.exports.session import Session, ends_in, messages_of
from curation.exports.splits import split_of
from curation.exports.trajectories import Rivals, Rollout, read_rollouts, rollout_reason
from curation.exports.turns import Turn
from curation.projects.models import Project
from curation.review.models import Pick
from curation.review.outcome import Reviewed
from curation.samples.models import UNSCORED, Kind

CHUNK = 1_000
_DRAW, _TRAJECTORY = Pick.DRAW.value, Kind.TRAJECTORY.value


class Line(NamedTuple):
    """A row as bytes, its newline included, and its file: format, split, whether messages have tool-call keys."""

    format: str
    split: str
    tools: bool
    source: str
    pair: str
    data: bytes


class LeftOut(NamedTuple):
    """A reason, and the formats in which it keeps the sample out."""

    reason: Reason
    formats: tuple[str, ...]


@dataclass(slots=True)
class Sifted:
    """What became of one frozen sample; `rollout` where it comes from a trajectory that was looked into."""

    frozen: Frozen
    lines: list[Line] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    rollout: Rollout | None = None


class Sieve:
    """One recipe over one project; what all samples share is read once.

    Pairs of trajectories are those that `export` froze, or without one those that stand now.
    """

    def __init__(self, project: Project, recipe: Recipe, export: Export | None = None) -> None:
        self._recipe, self._export = recipe, export
        self._sources = tuple(recipe.sources)
        self._formats = [FORMATS[name] for name in recipe.formats]
        self._only = recipe.only_split()
        self._excluded = frozenset(Exclusion.objects.filter(project=project).values_list("instance_id", flat=True))

    def sift(self, chunk: Sequence[Frozen]) -> Iterator[Sifted]:
        """One result per frozen row, in the same order, which is that of the samples; four queries for a chunk of
        turns, three more where trajectories are among them."""
        facts = read_facts(chunk)
        reasons = [self._unfit(facts.get(frozen.sample_id)) for frozen in chunk]
        fit = [facts[frozen.sample_id] for frozen, reason in zip(chunk, reasons, strict=True) if reason is None]
        reading = _Reading(fit, self._pairs)
        for frozen, reason in zip(chunk, reasons, strict=True):
            sifted = Sifted(frozen)
            if reason is None:
                sample = facts[frozen.sample_id]
                rows = self._session_rows if sample.kind == _TRAJECTORY else self._turn_rows
                reason = rows(sifted, sample, reading)
            if reason is not None:
                sifted.left_out.append(LeftOut(reason, tuple(self._recipe.formats)))
            yield sifted

    def _unfit(self, facts: Facts | None) -> Reason | None:
        return Reason.CHANGED if facts is None else sample_reason(facts, self._excluded)

    def _pairs(self, sample_ids: Sequence[int]) -> list[PairKey]:
        if not sample_ids or not self._recipe.wants_pairs():
            return []
        return standing_pairs(sample_ids) if self._export is None else frozen_pairs(self._export, sample_ids)

    def _turn_rows(self, sifted: Sifted, facts: Facts, reading: "_Reading") -> Reason | None:
        """Adds the sample's lines, or says why it has none in any format."""
        texts = next(reading.texts)
        if texts is None:
            return Reason.NO_ANSWER
        outcome = reading.reviewed.outcome(facts.sample_id, texts.candidate, texts.opponent)
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
        split = self._split(getattr(facts, self._recipe.group_by) or texts.place)
        rows = ((form.name, form.rows(turn, self._sources)) for form in self._formats)
        self._write(sifted, rows, split, history.tools, self._metadata(facts, outcome.reviewers))
        return None

    def _session_rows(self, sifted: Sifted, facts: Facts, reading: "_Reading") -> Reason | None:
        """The same for a trajectory, of which only the recorded turns are read."""
        sifted.rollout = rollout = next(reading.rollouts)
        if rollout is None:
            return Reason.NO_ANSWER
        reviewers = reading.reviewed.outcome(facts.sample_id, "", None).reviewers
        if not reviewers:
            return Reason.NOT_APPROVED
        refused = rollout_reason(rollout)
        if refused is not None:
            return refused
        try:
            messages = messages_of(parsed(rollout.turns))
        except BadHistory as bad:
            return bad.reason
        if not ends_in(messages, rollout.terminal):
            return Reason.BAD_TURNS
        session = Session(messages, reading.rivals.of(rollout))
        split = self._split(getattr(facts, self._recipe.group_by) or facts.instance_id)
        rows = ((form.name, form.trajectory_rows(session, self._sources)) for form in self._formats)
        self._write(sifted, rows, split, False, self._metadata(facts, reviewers))
        return None

    def _write(
        self,
        sifted: Sifted,
        rows_by_format: Iterable[tuple[str, Iterator[Row | Reason]]],
        split: str,
        tools: bool,
        metadata: dict[str, object],
    ) -> None:
        out: dict[Reason, list[str]] = {}
        lines = sifted.lines
        for name, rows in rows_by_format:
            for row in rows:
                data = self._written(row, metadata) if isinstance(row, Row) else row
                if isinstance(data, Reason):
                    out.setdefault(data, []).append(name)
                elif isinstance(row, Row):
                    lines.append(Line(name, split, tools, row.source, row.pair, data))
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

    def _metadata(self, facts: Facts, reviewers: Sequence[str]) -> dict[str, object]:
        """The columns of `metadata: true`. A score that was never given is -1: a column of nulls has no type."""
        if not self._recipe.metadata:
            return {}
        return {
            "id": str(facts.sample_id),
            "source": facts.source,
            "score": UNSCORED if facts.score is None else float(facts.score),
            "bucket": facts.bucket,
            "reviewers": list(reviewers),
            "run": "" if facts.run_id is None else str(facts.run_id),
        }


class _Reading:
    """What is read for the samples of a chunk whose rows may leave; texts come as the samples pass by, in order."""

    def __init__(self, samples: Sequence[Facts], pairs: Callable[[Sequence[int]], list[PairKey]]) -> None:
        turns = [sample.sample_id for sample in samples if sample.kind != _TRAJECTORY]
        trajectories = [sample.sample_id for sample in samples if sample.kind == _TRAJECTORY]
        self.reviewed = Reviewed([sample.sample_id for sample in samples])
        self.texts = read_texts(turns)
        self.rollouts = read_rollouts(trajectories)
        self.rivals = Rivals(pairs(trajectories))
