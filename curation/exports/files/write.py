"""Write the frozen rows of an export to files, chunk by chunk, so that memory does not grow with the export."""

import hashlib
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypedDict

import orjson

from curation.duels.models import Verdict
from curation.duels.score.models import Score
from curation.exports.files.attempt import AttemptFiles
from curation.exports.files.card import card
from curation.exports.files.counts import ExportCounts
from curation.exports.files.manifest import manifest
from curation.exports.hygiene.contamination import read_match
from curation.exports.models import MANIFEST, Export, ExportFile
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.chat_template import open_trial, template_of
from curation.exports.rows.consistency import Consistency
from curation.exports.rows.filter import ExportFilter, FilteredSample, Line
from curation.exports.rows.freeze import frozen_chunks
from curation.exports.rows.images import Images
from curation.exports.rows.redaction import KEPT_OUT, MASKED
from curation.exports.rows.skip_reasons import FrozenSample, SkipReason
from curation.runs.models import Call
from curation.samples.models import SampleKind
from curation.trajectories.models import Trajectory
from curation.web.ids import IdList, KeyList

EXCLUDED, FROZEN, CARD = "excluded.jsonl", "frozen.jsonl", "README.md"
_LINE = orjson.OPT_APPEND_NEWLINE
_PROGRESS_EVERY = 1.0


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """The files of one attempt. They cannot be downloaded before the attempt is published. `skipped` are the ids of the
    samples without a row."""

    files: tuple[ExportFile, ...]
    counts: dict[str, object]
    examples: dict[str, list[str]]
    manifest_sha256: str
    skipped: Sequence[int]


class RowOrigin(TypedDict):
    """Ids as text. `calls` are those whose reply was kept; the attempts before them are found by their items."""

    answers: list[str]
    verdicts: list[str]
    calls: list[str]


def write(*, export: Export, checkpoint: Callable[[], None]) -> WrittenFiles:
    """Write all files of a frozen export. `checkpoint` raises to stop between chunks; no file remains then."""
    consistency = Consistency()
    written = _write(export, consistency, checkpoint)
    if consistency.is_late:
        consistency.again()
        written = _write(export, consistency, checkpoint)
    return written


def _write(export: Export, consistency: Consistency, checkpoint: Callable[[], None]) -> WrittenFiles:
    recipe = Recipe.model_validate(export.recipe)
    template = template_of(export.project, recipe)
    images = Images(export.project_id)
    counts, skipped = ExportCounts(plan=export.plan, template=template), array("q")
    with ExitStack() as stack:
        trial, level = stack.enter_context(open_trial(template)), export.plan["group_by"]
        export_filter = ExportFilter(
            export.project, recipe, export, level=level, trial=trial, with_images=consistency.with_images
        )
        files = stack.enter_context(AttemptFiles(export.pk, recipe, export_filter.metadata_columns()))
        files.touch(EXCLUDED)
        files.touch(FROZEN)
        saved = time.monotonic()
        for chunk in frozen_chunks(export):
            checkpoint()
            origins = _origins(chunk)
            for filtered in export_filter.apply(chunk):
                consistency.keep(filtered)
                counts.add(filtered)
                if not filtered.lines:
                    skipped.append(filtered.sample.sample_id)
                _add(files, filtered, _origin(filtered, origins), images)
            files.flush()
            if time.monotonic() - saved > _PROGRESS_EVERY:
                saved = time.monotonic()
                progress = {"samples": export.counts.get("samples", 0), "written": counts.samples}
                Export.objects.filter(pk=export.pk, ready=False).update(counts=progress)
        counts_json = counts.as_json(recipe, export.project.settings.balance)
        data = counts.data_files(files.close())
        for trainer in recipe.trainers():
            for name, text in trainer.config(data, counts.longest).items():
                files.write(name, text.encode())
        columns = {name: files.columns(name) for name in recipe.formats}
        files.write(CARD, card(export, recipe, counts, files.close(), columns).encode())
        document = manifest(export, recipe, counts, counts_json, files.close())
        stored = files.write(MANIFEST, orjson.dumps(document, option=orjson.OPT_INDENT_2 | _LINE))
        unused = array("q", (pk for pk in skipped if pk not in counts.used))
        return WrittenFiles(tuple(files.close()), counts_json, counts.examples, stored.sha256, unused)


def _add(files: AttemptFiles, filtered: FilteredSample, origin: RowOrigin | None, images: Images) -> None:
    for line in filtered.lines:
        for address in line.images or ():
            files.add_image(*images.file(address))
        files.add_row(line.format, line.split, line.data, plain=line.plain, images=line.images is not None)
    for reason, formats in filtered.skipped.items():
        files.add(EXCLUDED, orjson.dumps(_excluded(filtered, reason, formats), option=_LINE))
    files.add(FROZEN, orjson.dumps(frozen_entry(filtered, origin), option=_LINE))


