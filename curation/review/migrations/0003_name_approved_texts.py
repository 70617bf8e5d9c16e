"""Give the approvals made so far the revision and the hash of the text that they kept, and reopen the samples whose
approval was followed by a new text."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.db import migrations
from django.db.models import F

from judging.answers.digest import answer_sha256, session_sha256
from judging.messages import content_of

CHUNK = 500
SETTLING = ("approve", "reject", "refine", "queue")


def name_texts(apps: Any, schema_editor: Any) -> None:
    Decision = apps.get_model("review", "Decision")
    ids = list(Decision.objects.filter(action="approve").order_by("id").values_list("id", flat=True))
    for chunk in chunks(iter(ids)):
        lines = list(Decision.objects.filter(pk__in=chunk).select_related("sample"))
        name_revisions(apps, lines)
        name_answers(apps, [line for line in lines if line.revision_id is None and line.sample.kind == "turn"])
        name_sessions(apps, [line for line in lines if line.sample.kind == "trajectory"])
        Decision.objects.bulk_update(lines, ["revision", "text_sha256"])


def name_revisions(apps: Any, lines: list[Any]) -> None:
    """A bulk approval did not name its revision: it kept the latest one of its side at that time."""
    revisions = apps.get_model("review", "Revision").objects.filter(sample_id__in=[line.sample_id for line in lines])
    by_sample: dict[int, list[Any]] = {}
    for revision in revisions.order_by("number"):
        by_sample.setdefault(revision.sample_id, []).append(revision)
    for line in lines:
        side = "opponent" if line.pick == "opponent" else "candidate"
        for revision in by_sample.get(line.sample_id, ()):
            if revision.of == side and revision.created_at <= line.created_at:
                line.revision, line.text_sha256 = revision, answer_sha256(revision.text)


def name_answers(apps: Any, lines: list[Any]) -> None:
    """Nobody could change an answer in the product, so its text today is the text that was approved."""
    rows = apps.get_model("duels", "Duel").objects.filter(sample_id__in=[line.sample_id for line in lines])
    duels = {duel.sample_id: duel for duel in rows.select_related("challenger__text", "king__text", "prompt__text")}
    for line in lines:
        duel = duels.get(line.sample_id)
        if duel is None:
            continue
        answer = duel.king if line.pick == "opponent" else duel.challenger
        if answer is not None:
            line.text_sha256 = answer_sha256(answer.text.text, reasoning=answer.text.thinking)
        else:
            line.text_sha256 = answer_sha256(content_of(duel.prompt.text.reference))


def name_sessions(apps: Any, lines: list[Any]) -> None:
    rows = apps.get_model("trajectories", "TrajectoryText").objects.filter(
        trajectory__sample_id__in=[line.sample_id for line in lines]
    )
    columns = rows.values_list("trajectory__sample_id", "turns").iterator(chunk_size=50)
    hashes = {sample_id: session_sha256(turns) for sample_id, turns in columns}
    for line in lines:
        line.text_sha256 = hashes.get(line.sample_id, "")


def reopen_revised(apps: Any, schema_editor: Any) -> None:
    Sample, Decision = apps.get_model("samples", "Sample"), apps.get_model("review", "Decision")
    Revision = apps.get_model("review", "Revision")
    ids = Sample.objects.filter(status="approved", revisions__isnull=False).order_by("id").distinct()
    for chunk in chunks(iter(list(ids.values_list("id", flat=True)))):
        for sample in Sample.objects.filter(pk__in=chunk):
            settled = (
                Decision.objects.filter(sample=sample, action__in=SETTLING, undone_by=None).order_by("-id").first()
            )
            if settled is None or settled.action != "approve":
                continue
            later = Revision.objects.filter(sample=sample, created_at__gt=settled.created_at).order_by("number").first()
            if later is None:
                continue
            before = {
                "status": sample.status,
                "decided_by": sample.decided_by_id,
                "decided_at": sample.decided_at.isoformat() if sample.decided_at else None,
                "leak_cleared": sample.leak_cleared,
            }
            Decision.objects.create(
                sample=sample,
                reviewer_id=later.author_id,
                action="reopen",
                version=sample.version,
                revision=later,
                before=before,
            )
            Sample.objects.filter(pk=sample.pk).update(
                status="pending", decided_by=None, decided_at=None, leak_cleared=False, version=F("version") + 1
            )


def chunks(ids: Iterator[int]) -> Iterator[list[int]]:
    while chunk := list(islice(ids, CHUNK)):
        yield chunk


class Migration(migrations.Migration):
    dependencies = [
        ("review", "0002_approved_texts"),
        ("duels", "0001_initial"),
        ("samples", "0001_initial"),
        ("trajectories", "0001_initial"),
    ]

    operations = [
        migrations.RunPython(name_texts, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(reopen_revised, migrations.RunPython.noop, elidable=True),
    ]
