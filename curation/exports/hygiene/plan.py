"""Plan: the frozen samples that are duplicates or beyond a cap, and the key by which the splits are grouped. It is
stored with the samples."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np
from django.db.models import Q

from curation.duels.models import Duel, Opponent
from curation.exports.hygiene.contamination import ContaminatedSampleOut, HeldOutSets
from curation.exports.hygiene.embed import EmbeddedTasks, paraphrases
from curation.exports.hygiene.held_out import find_held_out, read_messages
from curation.exports.hygiene.signatures import PARTS, read_near, signed_samples
from curation.exports.models import ContaminatedSample, Export, FrozenRow
from curation.exports.recipes.recipe import GroupKey, Recipe, Splitting, choose_splitting, splitting_at
from curation.exports.rows.filter import ExportFilter, FilteredSample, Line
from curation.exports.rows.freeze import frozen_chunks, frozen_samples
from curation.exports.rows.queries import conversation_of
from curation.exports.rows.skip_reasons import FrozenSample
from curation.samples.models import UNSCORED, Sample, SampleStatus
from curation.web.ids import IdList
from curation.web.text.storable import storable
from judging.contamination.rows import opening_of
from judging.near_duplicates import Bands, Groups, bands_of, group_exact, group_near

# Returns the lines of some samples, if duplicates and caps are ignored.
ReadLines = Callable[[Sequence[int]], Mapping[int, Sequence[Line]]]
# Returns the rows of a chunk.
Apply = Callable[[Sequence[FrozenSample]], Iterable[FilteredSample]]
_AT_ONCE = 1_000
# The fields of a sample that may have a cap, beside its axes.
_NAMED = ("repo", "instance_id", "source", "model")


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """`duplicates` names for each sample that is left out the one that is kept, `over_caps` the field of its cap.
    `contaminated` are the samples that contain a held-out row; `contamination` are its figures, or None if the recipe
    names no held-out set."""

    splitting: Splitting
    duplicates: Mapping[int, int] = field(default_factory=dict)
    over_caps: Mapping[int, str] = field(default_factory=dict)
    contaminated: Mapping[int, ContaminatedSampleOut] = field(default_factory=dict)
    contamination: Mapping[str, object] | None = None

    def as_json(self) -> dict[str, object]:
        """Return the grouping and the comparison with held-out sets, as exports store them."""
        found: dict[str, object] = {"group_by": self.splitting.level, "groups": self.splitting.groups}
        return found if self.contamination is None else {**found, "contamination": self.contamination}

    def left_out(self) -> list[int]:
        return sorted({*self.duplicates, *self.over_caps, *self.kept_out})

    def apply(self, sample: FrozenSample) -> FrozenSample:
        """Return the sample with the reason why it is left out."""
        pk = sample.sample_id
        return sample._replace(
            duplicate_of=self.duplicates.get(pk),
            over_cap=self.over_caps.get(pk, ""),
            contaminated=str(self.kept_out.get(pk, "")),
        )

    @property
    def kept_out(self) -> Mapping[int, ContaminatedSampleOut]:
        """Return the contaminated samples, if the recipe leaves them out."""
        return self.contaminated if self.contamination and self.contamination["left_out"] else {}


class Candidate(NamedTuple):
    """A sample that may leave, its key, and its value of each capped field; an empty value is not capped."""

    sample_id: int
    score: float
    key: GroupKey
    values: tuple[str, ...]


@dataclass(slots=True)
class _Rows:
    """The samples that may leave, one entry each. There may be a million: signatures are arrays, and equal `keys` are
    one object."""

    rows: list[Candidate] = field(default_factory=list)
    exact: bytearray = field(default_factory=bytearray)
    bands: list[Bands] = field(default_factory=list)
    keys: dict[GroupKey, GroupKey] = field(default_factory=dict)

    def add(self, chunk: Sequence[FrozenSample], recipe: Recipe) -> None:
        signed = signed_samples([sample.sample_id for sample in chunk])
        known = {one.sample_id for one in signed}
        self.rows += _keyed([sample for sample in chunk if sample.sample_id in known], recipe, self.keys)
        self.exact += b"".join([one.exact for one in signed])
        self.bands.append(bands_of([one.near for one in signed], PARTS))


def make_plan(
    chunks: Iterable[Sequence[FrozenSample]],
    recipe: Recipe,
    *,
    read_lines: ReadLines,
    held_out: HeldOutSets,
    apply: Apply,
    checkpoint: Callable[[], None],
) -> ExportPlan:
    """Return the plan for the samples in `chunks`, which are those that may leave: approved and without a reason of
    their own to be left out. Signatures that are missing are made and stored.

    Contaminated samples are left out first, so that a clean duplicate of one can leave.
    """
    found = _Rows()
    leaves_out = recipe.contaminated == "leave_out"
    for chunk in chunks:
        checkpoint()
        if held_out.sets:
            held_out.compare(apply(chunk), checkpoint)
        is_left_out = held_out.matches if leaves_out else {}
        found.add([sample for sample in chunk if sample.sample_id not in is_left_out], recipe)

    duplicates = _duplicates(found, recipe, read_lines, checkpoint)
    kept = [row for row in found.rows if row.sample_id not in duplicates]
    over = over_cap(kept, recipe.caps, read_lines)
    splitting = _splitting([row.key for row in kept if row.sample_id not in over], recipe)
    if not held_out.sets:
        return ExportPlan(splitting, duplicates, over)
    contaminated = {pk: match for pk, match in held_out.matches.items() if pk not in duplicates and pk not in over}
    return ExportPlan(splitting, duplicates, over, contaminated, held_out.as_json(contaminated, left_out=leaves_out))


def _duplicates(found: _Rows, recipe: Recipe, read_lines: ReadLines, checkpoint: Callable[[], None]) -> dict[int, int]:
    """Return the samples that are duplicates of a better one. The best has a row in most formats, then the highest
    score, then the smallest id; a group without exportable samples has none. A sample that contradicts another one of
    its group is no duplicate: it is skipped as contradicted."""
    groups = Groups(len(found.rows))
    if found.rows:
        group_exact(groups, np.frombuffer(found.exact, dtype="<u8"))
        _group_modes(groups, [row.sample_id for row in found.rows])
    if found.rows and recipe.near_duplicates is not None:
        checkpoint()
        ids = np.array([row.sample_id for row in found.rows], dtype=np.int64)
        bands = np.concatenate(found.bands)
        found.bands.clear()
        group_near(
            groups, bands, lambda rows: read_near(ids[rows].tolist()), threshold=recipe.near_duplicates, parts=PARTS
        )
    duplicates: dict[int, int] = {}
    for sets in _batches(groups.sets().values()):
        checkpoint()
        lines = read_lines(sorted(found.rows[number].sample_id for numbers in sets for number in numbers))
        formats = {pk: len({line.format for line in of_sample}) for pk, of_sample in lines.items()}
        for numbers in sets:
            leaving = [found.rows[number] for number in numbers if formats.get(found.rows[number].sample_id)]
            claims = [line.claim for row in leaving for line in lines[row.sample_id] if line.claim is not None]
            said = {claim.says for claim in claims}
            rows = [row for row in leaving if not all(_is_contradicted(line, said) for line in lines[row.sample_id])]
            rows.sort(key=lambda row: (-formats[row.sample_id], -row.score, row.sample_id))
            duplicates.update((row.sample_id, rows[0].sample_id) for row in rows[1:])
    return duplicates


def _is_contradicted(line: Line, said: Set[bytes]) -> bool:
    return line.claim is not None and line.claim.yields and line.claim.opposite in said


def _group_modes(groups: Groups, ids: Sequence[int]) -> None:
    """Join the duels of one challenger's answer against a king and against the reference: they are one turn."""
    rows = {pk: row for row, pk in enumerate(ids)}
    for start in range(0, len(ids), 10_000):
        own = Duel.objects.filter(sample__in=IdList(ids[start : start + 10_000]), opponent=Opponent.REFERENCE)
        references = list(own.values_list("challenger_id", "sample_id"))
        if not references:
            continue
        kings = Duel.objects.filter(challenger__in=IdList([pk for pk, _ in references]), opponent=Opponent.KING)
        sides = kings.order_by("-pk").values_list("challenger_id", "sample_id")
        against_kings = {challenger: rows[sample] for challenger, sample in sides if sample in rows}
        for challenger, sample in references:
            if challenger in against_kings:
                groups.join(against_kings[challenger], rows[sample])


