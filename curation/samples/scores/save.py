"""Save samples from scoring stages, without changing people's decisions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import transaction

from curation.samples.models import SCANNED, UNSCORED, Flag, Sample, SampleText
from curation.samples.scans import scan_texts
from curation.web.text.storable import storable
from judging.scan.scan import ScanFinding, kinds_of, rule_set_version

PREVIEW_CHARACTERS = 200
BODY_BYTES = 200_000
SCORED_FIELDS = (
    *("run", "kind", "score", "score_key", "bucket", "flags", "priority", "source", "repo", "instance_id"),
    *("action_style", "model", "axes", "preview", "scan_rules"),
)
# Control characters, and characters that change the direction of text or hide in it.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One sample as a stage scored it. `existing_id` is the sample to update; None creates one.

    `score` is 0–100 or None, `flags` the bits of `Flag`, `priority` from `curation.samples.scores.order`,
    `body` the text for full-text search, `texts` all texts that an export may write: those of a new sample are scanned
    for secrets and personal data.
    """

    project_id: int
    run_id: int | None
    existing_id: int | None
    kind: str
    score: float | None
    bucket: str
    flags: int
    priority: float
    source: str
    repo: str
    instance_id: str
    action_style: str
    model: str
    preview: str
    body: str
    texts: Sequence[str] = ()
    axes: Mapping[str, str] = field(default_factory=dict)


@transaction.atomic
def upsert_samples(rows: Sequence[SampleRow]) -> list[Sample]:
    """Save the rows and return their samples in the same order.

    The status, version and decision of an existing sample do not change, and a revised one keeps its leak flag: that is
    about the revision, which no stage scores. A deleted `existing_id` becomes a new sample.
    Raises `ValueError` for a sample of another project.
    """
    wanted = [row.existing_id for row in rows if row.existing_id is not None]
    known = Sample.objects.in_bulk(wanted)
    revised = set(Sample.objects.filter(pk__in=wanted, revisions__isnull=False).values_list("pk", flat=True))
    found = scan_texts(text for row in rows if row.existing_id not in known for text in row.texts)
    samples: list[Sample] = []
    for row in rows:
        sample = known.get(row.existing_id) if row.existing_id is not None else None
        if sample is not None and sample.project_id != row.project_id:
            raise ValueError(f"sample {sample.pk} belongs to another project than {row.project_id}")
        # Bits that are about more than the scored answer are kept.
        kept = 0 if sample is None else SCANNED | (Flag.LEAK if sample.pk in revised else 0)
        bits = _scanned_bits(found, row.texts) if sample is None else sample.flags & kept
        # The texts of an existing sample may be others now: it is scanned again (`curation.review.tasks`).
        rules = rule_set_version() if sample is None else ""
        sample = _fill(sample or Sample(project_id=row.project_id), row)
        sample.scan_rules = rules
        sample.flags = sample.flags & ~kept | bits
        samples.append(sample)
    Sample.objects.bulk_create([sample for sample in samples if sample.pk is None])
    # An upsert on the primary key writes 500 rows in a few statements; `bulk_update` needs a CASE per row and field.
    created = {sample.pk: sample.created_at for sample in known.values()}
    Sample.objects.bulk_create(
        list(known.values()), update_conflicts=True, unique_fields=["id"], update_fields=SCORED_FIELDS
    )
    for sample in known.values():
        sample.created_at = created[sample.pk]  # `auto_now_add` overwrote it
    texts = [SampleText(sample_id=sample.pk, body=_body(row.body)) for sample, row in zip(samples, rows, strict=True)]
    SampleText.objects.bulk_create(texts, update_conflicts=True, unique_fields=["sample"], update_fields=["body"])
    return samples


def scanned_flags(findings: Iterable[ScanFinding]) -> int:
    kinds = kinds_of(findings)
    bits = {"secret": Flag.SECRET, "pii": Flag.PII, "control": Flag.CONTROL}
    return sum(bits[kind].value for kind in kinds)


def _scanned_bits(found: Mapping[str, tuple[ScanFinding, ...]], texts: Sequence[str]) -> int:
    return scanned_flags(finding for text in texts for finding in found.get(text, ())) if found else 0


def preview_of(text: str) -> str:
    """The first 200 characters on one line, without control characters."""
    shown = _SPACE.sub(" ", text[: 4 * PREVIEW_CHARACTERS]).strip()
    return storable(_UNSEEN.sub("\N{REPLACEMENT CHARACTER}", shown))[:PREVIEW_CHARACTERS]


def _fill(sample: Sample, row: SampleRow) -> Sample:
    sample.run_id = row.run_id
    sample.kind = row.kind
    sample.score = row.score
    sample.score_key = UNSCORED if row.score is None else row.score
    sample.bucket = row.bucket
    sample.flags = row.flags
    sample.priority = row.priority
    sample.source = storable(row.source)[:200]
    sample.repo = storable(row.repo)[:200]
    sample.instance_id = storable(row.instance_id)[:200]
    sample.action_style = row.action_style
    sample.model = row.model
    sample.axes = dict(row.axes)
    sample.preview = preview_of(row.preview)
    return sample


def _body(text: str) -> str:
    """At most 200 kB of UTF-8; the rest is not searched."""
    return storable(text[:BODY_BYTES]).encode()[:BODY_BYTES].decode(errors="ignore")
