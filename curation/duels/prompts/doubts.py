"""Doubtful records: those that may belong to another task. No challenger uses one until a curator clears it."""

from collections.abc import Collection, Sequence

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import OuterRef, Subquery

from curation.duels.models import Prompt, PromptText, PullRequest
from curation.projects.models import AuditEntry, Project
from curation.web.ids import IdList, KeyList
from curation.web.problems import Invalid, NotFound
from curation.web.text.figures import counted
from judging.leaks.doubt import doubt_about
from judging.leaks.record import PullRequestRecord
from judging.messages import message_text

MAX_AT_ONCE = 500
LONGEST = 400
# Sessions are long, so only a few are in memory at once.
_AT_ONCE = 50


def compare_records(project: Project, instance_ids: Collection[str]) -> int:
    """Compare records with the longest trajectory of their instance, and return how many are doubtful.

    A doubt that a curator cleared stays cleared until its reason changes. Needs a transaction.
    """
    prompts = Prompt.objects.of(project).filter(instance_id=OuterRef("instance_id")).order_by("-turn_index", "pk")
    known = PullRequest.objects.of(project).filter(instance_id__in=KeyList(sorted(instance_ids)))
    longest = dict(known.values_list("pk", Subquery(prompts.values("pk")[:1])))
    alone = [pk for pk, prompt in longest.items() if prompt is None]
    PullRequest.objects.filter(pk__in=IdList(alone)).exclude(doubt="").update(doubt="", doubt_cleared=False)
    compared = sorted(longest.keys() - {*alone})
    doubtful = 0
    for start in range(0, len(compared), _AT_ONCE):
        rows = PullRequest.objects.filter(pk__in=IdList(compared[start : start + _AT_ONCE])).select_related("text")
        texts = PromptText.objects.select_related("prompt").prefetch_related("session")
        prompts_of = texts.in_bulk([longest[pk] for pk in compared[start : start + _AT_ONCE]])
        for row in rows:
            doubt = _doubt(row, prompts_of[longest[row.pk]])
            if doubt != row.doubt:
                PullRequest.objects.filter(pk=row.pk).update(doubt=doubt, doubt_cleared=False)
                row.doubt_cleared = False
            doubtful += bool(doubt) and not row.doubt_cleared
    return doubtful


def clear_doubts(*, project: Project, instance_ids: Sequence[str], user: User) -> int:
    """Let challengers use doubtful records, and return their number. Raises `NotFound` if none of them is doubtful."""
    if len(instance_ids) > MAX_AT_ONCE:
        raise Invalid(f"At most {MAX_AT_ONCE} instances at once.", code="too_many_rows")
    with transaction.atomic():
        rows = PullRequest.objects.of(project).doubtful().filter(instance_id__in=list(instance_ids))
        found = dict(rows.select_for_update(no_key=True).values_list("instance_id", "doubt"))
        if not found:
            raise NotFound("None of these instances has a doubtful record.")
        PullRequest.objects.of(project).filter(instance_id__in=list(found)).update(doubt_cleared=True)
        AuditEntry.record(
            actor=user,
            project=project,
            action="pull_request.clear_doubt",
            subject=next(iter(found)) if len(found) == 1 else counted(len(found), "instance"),
            data={"doubts": found},
        )
    return len(found)


def as_record(row: PullRequest) -> PullRequestRecord:
    """Return a record as the lint takes it. Needs `text`."""
    return PullRequestRecord(
        instance_id=row.instance_id,
        title=row.title,
        issue=row.text.issue,
        description=row.text.description,
        patch=row.text.patch,
        files=tuple(map(str, row.files)),
    )


def _doubt(row: PullRequest, text: PromptText) -> str:
    shown = [message_text(message) for message in (*text.history, text.reference)]
    return doubt_about(as_record(row), repo=row.repo, trajectory_repo=text.prompt.repo, shown=shown)[:LONGEST]