def _batches(sets: Iterable[list[int]]) -> Iterator[list[list[int]]]:
    batch: list[list[int]] = []
    size = 0
    for numbers in sets:
        batch.append(numbers)
        size += len(numbers)
        if size >= _AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _keyed(samples: Sequence[FrozenSample], recipe: Recipe, keys: dict[GroupKey, GroupKey]) -> list[Candidate]:
    """Return the keys by which samples are grouped and capped. Equal ones are one object, that of `keys`."""
    conversations = _conversations([one.sample_id for one in samples if not one.instance_id])
    values, nothing = _capped_values(samples, recipe) if recipe.caps else {}, ("",) * len(recipe.caps)
    found = []
    for one in samples:
        key = GroupKey(one.repo, one.instance_id, conversations.get(one.sample_id, ""))
        score = UNSCORED if one.score is None else one.score
        found.append(Candidate(one.sample_id, score, keys.setdefault(key, key), values.get(one.sample_id, nothing)))
    return found


def _conversations(ids: Sequence[int]) -> dict[int, str]:
    """Return the groups of samples that name no instance."""
    samples = Sample.objects.filter(pk__in=IdList(ids)) if ids else Sample.objects.none()
    columns = ("duel__prompt__row_offset", "trajectory__pk", "trajectory__scenario_id", "trajectory__task")
    return {
        pk: f"{source}#{row}" if session is None else conversation_of(scenario, task or f"of trajectory {session}")
        for pk, source, row, session, scenario, task in samples.values_list("pk", "source", *columns)
    }


