"""Scores of samples: the numbers by which samples are ordered, and the save of samples from scoring stages, which does
not change decisions of people."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from django.db import transaction
from django.db.models import F, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KeyTransform

from curation.samples.models import SCANNED, UNSCORED, Flag, Sample, SampleText
from curation.samples.texts import scan_texts
from curation.web.problems import FieldError, Invalid
from curation.web.text.storable import storable
from judging.scan.scan import ScanFinding, kinds_of, rule_set_version

PREDICTED = "predicted"
# Name → column of the sample, or a lookup from it.
COLUMNS = {"score": "score", "reward": "trajectory__reward", PREDICTED: "predicted"}
# All samples are alike: there is one threshold, below all of them.
NONE = "none"
REWARD = "reward."
NO_MODEL = "No model of decisions was fitted, so no sample has a predicted approval. Fit one first, or use `score`."


def score_of(name: str) -> Combinable:
    """Return the score of that name as an expression on samples; its values may be null or no number. Raises `Invalid`
    for another name."""
    if name in COLUMNS:
        return F(COLUMNS[name])
    if name == NONE:
        return Value(0.0)
    if name.startswith(REWARD) and name != REWARD:
        return KeyTransform(name.removeprefix(REWARD), "trajectory__rewards")
    known = f"{', '.join([*COLUMNS, NONE])} or {REWARD}<name>"
    raise Invalid(f"There is no score {name[:60]!r}; use {known}.", errors=[FieldError("score", f"is {known}")])


FLIP_BONUS = 10.0
HELD_BONUS = 15.0
SPREAD_WEIGHT = 0.1
# Parsed samples have 100 or less, so unparsed ones come last.
UNPARSED_PRIORITY = 1000.0
# Trajectories have no score. Doubtful ones come before all duels, the others among duels away from an edge.
DOUBT = 20.0
KEPT_PRIORITY, REJECTED_PRIORITY = 20.0, 40.0


class Edges(Protocol):
    """The lower edges of the buckets `final` and `refined`, in points of the score (0–100)."""

    @property
    def final(self) -> float: ...

    @property
    def refined(self) -> float: ...


def priority_of(*, score: float | None, thresholds: Edges, flipped: bool, spread: float, held: bool) -> float:
    """The distance to the nearest bucket edge, less bonuses for doubt. The smallest value is reviewed first.

    `score` and `spread` (the difference between the best and the worst judge) are 0 to 100.

    Near an edge a small error of the panel changes the bucket. The error is larger if a judge changed its verdict with
    the order of the answers (10 points) or if judges disagree (a tenth of their spread). A flag of a leak or
    an injection (15 points) keeps a good answer out of `final` until a person looks. A duel without a score comes last.
    """
    if score is None:
        return UNPARSED_PRIORITY
    distance = min(abs(score - thresholds.final), abs(score - thresholds.refined))
    return distance - FLIP_BONUS * flipped - SPREAD_WEIGHT * spread - HELD_BONUS * held


def trajectory_priority(*, keep: bool, machine: bool, looping: bool, passed: bool, differs: bool) -> float:
    """The smallest value is reviewed first, on the scale of `priority_of`.

    The checker is doubtful if a kept rollout looped, if the state was right but the rollout is not kept (a wrong or
    missing terminal), or if a replay had another result (`differs`). Each doubt lowers the value by `DOUBT`. Then come
    kept trajectories, since these are exported, then rejected ones. Failures of the machine come last.
    """
    if machine:
        return UNPARSED_PRIORITY
    doubts = (keep and looping) + (passed and not keep) + differs
    if doubts:
        return -DOUBT * doubts
    return KEPT_PRIORITY if keep else REJECTED_PRIORITY


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

    `score` is 0–100 or None, `flags` the bits of `Flag`, `priority` from `curation.samples.scores`,
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
        findings = (finding for text in row.texts for finding in found.get(text, ()))
        bits = scanned_flags(findings) if sample is None else sample.flags & kept
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
