"""Filter: the rows that each frozen sample gives, or why it gives none. Previews and exports share it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import orjson

from curation.duels.models import Exclusion
from curation.exports.formats import FORMATS
from curation.exports.formats.row import Row, Source, Turn
from curation.exports.models import Export
from curation.exports.recipes.recipe import Recipe, split_of
from curation.exports.rows.freeze import current_pairs, frozen_pairs
from curation.exports.rows.messages import BadHistory, conversation, read_json
from curation.exports.rows.queries import PairKey, Rollout, read_duel_texts, read_rollouts
from curation.exports.rows.session import Rivals, Session, ends_in, rollout_reason, session_messages
from curation.exports.rows.skip_reasons import (
    FrozenSample,
    SkipReason,
    answer_reason,
    estimated_tokens,
    sample_reason,
)
from curation.projects.models import Project
from curation.review.decisions.outcome import Reviewed
from curation.review.models import Pick
from curation.samples.models import UNSCORED, Kind

T = TypeVar("T")
Rows = Callable[[T, tuple[Source, ...]], Iterable[Row | SkipReason]]
CHUNK = 2_500
_DRAW, _TRAJECTORY = Pick.DRAW.value, Kind.TRAJECTORY.value


class Line(NamedTuple):
    """A row as bytes with its newline, and its file: format, split, whether messages have tool-call keys."""

    format: str
    split: str
    tools: bool
    source: str
    pair: str
    data: bytes


@dataclass(slots=True)
class FilteredSample:
    """The lines of one sample, and by reason the formats that lack one. `rollout` is its trajectory, if it was read."""

    sample: FrozenSample
    lines: list[Line] = field(default_factory=list)
    skipped: dict[SkipReason, list[str]] = field(default_factory=dict)
    rollout: Rollout | None = None

    def skip(self, reason: SkipReason, name: str) -> None:
        """Record that the sample gives no row, or one row less, in the format of that name."""
        formats = self.skipped.setdefault(reason, [])
        if name not in formats:
            formats.append(name)


class _Target(NamedTuple):
    """The file of a sample's rows, and the metadata that they carry."""

    split: str
    tools: bool
    metadata: bytes