def _capped_values(samples: Sequence[FrozenSample], recipe: Recipe) -> dict[int, tuple[str, ...]]:
    """Return the value of each capped field. Samples to learn from and samples to avoid are counted apart."""
    rows = Sample.objects.filter(pk__in=IdList([one.sample_id for one in samples]))
    found = {}
    for pk, axes, status, *named in rows.values_list("pk", "axes", "status", *_NAMED):
        fields = {**axes, **dict(zip(_NAMED, named, strict=True))}
        label = f"{status} " if status == SampleStatus.REJECTED else ""
        found[pk] = tuple(f"{label}{value}" if (value := fields.get(name)) else "" for name in recipe.caps)
    return found


def _splitting(keys: Sequence[GroupKey], recipe: Recipe) -> Splitting:
    if recipe.group_by == "auto":
        return choose_splitting(keys, seed=recipe.seed, wanted=recipe.splits)
    return splitting_at(recipe.group_by, keys, seed=recipe.seed, wanted=recipe.splits)


def over_cap(rows: Iterable[Candidate], caps: Mapping[str, int], read_lines: ReadLines) -> dict[int, str]:
    """Return the samples that are beyond a cap, each with the first field whose cap it is. `Candidate.values` are in
    the order of `caps`. A sample whose texts keep it out takes no place; the others of a full cap are not read."""
    if not caps:
        return {}
    ordered = sorted(rows, key=lambda row: (-row.score, row.sample_id))
    known = [Counter(row.values[place] for row in ordered) for place in range(len(caps))]
    taken = [Counter[str]() for _ in caps]

    def beyond(row: Candidate, counts: Sequence[Counter[str]], *, places: int = 0) -> str | None:
        limits = zip(caps.items(), counts, row.values, strict=True)
        return next((name for (name, most), count, value in limits if value and count[value] >= most + places), None)

    over: dict[int, str] = {}
    for start in range(0, len(ordered), _AT_ONCE):
        batch = ordered[start : start + _AT_ONCE]
        wanted = [row.sample_id for row in batch if beyond(row, known, places=1) and not beyond(row, taken)]
        lines = read_lines(sorted(wanted)) if wanted else {}
        for row in batch:
            if (full := beyond(row, taken)) is not None:
                over[row.sample_id] = full
            elif row.sample_id not in lines or lines[row.sample_id]:
                for count, value in zip(taken, row.values, strict=True):
                    count[value] += 1
    return over


