"""Deletion of a run with its prompts, answers and duels: rows that block it, and rows deleted with it."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from curation.duels.models import Answer, Duel, Prompt, PullRequest, Side, Verdict
from curation.duels.score.models import Score, ScorePanel
from curation.projects.removal.rows import Rest, goes_with, rests_on
from curation.runs.models import Run


@rests_on(Run)
def duels_of_others(run: Run) -> Iterable[Rest]:
    """Other runs keep the answers, verdicts and calls that they used. An import's turns are deleted with the duels
    made of them (`curation.review.removal` refuses if anything was decided)."""
    duels = Duel.everything.filter(project=run.project_id)
    url = reverse("duel-list", args=[run.project.slug])
    used = duels.filter(Q(king__run=run) | Q(challenger__run=run)).exclude(run=run).count()
    if used:
        yield Rest(f"Duels of other runs that use its answers: {used}.", url)
    judged = len(_judged_for_others(run))
    if judged:
        yield Rest(f"Scores of other runs that use its verdicts: {judged}.", url)
    others = Score.objects.filter(duel=OuterRef("pk")).exclude(run=run)
    foreign = Verdict.objects.filter(duel=OuterRef("pk")).exclude(run=run)
    rests = Q(Exists(others)) | Q(Exists(foreign)) | ~Q(sample__run=run) & Q(sample__isnull=False)
    older = duels.filter(rests, run=run).count()
    if older:
        yield Rest(f"Duels of other runs that have their score from it: {older}.", f"{url}?run={run.pk}")
    recorded = Answer.objects.filter(call__run=run).exclude(run=run).count()
    recorded += Verdict.objects.filter(call__run=run).exclude(run=run).count()
    if recorded:
        yield Rest(f"Answers and verdicts of other runs that come from its calls: {recorded}.", url)


def _judged_for_others(run: Run) -> set[int]:
    """Return the ids of other runs' scores that the run's verdicts helped to make."""
    own = set(Verdict.objects.filter(run=run).values_list("pk", flat=True))
    rows = Score.objects.filter(duel__verdicts__run=run).exclude(run=run).distinct()
    return {pk for pk, verdicts in rows.values_list("pk", "verdicts").iterator() if own.intersection(verdicts)}


@rests_on(Run)
def reigns_of_run(run: Run) -> Iterable[Rest]:
    """The line of kings rests on the verdicts that made it."""
    if crowned := run.reigns.count():
        yield Rest(f"Kings that it crowned: {crowned}.", reverse("reign-list", args=[run.project.slug]))


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
    """The run's scores and verdicts, duels whose sample is gone, then answers, prompts and records that nothing uses.
    Rows that a later import also had stay."""
    # A sample that somebody decided meanwhile keeps its score.
    kept = Duel.objects.filter(counting__run=run, sample__isnull=False)
    yield Score.objects.filter(run=run).exclude(duel__in=kept)
    unused = ~Exists(Score.objects.filter(panel=OuterRef("pk")))
    named = run.project.settings.panel.counting
    yield ScorePanel.objects.filter(unused, project=run.project_id).exclude(digest=named)
    if not _judged_for_others(run):
        yield Verdict.objects.filter(run=run).exclude(duel__in=kept)
    own = Q(run=run) | Q(prompt__run=run) if run.kind == "import" else Q(run=run)
    yield Duel.everything.filter(own, project=run.project_id, sample=None)
    free = ~Exists(Duel.everything.filter(Q(king=OuterRef("pk")) | Q(challenger=OuterRef("pk"))))
    yield Answer.objects.filter(free, run=run)
    unasked = ~Exists(Duel.everything.filter(prompt=OuterRef("pk")))
    yield Prompt.objects.filter(unasked, run=run, imported_again=False)
    yield PullRequest.objects.filter(run=run, imported_again=False)