class ExportFilter:
    """One recipe over one project. What all samples share is read once.

    Pairs of trajectories are those that `export` froze, or without an export the current ones.
    """

    def __init__(self, project: Project, recipe: Recipe, export: Export | None = None) -> None:
        self._recipe, self._export = recipe, export
        self._sources = tuple(recipe.sources)
        self._formats = [FORMATS[name] for name in recipe.formats]
        self._only_split, self._max_tokens = recipe.only_split(), recipe.max_tokens
        self._excluded = frozenset(Exclusion.objects.filter(project=project).values_list("instance_id", flat=True))

    def apply(self, chunk: Sequence[FrozenSample]) -> Iterator[FilteredSample]:
        """Yield one result per sample, in the order of `chunk`, whose ids ascend. Three queries for turns, three more
        if there are trajectories."""
        reasons = [sample_reason(sample, self._excluded) for sample in chunk]
        accepted = [sample for sample, reason in zip(chunk, reasons, strict=True) if reason is None]
        data = _ChunkData(accepted, self._recipe, self._export)
        for sample, reason in zip(chunk, reasons, strict=True):
            filtered = FilteredSample(sample)
            if reason is None:
                reason = self._add_lines(filtered, data)
            if reason is not None:
                filtered.skipped[reason] = list(self._recipe.formats)
            yield filtered

    def _add_lines(self, filtered: FilteredSample, data: "_ChunkData") -> SkipReason | None:
        """Add the sample's lines, or return why it has none in any format."""
        try:
            if filtered.sample.kind == _TRAJECTORY:
                return self._add_session(filtered, data)
            return self._add_turn(filtered, data)
        except BadHistory as bad:
            return bad.reason
        except orjson.JSONEncodeError:
            return SkipReason.NOT_UTF8

    def _add_turn(self, filtered: FilteredSample, data: "_ChunkData") -> SkipReason | None:
        sample, texts = filtered.sample, next(data.texts)
        if texts is None:
            return SkipReason.NO_ANSWER
        outcome = data.reviewed.outcome(sample.sample_id, texts.challenger, texts.king)
        if not outcome.reviewers:
            return SkipReason.NOT_APPROVED
        reason = answer_reason(outcome.chosen_text)
        if reason is not None:
            return reason
        history = conversation(read_json(texts.history))
        if outcome.revision_id != sample.revision_id or not outcome.as_approved:
            return SkipReason.NOT_AS_APPROVED
        draw = outcome.pick == _DRAW
        turn = Turn(history, outcome.chosen_text, outcome.rejected_text, outcome.replaced_text, draw)
        target = self._target(sample, outcome.reviewers, texts.source_row, history.tools)
        for form in self._formats:
            self._add_rows(filtered, form.name, form.turn_rows, turn, target)
        return None

    def _add_session(self, filtered: FilteredSample, data: "_ChunkData") -> SkipReason | None:
        sample = filtered.sample
        filtered.rollout = rollout = next(data.rollouts)
        if rollout is None:
            return SkipReason.NO_ANSWER
        turns = read_json(rollout.turns)
        reviewers, as_approved = data.reviewed.session(sample.sample_id, turns)
        if not reviewers:
            return SkipReason.NOT_APPROVED
        reason = rollout_reason(rollout)
        if reason is not None:
            return reason
        messages = session_messages(turns)
        if not ends_in(messages, rollout.terminal):
            return SkipReason.BAD_TURNS
        if not as_approved:
            return SkipReason.NOT_AS_APPROVED
        session = Session(messages, data.rivals.of(rollout))
        target = self._target(sample, reviewers, sample.instance_id, False)
        for form in self._formats:
            self._add_rows(filtered, form.name, form.session_rows, session, target)
        return None

    def _target(self, sample: FrozenSample, reviewers: Sequence[str], default_group: str, tools: bool) -> _Target:
        recipe, split = self._recipe, self._only_split
        if not split:
            group = getattr(sample, recipe.group_by) or default_group
            split = split_of(group, seed=recipe.seed, shares=recipe.splits)
        return _Target(split, tools, _metadata(sample, reviewers) if recipe.metadata else b"")

    def _add_rows(self, filtered: FilteredSample, name: str, rows: Rows[T], content: T, target: _Target) -> None:
        """Add the lines of one turn or session in one format, or why there are none."""
        split, tools, metadata = target
        try:
            for row in rows(content, self._sources):
                if isinstance(row, SkipReason):
                    filtered.skip(row, name)
                elif self._max_tokens is not None and estimated_tokens(row.characters) > self._max_tokens:
                    filtered.skip(SkipReason.TOO_LONG, name)
                else:
                    data = b"%b,%b\n" % (row.json[:-1], metadata) if metadata else row.json + b"\n"
                    filtered.lines.append(Line(name, split, tools, row.source, row.pair, data))
        except orjson.JSONEncodeError:
            filtered.skip(SkipReason.NOT_UTF8, name)


def _metadata(sample: FrozenSample, reviewers: Sequence[str]) -> bytes:
    """Return the columns of `metadata: true` as the rest of a JSON object. A missing score is -1, because a column of
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


class _ChunkData:
    """What is read for the accepted samples of a chunk. Texts are read while the samples pass, in their order."""

    def __init__(self, samples: Sequence[FrozenSample], recipe: Recipe, export: Export | None) -> None:
        turns = [sample.sample_id for sample in samples if sample.kind != _TRAJECTORY]
        trajectories = [sample.sample_id for sample in samples if sample.kind == _TRAJECTORY]
        self.reviewed = Reviewed([sample.sample_id for sample in samples])
        # The other answer is only read for preferences, or if a person kept it.
        self.texts = read_duel_texts(turns, kings=recipe.has_pairs() or self.reviewed.keeps_kings)
        self.rollouts = read_rollouts(trajectories)
        pairs: list[PairKey] = []
        if trajectories and recipe.wants_pairs():
            pairs = current_pairs(trajectories) if export is None else frozen_pairs(export, trajectories)
        self.rivals = Rivals(pairs)
