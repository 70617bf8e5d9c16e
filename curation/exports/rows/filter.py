"""Sift: frozen samples in, rows and reasons out. Preview and writing both go through here, so they cannot differ."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import orjson

from curation.duels.models import Exclusion
from curation.exports.formats import FORMATS, Row
from curation.exports.models import Export
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.freeze import PairKey, frozen_pairs, standing_pairs
from curation.exports.rows.messages import BadHistory, conversation
from curation.exports.rows.queries import parsed, read_texts
from curation.exports.rows.session import Session, ends_in, messages_of
from curation.exports.rows.skip_reasons import Candidate, Reason, answer_reason, estimated_tokens, sample_reason
from curation.exports.rows.splits import split_of
from curation.exports.rows.trajectory_queries import Rivals, Rollout, read_rollouts, rollout_reason
from curation.exports.rows.turns import Source, Turn
from curation.projects.models import Project
from curation.review.decisions.outcome import Reviewed
from curation.review.models import Pick
from curation.samples.models import UNSCORED, Kind

T = TypeVar("T")
Rows = Callable[[T, tuple[Source, ...]], Iterable[Row | Reason]]
CHUNK = 2_500
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
    """What became of one sample; `rollout` where it comes from a trajectory that was looked into."""

    sample: Candidate
    lines: list[Line] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    rollout: Rollout | None = None

    def leave_out(self, reason: Reason, name: str) -> None:
        """The sample gives no row, or one row less, in the format of that name."""
        for number, left in enumerate(self.left_out):
            if left.reason == reason:
                self.left_out[number] = LeftOut(reason, tuple(dict.fromkeys((*left.formats, name))))
                return
        self.left_out.append(LeftOut(reason, (name,)))


class _Place(NamedTuple):
    """Where a sample's rows go, and the metadata that they carry."""

    split: str
    tools: bool
    metadata: bytes


