"""Samples with decisions keep a run from being deleted; its other samples go with it."""

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from curation.projects.removal.rows import Rest, goes_with, rests_on
from curation.review.models import Decision, Revision, Suggestion, TextScore, import_batch
from curation.runs.models import Run
from curation.samples.models import Sample
from curation.web.text.figures import counted


def samples_of(run: Run) -> QuerySet[Sample]:
    """The samples that a run made, and for an import also those that were made from its rows. Samples that a later
    import also had are not its own."""
    made = Q(run=run)
    if run.kind == "import":
        made |= Q(duel__prompt__run=run) | Q(trajectory__scenario__run=run)
    samples = Sample.objects.filter(made, project=run.project_id)
    return samples.exclude(run=run, duel__prompt__imported_again=True) if run.kind == "import" else samples


@rests_on(Run)
def decided_samples(run: Run) -> Iterable[Rest]:
    samples = samples_of(run)
    decided = samples.filter(_worked_on(run)).count()
    if decided:
        url = reverse("sample-list", args=[run.project.slug])
        total = samples.count()
        come = f"{counted(total, 'sample')} {'comes' if total == 1 else 'come'}"
        link = url if run.kind == "import" else f"{url}?run={run.pk}"
        yield Rest(f"{come} from this {_noun(run)}, {decided} of them decided or revised.", link)


@rests_on(Run)
def revisions_by_models(run: Run) -> Iterable[Rest]:
    url = reverse("suggestion-list", args=[run.project.slug])
    if written := Suggestion.objects.filter(run=run, revision__isnull=False).count():
        yield Rest(f"Revisions that its model wrote: {written}.", f"{url}?run={run.pk}&outcome=better")
    if scored := TextScore.objects.filter(run=run, suggestion=None).values("revision").distinct().count():
        yield Rest(
            f"Revisions that have their scores from it: {scored}.", reverse("sample-list", args=[run.project.slug])
        )


@goes_with(Run)
def suggestions_of_run(run: Run) -> Iterable[QuerySet[Any]]:
    yield Suggestion.objects.filter(run=run, revision=None)


@goes_with(Run)
def undecided_samples(run: Run) -> Iterable[QuerySet[Any]]:
    """A sample that somebody decides meanwhile stays."""
    yield samples_of(run).exclude(_worked_on(run))


def _worked_on(run: Run) -> Q:
    """Decisions that the import took over from its file go with it."""
    mine = {"sample": OuterRef("pk")}
    return Q(
        Exists(Decision.objects.not_undone().filter(**mine).exclude(action="undo").exclude(batch=import_batch(run)))
    ) | Q(Exists(Revision.objects.filter(**mine)))


def _noun(run: Run) -> str:
    return "import" if run.kind == "import" else "run"
