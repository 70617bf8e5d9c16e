"""Filter: the rows that each frozen sample gives, the claims of these rows, or why it gives none. Previews and exports
share it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from typing import NamedTuple

import orjson
from django.utils import timezone

from curation.duels.models import Exclusion
from curation.exports.formats import FORMATS
from curation.exports.formats.row import Columns, DataRow, Format, TrainingExample
from curation.exports.models import Export, FrozenPair
from curation.exports.recipes.recipe import GroupKey, Level, Recipe, split_of
from curation.exports.rows.chat_template import TemplateTrial
from curation.exports.rows.examples import NO_VALUES, RejectedAnswer, rejected_answer, session_example, turn_example
from curation.exports.rows.freeze import current_pairs, frozen_pairs, frozen_samples
from curation.exports.rows.images import Images, images_of
from curation.exports.rows.messages import BadHistory, ExportedMessage, Tool, length
from curation.exports.rows.metadata import METADATA, Given, LabelColumns, metadata_of
from curation.exports.rows.queries import (
    DuelTexts,
    ExportedRollout,
    approved_sessions,
    read_duel_texts,
    read_rollouts,
    solve_rates,
)
from curation.exports.rows.redaction import Redaction, clearances_of, is_clean_turn
from curation.exports.rows.rivals import rejected_rivals
from curation.exports.rows.session import Rivals, ends_in, rollout_reason, session_texts
from curation.exports.rows.skip_reasons import FrozenSample, SkipReason, answer_reason, sample_reason
from curation.projects.models import Project
from curation.projects.settings.document import Scan
from curation.review.decisions.outcome import Approval, Decider, Reviewed
from curation.review.models import Decision, Pick
from curation.review.queue.seats import kept_side
from curation.samples.models import Sample, SampleKind
from curation.samples.texts import AnsweredSide
from curation.trajectories.imported.document import with_review, write_document
from curation.trajectories.imported.images import with_data
from curation.trajectories.probe.values import step_rates
from curation.web.ids import IdList
from judging.chat_template.template import Failure
from judging.messages import estimated_tokens
from judging.scan.scan import rule_set_version
from judging.statistics.rates import Attempts

_TRAJECTORY = SampleKind.TRAJECTORY.value
_LINE = orjson.OPT_APPEND_NEWLINE
# Returns the frozen samples among some ids, in the order of their ids.
ReadFrozen = Callable[[Sequence[int]], Sequence[FrozenSample]]


class PreferenceClaim(NamedTuple):
    """The statement of a row of a format with pairs about an answer to a prompt, and its opposite, 8 bytes of a digest
    each.

    A preference is the opposite of the one with its sides swapped; an answer to avoid is the opposite of one to learn.
    A row with `yields` is left out if another row claims the opposite; an approved answer is kept all the same.
    The prompt of a group has no opposite.
    """

    says: bytes
    opposite: bytes
    yields: bool


def claim_of(form: Format, row: DataRow, tools: Sequence[Tool], group: str) -> PreferenceClaim | None:
    """Return the row's claim, or None if its format only has approved answers. Case and white space make no other
    answer, as for duplicates."""
    if form.of_groups:
        # Other samples of the scenario or task have the same row.
        return PreferenceClaim(_digest(form.name.encode(), group.encode()), b"", yields=False)
    if not form.pairs:
        return None
    prompt = sha256(orjson.dumps([row.prompt, tools])).digest()
    sides = [_answer(side) for side in row.sides]
    if len(sides) == 2:
        return PreferenceClaim(_digest(prompt, *sides), _digest(prompt, *reversed(sides)), yields=True)
    learned, avoided = _digest(prompt, b"+", *sides), _digest(prompt, b"-", *sides)
    return (
        PreferenceClaim(avoided, learned, yields=True)
        if row.rejected
        else PreferenceClaim(learned, avoided, yields=False)
    )


def _answer(side: Sequence[ExportedMessage]) -> bytes:
    texts = [{**message, "content": " ".join(str(message.get("content") or "").casefold().split())} for message in side]
    return orjson.dumps(texts)


def _digest(prompt: bytes, *parts: bytes) -> bytes:
    return blake2b(b"\n".join([prompt, *parts]), digest_size=8).digest()


class Line(NamedTuple):
    """A row as bytes with its newline, and its file: format and split. `plain` rows have no tools, tool calls or
    reasoning. `tokens` is the estimate for a trainer. `rejected` rows are an answer to avoid, `against` names the
    sample of a rejected answer. `claim` is the claim of a row of a format with pairs. `images` are the addresses of its
    images; None for a row without the column `images`."""

    format: str
    split: str
    plain: bool
    source: str
    pair: str
    turn: int | None
    rejected: bool
    against: str
    tokens: int
    data: bytes
    claim: PreferenceClaim | None
    images: Sequence[str] | None = None


@dataclass(slots=True)
class FilteredSample:
    """The lines of one sample, and by reason the formats that lack one. `texts` are those of its duel, or `rollout`
    is its trajectory, if they were read, `approval` the decision its rows were compared with, `reviewers` the
    people behind it (none under a guarantee), `deciders` everybody's decisions if several people had to decide,
    `example` the content of its lines, `split` their split, and `metadata` the columns that all of them have
    besides. `tried` has the format of each row that a chat template was tried on, and its failure; `scan` counts
    findings by rule and action. `repeated` are the lines that a duplicate would have: its preferences count, though
    they are not exported.
    """

    sample: FrozenSample
    lines: list[Line] = field(default_factory=list)
    repeated: list[Line] = field(default_factory=list)
    skipped: dict[SkipReason, list[str]] = field(default_factory=dict)
    texts: DuelTexts | None = None
    rollout: ExportedRollout | None = None
    approval: Approval | None = None
    deciders: Sequence[Decider] = ()
    reviewers: Sequence[str] = ()
    example: TrainingExample | None = None
    split: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    tried: list[tuple[str, Failure | None]] = field(default_factory=list)
    scan: dict[tuple[str, str], int] = field(default_factory=dict)

    def skip(self, reason: SkipReason, name: str) -> None:
        """Record that the sample gives no row, or one row less, in the format of that name."""
        formats = self.skipped.setdefault(reason, [])
        if name not in formats:
            formats.append(name)


class ExportFilter:
    """One recipe over one project. Data that all samples share is read once.

    Pairs of trajectories are those that `export` froze, or without an export the current ones. Rejected answers come
    from its frozen samples, or from those of a preview, which `read_frozen` returns. Groups of `level` are not divided
    by splits. With a `trial` rows are tried against a chat template. All rows of the formats `with_images` have the
    column `images`.
    """

    def __init__(
        self,
        project: Project,
        recipe: Recipe,
        export: Export | None = None,
        *,
        read_frozen: ReadFrozen | None = None,
        level: Level = "instance_id",
        trial: TemplateTrial | None = None,
        with_images: Collection[str] = (),
    ) -> None:
        self._recipe, self._export, self._level, self._trial = recipe, export, level, trial
        self._project, self._with_images, self._images = project.pk, with_images, Images(project.pk)
        self._read_frozen = read_frozen or (lambda ids: frozen_samples(export, ids) if export else [])
        self._pairs, self._scan = recipe.has_pairs(), project.settings.scan
        self._formats = [FORMATS[name] for name in recipe.formats]
        self._labelled = recipe.has_labels()
        self._of_groups = any(form.of_groups for form in self._formats)
        self._documents = any(form.documents for form in self._formats)
        # The split of all rows, or empty if they are divided.
        self._only_split = next((name for name, share in recipe.splits.items() if share == 1.0), "")
        self._max_tokens = recipe.max_tokens
        # The answers of the moment when the export was launched, so that a second attempt writes the same rows.
        self._labels = LabelColumns(project, None if export is None else export.created_at) if recipe.metadata else None
        self._excluded = frozenset(Exclusion.objects.filter(project=project).values_list("instance_id", flat=True))

    def metadata_columns(self) -> Columns:
        return {} if self._labels is None else {**METADATA, **self._labels.types()}

    def accepted(self, chunk: Sequence[FrozenSample]) -> list[FrozenSample]:
        """Return the samples that are not left out before their texts are read."""
        return [sample for sample in chunk if self._reason(sample) is None]

    def _reason(self, sample: FrozenSample) -> SkipReason | None:
        return sample_reason(sample, self._excluded, rejected=self._labelled)

    def lines_of(self, samples: Sequence[FrozenSample]) -> dict[int, list[Line]]:
        return {one.sample.sample_id: one.lines for one in self.apply(samples)}

    def apply(self, chunk: Sequence[FrozenSample]) -> Iterator[FilteredSample]:
        """Yield one result per sample, in the order of `chunk`, whose ids ascend. Three queries for turns, three more
        if there are trajectories, one for labels."""
        reasons = [self._reason(sample) for sample in chunk]
        read = (None, SkipReason.DUPLICATE) if self._pairs else (None,)
        accepted = [sample for sample, reason in zip(chunk, reasons, strict=True) if reason in read]
        data = _ChunkData(accepted, self._recipe, self._export, self._scan, self._project)
        if self._recipe.has_rivals():
            data.answers = self._rejected_answers(accepted)
        if self._labels is not None:
            data.labels = self._labels.read([sample.sample_id for sample in accepted])
        for sample, reason in zip(chunk, reasons, strict=True):
            filtered = FilteredSample(sample)
            if reason is None:
                reason = self._add_lines(filtered, data)
            elif reason in read:
                filtered.repeated = self._repeated(sample, data)
            if reason is not None:
                filtered.skipped[reason] = list(self._recipe.formats)
            yield filtered
        if self._export is not None:
            data.keep_clean()

    def _rejected_answers(self, accepted: Sequence[FrozenSample]) -> dict[int, list[RejectedAnswer]]:
        turns = [sample.sample_id for sample in accepted if sample.kind != _TRAJECTORY and not sample.is_rejected]
        rivals = rejected_rivals(turns)
        ids = sorted({pk for found in rivals.values() for pk in found})
        frozen = self._read_frozen(ids) if ids else []
        ids = [one.sample_id for one in frozen if sample_reason(one, self._excluded, rejected=True) is None]
        reviewed, answers = Reviewed(ids, rejections=True), {}
        for pk, texts in zip(ids, read_duel_texts(ids, kings=False), strict=True):
            if texts is None or (decision := reviewed.approval(pk)) is None or not decision.rejects:
                continue
            outcome = reviewed.outcome(pk, texts.challenger, None)
            if answer_reason(outcome.chosen_text) is None:
                with suppress(BadHistory):  # `excluded.jsonl` has the reason, if a format has labels
                    answers[pk] = rejected_answer(pk, texts, outcome, self._recipe)
        return {
            sample: list({answers[pk].text.strip(): answers[pk] for pk in found if pk in answers}.values())
            for sample, found in rivals.items()
        }

    def _repeated(self, sample: FrozenSample, data: "_ChunkData") -> list[Line]:
        alone = FilteredSample(sample)
        self._add_lines(alone, data)
        return [line for line in alone.lines if line.claim is not None]

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
        sample = filtered.sample
        filtered.texts = texts = next(data.texts)
        if texts is None:
            return SkipReason.NO_ANSWER
        is_rejected, outcome = sample.is_rejected, data.reviewed.outcome(sample.sample_id, texts.challenger, texts.king)
        approval = filtered.approval = data.reviewed.approval(sample.sample_id)
        if approval is None or approval.rejects != is_rejected:
            return SkipReason.REJECTED if is_rejected else SkipReason.NOT_APPROVED
        reason = answer_reason(outcome.chosen_text)
        if reason is not None:
            return reason
        rivals = data.answers.get(sample.sample_id, ())
        example = turn_example(texts, outcome, self._recipe, pairs=self._pairs, rivals=rivals, rejected=is_rejected)
        filtered.deciders = data.reviewed.deciders(sample.sample_id)
        if not is_rejected and (outcome.revision_id != sample.revision_id or not outcome.as_approved):
            return SkipReason.NOT_AS_APPROVED
        other = (texts.challenger if kept_side(outcome.pick) == Pick.KING else texts.king) if self._pairs else None
        is_new = bool(rivals) or (self._pairs and outcome.replaced_text is not None)
        if is_new or not is_clean_turn(approval, texts, other):
            redacted = data.redaction(filtered).example(example)
            if isinstance(redacted, SkipReason):
                return redacted
            example = redacted
            if not filtered.scan and not is_rejected:
                data.found_clean(approval, texts, other)
        self._add_rows(filtered, data, example, outcome.reviewers, texts.conversation)
        return None

    def _add_session(self, filtered: FilteredSample, data: "_ChunkData") -> SkipReason | None:
        sample = filtered.sample
        filtered.rollout = rollout = next(data.rollouts)
        if rollout is None:
            return SkipReason.NO_ANSWER
        recorded, is_shell = rollout.recorded, not rollout.is_imported
        approval = filtered.approval = data.reviewed.approval(sample.sample_id)
        if approval is None or approval.rejects != sample.is_rejected:
            return SkipReason.REJECTED if sample.is_rejected else SkipReason.NOT_APPROVED
        reason = rollout_reason(rollout, rejected=sample.is_rejected)
        if reason is not None:
            return reason
        session = session_texts(recorded, is_shell=is_shell, reasoning=self._recipe.reasoning == "keep")
        if not sample.is_rejected:
            is_whole = rollout.scenario_id is not None and not recorded.is_trimmed
            if is_whole and not ends_in(recorded.steps, rollout.terminal):
                return SkipReason.BAD_TURNS
            if not data.is_as_approved(approval, rollout):
                return SkipReason.NOT_AS_APPROVED
        filtered.deciders = data.reviewed.deciders(sample.sample_id)
        rivals = [] if sample.is_rejected else data.rivals.of(rollout)
        values = data.values.get(sample.sample_id, NO_VALUES)
        example = session_example(session, rivals, self._recipe, rejected=sample.is_rejected, values=values)
        example = example._replace(group=rollout.conversation, reward=rollout.known_reward)
        if self._of_groups:
            example = example._replace(scenario=sample.instance_id, solved=self._solved(data, rollout))
        if self._documents and not sample.is_rejected:
            example = example._replace(document=_document(rollout, self._project))
        if rivals or example.document is not None or approval.scan_rules != rule_set_version():
            redacted = data.redaction(filtered).example(example)
            if isinstance(redacted, SkipReason):
                return redacted
            example = redacted
            if not filtered.scan and not sample.is_rejected and approval.scan_rules != rule_set_version():
                data.found_clean(approval, None, None)
        self._add_rows(filtered, data, example, data.reviewed.reviewers(sample.sample_id), rollout.conversation)
        return None

    def _solved(self, data: "_ChunkData", rollout: ExportedRollout) -> Attempts | None:
        """Return the difficulty of the rollout's group, if its rewards differ and the recipe takes it."""
        found = data.solved.get(rollout.conversation)
        low, high = self._recipe.solve_rate
        return found if found and 0 < found.solved < found.attempts and low <= found.rate <= high else None

    def _split(self, sample: FrozenSample, conversation: str) -> str:
        group = GroupKey(sample.repo, sample.instance_id, conversation)
        return split_of(group.at(self._level), seed=self._recipe.seed, shares=self._recipe.splits)

    def _metadata(self, filtered: FilteredSample, data: "_ChunkData") -> Mapping[str, object]:
        if self._labels is None:
            return {}
        sample, reviewers = filtered.sample, filtered.reviewers
        labels = self._labels.values(sample.sample_id, data.labels, reviewers[-1:])
        kept = data.axes.get(sample.sample_id, {})
        guarantee = None if filtered.approval is None else filtered.approval.guarantee_id
        metadata = metadata_of(sample, reviewers, filtered.rollout, kept, guarantee) | labels
        return data.redaction(filtered).metadata(metadata)

    def _add_rows(
        self,
        filtered: FilteredSample,
        data: "_ChunkData",
        example: TrainingExample,
        reviewers: Sequence[str],
        group: str,
    ) -> None:
        filtered.example, filtered.reviewers = example, reviewers
        filtered.split = self._only_split or self._split(filtered.sample, group)
        filtered.metadata = self._metadata(filtered, data)
        has_images = not example.plain and bool(images_of(example.messages))
        for form in self._formats:
            if has_images and not form.images and not form.documents:
                filtered.skip(SkipReason.NO_IMAGES, form.name)
                continue
            if example.rejected and not form.labelled:
                filtered.skip(SkipReason.REJECTED, form.name)
                continue
            for row in form.rows(example):
                reason = row if isinstance(row, SkipReason) else self._add_row(filtered, form, row, example)
                if reason is not None:
                    filtered.skip(reason, form.name)

    def _add_row(
        self, filtered: FilteredSample, form: Format, row: DataRow, example: TrainingExample
    ) -> SkipReason | None:
        characters = length(row.prompt) + max(map(length, row.sides))
        if example.tools:
            characters += len(orjson.dumps(example.tools))
        tokens = estimated_tokens(characters)
        if self._max_tokens is not None and tokens > self._max_tokens:
            return SkipReason.TOO_LONG
        if self._trial is not None and form.chat:
            for failure in self._trial.try_out(row, example):
                filtered.tried.append((form.name, failure))
                if failure is not None and self._recipe.template_failures == "leave_out":
                    return SkipReason(failure.fault)
        content = self._content(form, row, filtered.metadata)
        if content is None:
            return SkipReason.NO_IMAGES
        try:
            data = orjson.dumps(content, option=_LINE)
        except orjson.JSONEncodeError:
            return SkipReason.NOT_UTF8
        identity = (row.source, row.pair, row.turn, row.rejected, row.against)
        claim = claim_of(form, row, example.tools, example.group)
        images = row.images if form.images == "files" and "images" in content else None
        filtered.lines.append(Line(form.name, filtered.split, example.plain, *identity, tokens, data, claim, images))
        return None

    def _content(self, form: Format, row: DataRow, metadata: Mapping[str, object]) -> Mapping[str, object] | None:
        """Return the row with its metadata and its images, or None if one of them has no content."""
        content = {**row.content, **metadata} if metadata and form.columns else row.content
        if row.images and form.images == "inline":
            return self._images.inlined(row.images, content)
        if form.images == "files" and (row.images or form.name in self._with_images):
            names = self._images.names(row.images)
            return None if names is None else {**content, "images": names}
        return content


