"""Write: the frozen rows of an export as files, chunk by chunk; memory does not grow with the export."""

import gc
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import orjson

from curation.exports.files.attempt import Artefact, WrittenFile
from curation.exports.files.card import card
from curation.exports.files.counts import Tally
from curation.exports.files.manifest import manifest
from curation.exports.models import Export
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.filter import CHUNK, LeftOut, Line, Sieve, Sifted
from curation.exports.rows.freeze import frozen
from curation.exports.rows.skip_reasons import Candidate

EXCLUDED, FROZEN, CARD, MANIFEST = "excluded.jsonl", "frozen.jsonl", "README.md", "manifest.json"
_LINE = orjson.OPT_APPEND_NEWLINE
_PROGRESS_EVERY = 1.0


@dataclass(frozen=True, slots=True)
class Written:
    """What one attempt wrote; nothing of it can be downloaded before it is published."""

    files: tuple[WrittenFile, ...]
    counts: dict[str, object]
    examples: dict[str, list[str]]
    manifest_sha256: str


def write(*, export: Export, checkpoint: Callable[[], None]) -> Written:
    """Writes all files of a frozen export; `checkpoint` raises to stop between chunks, and nothing stays then."""
    recipe = Recipe.model_validate(export.recipe)
    sieve, tally = Sieve(export.project, recipe, export), Tally()
    with Artefact(export.pk) as artefact:
        artefact.touch(EXCLUDED)
        artefact.touch(FROZEN)
        told = time.monotonic()
        with _collector_at_ease():
            for chunk in _chunks(export):
                checkpoint()
                for sifted in sieve.sift(chunk):
                    tally.add(sifted)
                    _add(artefact, sifted, packed=recipe.gzip)
                artefact.flush()
                if time.monotonic() - told > _PROGRESS_EVERY:
                    told = time.monotonic()
                    _tell(export, tally.samples)
        counts = tally.counts(recipe.formats, list(recipe.splits), export.project.settings.balance)
        data = artefact.close()
        artefact.whole(CARD, card(export.project, recipe, tally, data).encode())
        document = manifest(export, recipe, counts, tally, artefact.close())
        listed = artefact.whole(MANIFEST, orjson.dumps(document, option=orjson.OPT_INDENT_2 | _LINE))
        return Written(tuple(artefact.close()), counts, tally.examples, listed.sha256)


@contextmanager
def _collector_at_ease() -> Iterator[None]:
    """Leaves what the process holds already out of the garbage collector's passes: walking all of Django's objects
    again and again took an eighth of an export's time. Rows are freed by their reference counts as ever."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def file_name(line: Line, *, packed: bool) -> str:
    """`<format>.<split>.jsonl`; rows with tool calls have more columns and so a file of their own."""
    return _file_name(line.format, line.split, line.tools, packed)


@cache
def _file_name(name: str, split: str, tools: bool, packed: bool) -> str:
    return f"{name}.{split}{'.tools' if tools else ''}.jsonl{'.gz' if packed else ''}"


def _add(artefact: Artefact, sifted: Sifted, *, packed: bool) -> None:
    rows = []
    for line in sifted.lines:
        name = file_name(line, packed=packed)
        artefact.add(name, line.data, format=line.format, split=line.split, packed=packed)
        digest = hashlib.sha256(line.data).hexdigest()
        row = {"format": line.format, "source": line.source, "split": line.split, "sha256": digest}
        if line.pair:
            row["pair"] = line.pair
        rows.append(row)
    for left in sifted.left_out:
        artefact.add(EXCLUDED, orjson.dumps(_excluded(sifted.sample, left), option=_LINE))
    artefact.add(FROZEN, orjson.dumps(_frozen(sifted, rows), option=_LINE))


def _excluded(sample: Candidate, left: LeftOut) -> dict[str, object]:
    return {
        "sample": str(sample.sample_id),
        "version": sample.version,
        "formats": left.formats,
        "reason": left.reason.value,
        "detail": left.reason.label,
    }


def _frozen(sifted: Sifted, rows: Sequence[dict[str, str]]) -> dict[str, object]:
    sample, rollout = sifted.sample, sifted.rollout
    entry = {
        "sample": str(sample.sample_id),
        "version": sample.version,
        "revision": None if sample.revision_id is None else str(sample.revision_id),
        "score": sample.score,
        "bucket": sample.bucket,
        "flags": sample.flags,
        "rows": rows,
    }
    if rollout is not None:
        entry |= {"trajectory": str(rollout.trajectory_id), "bundle_sha256": rollout.bundle_sha256}
    return entry


def _chunks(export: Export) -> Iterator[list[Candidate]]:
    last = -1
    while chunk := frozen(export, after=last, limit=CHUNK):
        yield chunk
        last = chunk[-1].sample_id


def _tell(export: Export, done: int) -> None:
    total = export.counts.get("samples", 0)
    Export.objects.filter(pk=export.pk, ready=False).update(counts={"samples": total, "written": done})