def _frozen_row(line: Line) -> dict[str, object]:
    """Return a row's entry in `frozen.jsonl`. Its sha256 is that of its line of JSON, in Parquet too."""
    digest = hashlib.sha256(line.data).hexdigest()
    row: dict[str, object] = {"format": line.format, "source": line.source, "split": line.split, "sha256": digest}
    if line.pair:
        row["pair"] = line.pair
    if line.turn is not None:
        row["turn"] = line.turn
    if line.rejected:
        row["rejected"] = True
    if line.against:
        row["against"] = line.against
    return row


def _excluded(filtered: FilteredSample, reason: SkipReason, formats: list[str]) -> dict[str, object]:
    sample = filtered.sample
    entry = {"sample": str(sample.sample_id), "version": sample.version, "formats": formats}
    entry |= {"reason": reason.value, "detail": reason.label}
    if reason in (SkipReason.SECRET, SkipReason.PII, SkipReason.CONTROL_TEXT):
        entry["rules"] = sorted({rule for rule, action in filtered.scan if action == KEPT_OUT})
    if reason is SkipReason.CONTAMINATED:
        entry |= read_match(sample.contaminated)
    if reason is SkipReason.DUPLICATE:
        entry["of"] = str(sample.duplicate_of)
    if reason is SkipReason.OVER_CAP:
        entry["cap"] = sample.over_cap
    return entry


def frozen_entry(filtered: FilteredSample, origin: RowOrigin | None = None) -> dict[str, Any]:
    """Return the line of a sample in `frozen.jsonl`."""
    sample, approval, rollout = filtered.sample, filtered.approval, filtered.rollout
    entry: dict[str, Any] = {
        "sample": str(sample.sample_id),
        "version": sample.version,
        "revision": None if sample.revision_id is None else str(sample.revision_id),
        "score": sample.score,
        "bucket": sample.bucket,
        "flags": sample.flags,
        "rows": [_frozen_row(line) for line in filtered.lines],
    }
    if approval is not None:
        entry["decision"] = str(approval.pk)
        if not approval.rejects:
            # Of the approved text, before anything in it is masked; the rows' own hashes are of the written rows.
            entry["text_sha256"] = approval.text_sha256
        if approval.guarantee_id is not None:
            entry["guarantee"] = str(approval.guarantee_id)
    if filtered.deciders:
        entry["deciders"] = [row._asdict() | {"decision": str(row.decision)} for row in filtered.deciders]
    if masked := {rule: count for (rule, action), count in filtered.scan.items() if action == MASKED}:
        entry["masked"] = dict(sorted(masked.items()))
    if filtered.lines and origin is not None:
        entry |= origin
    if rollout is not None:
        entry |= {"trajectory": str(rollout.trajectory_id), "bundle_sha256": rollout.bundle_sha256}
    return entry


def _origin(filtered: FilteredSample, origins: Mapping[int, RowOrigin]) -> RowOrigin | None:
    """Return the origin of a sample's rows, if it is known; that of a turn begins with its answers."""
    texts, found = filtered.texts, origins.get(filtered.sample.sample_id)
    if texts is None or not filtered.lines:
        return found
    answers = [str(pk) for pk in texts.answers if pk is not None]
    calls = [str(pk) for pk in texts.calls if pk is not None]
    if found is None:
        return {"answers": answers, "verdicts": [], "calls": calls}
    return {"answers": answers, "verdicts": found["verdicts"], "calls": calls + found["calls"]}


def _origins(chunk: list[FrozenSample]) -> dict[int, RowOrigin]:
    """Return the verdicts on samples of turns, and the calls of these and of trajectories. Four queries at most."""
    turns = [sample.sample_id for sample in chunk if sample.kind == SampleKind.TURN]
    trajectories = [sample.sample_id for sample in chunk if sample.kind == SampleKind.TRAJECTORY]
    found: dict[int, RowOrigin] = defaultdict(lambda: RowOrigin(answers=[], verdicts=[], calls=[]))
    # The verdicts that made the score that counts, not those of other runs.
    scores = Score.objects.filter(counts_for__sample__in=IdList(turns)).values_list("verdicts", flat=True)
    verdicts = Verdict.objects.filter(pk__in=IdList([pk for ids in scores for pk in ids])).order_by("pk")
    for sample_id, verdict, call in verdicts.values_list("duel__sample_id", "pk", "call_id"):
        found[sample_id]["verdicts"].append(str(verdict))
        if call is not None:
            found[sample_id]["calls"].append(str(call))
    if trajectories:
        _add_rollouts(found, trajectories)
    return found


def _add_rollouts(found: dict[int, RowOrigin], trajectories: Sequence[int]) -> None:
    rows = Trajectory.objects.filter(sample_id__in=IdList(trajectories), run__isnull=False)
    columns = rows.values_list("sample_id", "run_id", "scenario_id", "sample_index", "item_key")
    samples = {
        (run, item_key if scenario is None else f"{scenario}:{index}"): sample
        for sample, run, scenario, index, item_key in columns
    }
    for run in {run for run, _ in samples}:
        keys = [key for of, key in samples if of == run]
        calls = Call.objects.filter(run=run, item__stage__in=("rollout", "episodes"), item__key__in=KeyList(keys))
        for pk, key in calls.order_by("pk").values_list("pk", "item__key"):
            found[samples[run, key]]["calls"].append(str(pk))