def _document(rollout: ExportedRollout, project_id: int) -> dict[str, object]:
    """Return the ATIF document of a trajectory, with its decision and its end."""
    name = rollout.source_id or str(rollout.trajectory_id)
    model = "" if rollout.is_imported else rollout.model
    document = write_document(
        rollout.recorded, rollout.metadata, name=name, agent=rollout.agent, model=model, cost=rollout.cost
    )
    if rollout.is_imported:
        document = with_data(project_id, document)
    facts = {"sample": str(rollout.sample_id), "decision": "approved", "outcome": rollout.outcome}
    return with_review(document, rollout.recorded, {**facts, "rewards": rollout.rewards})


class _ChunkData:
    """The data of the accepted samples of a chunk. Texts are read while the samples pass, in their order."""

    def __init__(
        self, samples: Sequence[FrozenSample], recipe: Recipe, export: Export | None, scan: Scan, project: int
    ) -> None:
        self._scan, self._cleared = scan, clearances_of([sample.sample_id for sample in samples])
        self._clean: list[Decision] = []
        turns = [sample.sample_id for sample in samples if sample.kind != _TRAJECTORY]
        trajectories = [sample.sample_id for sample in samples if sample.kind == _TRAJECTORY]
        self.reviewed = Reviewed([sample.sample_id for sample in samples], rejections=recipe.has_labels())
        # The other answer is only read for preferences, or if a person kept it.
        kings = recipe.has_pairs() or self.reviewed.keeps_kings
        self.texts = read_duel_texts(turns, kings=kings)
        documents = any(FORMATS[name].documents for name in recipe.formats)
        self.rollouts = read_rollouts(trajectories, metadata=recipe.metadata or documents)
        self._sessions = approved_sessions(trajectories) if trajectories else {}
        pairs: list[FrozenPair] = []
        if trajectories and recipe.wants_pairs():
            pairs = current_pairs(trajectories) if export is None else frozen_pairs(export, trajectories)
        self.rivals = Rivals(pairs, reasoning=recipe.reasoning == "keep")
        self.values: Mapping[int, Mapping[int, float]] = {}
        if recipe.step_labels == "values":
            self.values = step_rates(trajectories, before=timezone.now() if export is None else export.created_at)
        self.solved: Mapping[str, Attempts] = {}
        if trajectories and any(FORMATS[name].of_groups for name in recipe.formats):
            until = timezone.now() if export is None else export.created_at
            self.solved = solve_rates(project, trajectories, before=until)
        self.labels: Given = {}
        ids = [sample.sample_id for sample in samples] if recipe.metadata else []
        axes = Sample.objects.filter(pk__in=IdList(ids)).values_list("pk", "axes")
        self.axes: Mapping[int, Mapping[str, str]] = dict(axes) if ids else {}
        self.answers: Mapping[int, Sequence[RejectedAnswer]] = {}

    def is_as_approved(self, approval: Approval, rollout: ExportedRollout) -> bool:
        """Return whether the stored session is the approved one: by its digest, if that was found before, else by the
        hash of what it says."""
        if self._sessions.get(rollout.sample_id) == (approval.text_sha256, rollout.digest):
            return True
        return rollout.recorded.sha256 == approval.text_sha256

    def redaction(self, filtered: FilteredSample) -> Redaction:
        return Redaction(self._scan, self._cleared.get(filtered.sample.sample_id, frozenset()), filtered.scan)

    def found_clean(self, approval: Approval, texts: DuelTexts | None, other: AnsweredSide | None) -> None:
        """Note that the scan found nothing, so that the next export need not look. A session has no `texts`."""
        self._clean.append(
            Decision(
                pk=approval.pk,
                prompt_sha256="" if texts is None else texts.sha256,
                other_sha256="" if other is None else other.sha256,
                scan_rules=rule_set_version(),
            )
        )

    def keep_clean(self) -> None:
        Decision.objects.bulk_update(self._clean, ["prompt_sha256", "other_sha256", "scan_rules"], batch_size=250)