class Sieve:
    """One recipe over one project; what all samples share is read once.

    Pairs of trajectories are those that `export` froze, or without one those that stand now.
    """

    def __init__(self, project: Project, recipe: Recipe, export: Export | None = None) -> None:
        self._recipe, self._export = recipe, export
        self._sources = tuple(recipe.sources)
        self._formats = [FORMATS[name] for name in recipe.formats]
        self._only, self._limit = recipe.only_split(), recipe.max_tokens
        self._excluded = frozenset(Exclusion.objects.filter(project=project).values_list("instance_id", flat=True))

    def sift(self, chunk: Sequence[Candidate]) -> Iterator[Sifted]:
        """One result per sample, in the same order, which is that of their ids; three queries for a chunk of turns,
        three more where trajectories are among them."""
        reasons = [sample_reason(sample, self._excluded) for sample in chunk]
        fit = [sample for sample, reason in zip(chunk, reasons, strict=True) if reason is None]
        reading = _Reading(fit, self._recipe, self._export)
        for sample, reason in zip(chunk, reasons, strict=True):
            sifted = Sifted(sample)
            if reason is None:
                reason = self._look_into(sifted, reading)
            if reason is not None:
                sifted.left_out.append(LeftOut(reason, tuple(self._recipe.formats)))
            yield sifted

    def _look_into(self, sifted: Sifted, reading: "_Reading") -> Reason | None:
        """Adds the sample's lines, or says why it has none in any format."""
        try:
            if sifted.sample.kind == _TRAJECTORY:
                return self._session_rows(sifted, reading)
            return self._turn_rows(sifted, reading)
        except BadHistory as bad:
            return bad.reason
        except orjson.JSONEncodeError:
            return Reason.NOT_UTF8

    def _turn_rows(self, sifted: Sifted, reading: "_Reading") -> Reason | None:
        sample, texts = sifted.sample, next(reading.texts)
        if texts is None:
            return Reason.NO_ANSWER
        outcome = reading.reviewed.outcome(sample.sample_id, texts.candidate, texts.opponent)
        if not outcome.reviewers:
            return Reason.NOT_APPROVED
        if outcome.revision_id != sample.revision_id:
            return Reason.CHANGED
        refused = answer_reason(outcome.chosen_text)
        if refused is not None:
            return refused
        history = conversation(parsed(texts.history))
        draw = outcome.pick == _DRAW
        turn = Turn(history, outcome.chosen_text, outcome.rejected_text, outcome.replaced_text, draw)
        place = self._place(sample, outcome.reviewers, texts.place, history.tools)
        for form in self._formats:
            self._take(sifted, form.name, form.rows, turn, place)
        return None

    def _session_rows(self, sifted: Sifted, reading: "_Reading") -> Reason | None:
        """Of a trajectory only the recorded turns are read."""
        sample = sifted.sample
        sifted.rollout = rollout = next(reading.rollouts)
        if rollout is None:
            return Reason.NO_ANSWER
        reviewers = reading.reviewed.outcome(sample.sample_id, "", None).reviewers
        if not reviewers:
            return Reason.NOT_APPROVED
        refused = rollout_reason(rollout)
        if refused is not None:
            return refused
        messages = messages_of(parsed(rollout.turns))
        if not ends_in(messages, rollout.terminal):
            return Reason.BAD_TURNS
        session = Session(messages, reading.rivals.of(rollout))
        place = self._place(sample, reviewers, sample.instance_id, False)
        for form in self._formats:
            self._take(sifted, form.name, form.trajectory_rows, session, place)
        return None

    def _place(self, sample: Candidate, reviewers: Sequence[str], otherwise: str, tools: bool) -> _Place:
        """Where a sample's rows go; `otherwise` groups samples that have nothing to be grouped by."""
        recipe, split = self._recipe, self._only
        if not split:
            group = getattr(sample, recipe.group_by) or otherwise
            split = split_of(group, seed=recipe.seed, shares=recipe.splits)
        return _Place(split, tools, _metadata(sample, reviewers) if recipe.metadata else b"")

    def _take(self, sifted: Sifted, name: str, rows: Rows[T], made_of: T, place: _Place) -> None:
        """Adds a format's lines of one turn or session, or why there is none."""
        split, tools, metadata = place
        try:
            for row in rows(made_of, self._sources):
                if isinstance(row, Reason):
                    sifted.leave_out(row, name)
                elif self._limit is not None and estimated_tokens(row.characters) > self._limit:
                    sifted.leave_out(Reason.TOO_LONG, name)
                else:
                    data = b"%b,%b\n" % (row.json[:-1], metadata) if metadata else row.json + b"\n"
                    sifted.lines.append(Line(name, split, tools, row.source, row.pair, data))
        except orjson.JSONEncodeError:
            sifted.leave_out(Reason.NOT_UTF8, name)


def _metadata(sample: Candidate, reviewers: Sequence[str]) -> bytes:
    """The columns of `metadata: true` as the rest of an object in JSON. A score that was never given is -1: a column of
    nulls has no type."""
    columns = {
        "id": str(sample.sample_id),
        "source": sample.source,
        "score": UNSCORED if sample.score is None else float(sample.score),
        "bucket": sample.bucket,
        "reviewers": reviewers,
        "run": "" if sample.run_id is None else str(sample.run_id),
    }
    return orjson.dumps(columns)[1:]


class _Reading:
    """What is read for the samples of a chunk whose rows may leave; texts come as the samples pass by, in order."""

    def __init__(self, samples: Sequence[Candidate], recipe: Recipe, export: Export | None) -> None:
        turns = [sample.sample_id for sample in samples if sample.kind != _TRAJECTORY]
        trajectories = [sample.sample_id for sample in samples if sample.kind == _TRAJECTORY]
        self.reviewed = Reviewed([sample.sample_id for sample in samples])
        # The other answer is read where it is wanted, and where a person kept it.
        self.texts = read_texts(turns, opponents=recipe.has_pairs() or self.reviewed.keeps_opponents)
        self.rollouts = read_rollouts(trajectories)
        pairs: list[PairKey] = []
        if trajectories and recipe.wants_pairs():
            pairs = standing_pairs(trajectories) if export is None else frozen_pairs(export, trajectories)
        self.rivals = Rivals(pairs)