_WRITTEN_AT_ONCE = 500


def plan_export(*, export: Export, embedded: bool, checkpoint: Callable[[], None]) -> ExportPlan:
    """Return the plan for the frozen samples of an export. `embedded`: its run has embeddings of all tasks."""
    recipe = Recipe.model_validate(export.recipe)
    export_filter = ExportFilter(export.project, recipe, export)
    held_out = HeldOutSets.of(export.project, recipe)
    if embedded:
        held_out.paraphrases = paraphrases(export.run, export_tasks(export))
    return make_plan(
        (export_filter.accepted(chunk) for chunk in frozen_chunks(export)),
        recipe,
        held_out=held_out,
        apply=export_filter.apply,
        read_lines=lambda ids: export_filter.lines_of(frozen_samples(export, ids)),
        checkpoint=checkpoint,
    )


def export_tasks(export: Export) -> EmbeddedTasks:
    """Return the tasks of the samples that may leave, and those of the held-out sets."""
    recipe = Recipe.model_validate(export.recipe)
    export_filter = ExportFilter(export.project, recipe, export)
    filtered = (one for chunk in frozen_chunks(export) for one in export_filter.apply(export_filter.accepted(chunk)))
    own = (opening_of(read_messages(one.example.messages)) for one in filtered if one.lines and one.example is not None)
    sets = find_held_out(export.project, recipe.held_out)
    return EmbeddedTasks.of(own, (row.opening for held_out in sets for row in held_out.rows()))


def store_plan(*, export: Export, plan: ExportPlan) -> None:
    """Write the plan to the export and its frozen rows. Needs a transaction; repeating it changes nothing."""
    changed = Q(duplicate_of__isnull=False) | ~Q(over_cap="") | ~Q(contaminated="")
    FrozenRow.objects.filter(changed, export=export).update(duplicate_of=None, over_cap="", contaminated="")
    left_out = plan.left_out()
    for start in range(0, len(left_out), _WRITTEN_AT_ONCE):
        ids = left_out[start : start + _WRITTEN_AT_ONCE]
        rows = list(FrozenRow.objects.filter(export=export, sample_id__in=ids))
        for row in rows:
            row.duplicate_of = plan.duplicates.get(row.sample_id)
            row.over_cap = plan.over_caps.get(row.sample_id, "")
            row.contaminated = str(plan.kept_out.get(row.sample_id, ""))
        FrozenRow.objects.bulk_update(rows, ["duplicate_of", "over_cap", "contaminated"])
    ContaminatedSample.objects.filter(export=export).delete()
    matches = (
        ContaminatedSample(
            export=export,
            sample_id=pk,
            held_out=match.held_out,
            row=match.row,
            levels=match.levels,
            prompt=storable(match.prompt),
            answer=storable(match.answer),
        )
        for pk, match in sorted(plan.contaminated.items())
    )
    while batch := list(islice(matches, _WRITTEN_AT_ONCE)):
        ContaminatedSample.objects.bulk_create(batch)
    Export.objects.filter(pk=export.pk).update(plan=plan.as_json())
