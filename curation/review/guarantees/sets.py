"""The set of an audit: the pending samples that a guarantee may approve, with their scores when it was drawn."""

import hashlib
import math
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from django.db.models import F
from numpy.typing import NDArray

from curation.samples.models import Flag, Sample, SampleQuerySet, SampleStatus, flag_bits
from curation.samples.scores import score_of
from judging.panel.scoring import HOLDING_FLAGS

# Findings that people have to look at: no guarantee approves a sample with one of them.
HELD = flag_bits(sorted(HOLDING_FLAGS)) | Flag.SECRET | Flag.CONTROL
# One row per sample, in the order of the ids. Its bytes are what `Audit.set_sha256` is the hash of.
ROW = np.dtype([("id", "<i8"), ("version", "<i4"), ("score", "<f8")])
Rows = NDArray[np.void]
_AT_ONCE = 10_000


class SetRows(NamedTuple):
    """The set's `rows`. `left_out` counts other pending samples by reason: `held` by a finding, `begun` by people,
    `unscored`. `clusters` is the number of different values of the cluster's column, 0 without one."""

    rows: Rows
    left_out: dict[str, int]
    clusters: int


def find_set(matching: SampleQuerySet, score: str, cluster: str) -> SetRows:
    """Read the samples of a filter. A sample that people have begun to decide together is left out."""
    pending = matching.filter(status=SampleStatus.PENDING).order_by("pk").annotate(ordering=score_of(score))
    columns = ["pk", "version", "ordering", "flags", "opinions", *([cluster] if cluster else [])]
    left_out = {"held": 0, "begun": 0, "unscored": 0}
    clusters = set[str]()
    alone = 0

    def rows() -> Iterator[tuple[int, int, float]]:
        nonlocal alone
        for pk, version, value, flags, opinions, *of in pending.values_list(*columns).iterator(_AT_ONCE):
            if flags & HELD:
                left_out["held"] += 1
            elif opinions:
                left_out["begun"] += 1
            elif not is_number(value):
                left_out["unscored"] += 1
            else:
                clusters.update(word for word in of if word)
                alone += bool(of) and not of[0]
                yield pk, version, float(value)

    found: Rows = np.fromiter(rows(), dtype=ROW)
    return SetRows(found, left_out, len(clusters) + alone)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def packed(rows: Rows) -> bytes:
    return zlib.compress(rows.tobytes(), level=1)


def unpacked(data: bytes | memoryview) -> Rows:
    rows: Rows = np.frombuffer(zlib.decompress(data), dtype=ROW)
    return rows


def set_sha256(rows: Rows) -> str:
    return hashlib.sha256(rows.tobytes()).hexdigest()


def drawn_from(rows: Rows, size: int, seed: int) -> Rows:
    """Return `size` of the rows in the order of the draw, each sample with the same chance."""
    return rows[np.random.default_rng(seed).permutation(len(rows))[:size]]


def not_held(rows: SampleQuerySet) -> SampleQuerySet:
    """The samples without a finding that holds them, as their flags are now."""
    found: SampleQuerySet = rows.alias(holding=F("flags").bitand(HELD)).filter(holding=0)
    return found


def names_of_clusters(column: str, ids: list[int]) -> dict[int, str]:
    """The value of a cluster's column for each sample; one without a value is a cluster of its own."""
    found = Sample.objects.filter(pk__in=ids).values_list("pk", column)
    return {pk: name or f"sample {pk}" for pk, name in found}
