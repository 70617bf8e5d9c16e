"""What a run made of prompts, answers and duels: what rests on it, and what goes with it."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from curation.duels.models import Answer, Duel, Prompt, PullRequest, Side, Verdict
from curation.projects.removal.rows import Rest, goes_with, rests_on
from curation.runs.models import Run


@rests_on(Run)
def duels_of_others(run: Run) -> Iterable[Rest]:
    """Other runs keep the answers, verdicts and calls that they used. An import's turns go with what was made of them
    (`curation.review.removal` refuses if anything was decided)."""
    duels = Duel.objects.filter(project=run.project_id)
    url = reverse("duel-list", args=[run.project.slug])
    used = duels.filter(Q(king__run=run) | Q(challenger__run=run)).exclude(run=run).count()
    if used:
        yield Rest(f"Duels of other runs that use its answers: {used}.", url)
    judged = duels.filter(verdicts__run=run).exclude(run=run).distinct().count()
    if judged:
        yield Rest(f"Duels of other runs that have its verdicts: {judged}.", url)
    other_verdict = Verdict.objects.filter(duel=OuterRef("pk")).exclude(run=run)
    older = duels.filter(Q(Exists(other_verdict)) | ~Q(sample__run=run) & Q(sample__isnull=False), run=run).count()
    if older:
        yield Rest(f"Duels of other runs that have their score from it: {older}.", f"{url}?run={run.pk}")
    recorded = Answer.objects.filter(call__run=run).exclude(run=run).count()
    recorded += Verdict.objects.filter(call__run=run).exclude(run=run).count()
    if recorded:
        yield Rest(f"Answers and verdicts of other runs that come from its calls: {recorded}.", url)


@rests_on(Run)
def answers_from_records(run: Run) -> Iterable[Rest]:
    records = PullRequest.objects.filter(run=run, imported_again=False)
    if not records.exists():
        return
    answers = Answer.objects.filter(
        side=Side.CHALLENGER, prompt__project=run.project_id, prompt__instance_id__in=records.values("instance_id")
    ).count()
    if answers:
        yield Rest(
            f"Challengers' answers that are written with its pull-request records: {answers}.",
            reverse("duel-list", args=[run.project.slug]),
        )


@goes_with(Run)
def rows_of_duels(run: Run) -> Iterable[QuerySet[Any]]:
    """Duels whose sample is gone, then answers, prompts and records that nothing uses. Rows that a later import also
    had stay."""
    own = Q(run=run) | Q(prompt__run=run) if run.kind == "import" else Q(run=run)
    yield Duel.objects.filter(own, project=run.project_id, sample=None)
    free = ~Exists(Duel.objects.filter(Q(king=OuterRef("pk")) | Q(challenger=OuterRef("pk"))))
    yield Answer.objects.filter(free, run=run)
    unused = ~Exists(Duel.objects.filter(prompt=OuterRef("pk")))
    yield Prompt.objects.filter(unused, run=run, imported_again=False)
    yield PullRequest.objects.filter(run=run, imported_again=False)
