from typing import Any

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from curation.projects.access import Access
from curation.review.decisions.decide import decide
from curation.review.decisions.outcome import Reviewed, SampleOutcome
from curation.review.decisions.revise import revise
from curation.review.decisions.undo import undo
from curation.review.models import Decision, Pick
from curation.samples.texts import AnsweredSide
from tests.factories import CHALLENGER, KING, make_duel, make_sample
from tests.review.rows import judged, outcome_of, project_with_reviewer, reviewer_of, sample_of

pytestmark = pytest.mark.django_db


def outcome_after(
    access: Access, *, preference: str = "", revise_as: str = "", of: str = Pick.CHALLENGER, **duel: Any
) -> SampleOutcome:
    sample = judged(access.project, **duel)
    if revise_as:
        revise(access=access, sample_id=sample.pk, text=revise_as, of=of)
    decide(access=access, sample_id=sample.pk, action="approve", preference=preference)
    return outcome_of(sample)


def test_by_default_the_challenger_is_kept_and_beats_the_king() -> None:
    access = project_with_reviewer()
    found = outcome_after(access)
    assert (found.pick, found.chosen_text, found.rejected_text) == (Pick.CHALLENGER, CHALLENGER, KING)
    assert (found.replaced_text, found.revision_id) == (None, None)
    assert found.reviewers == (access.user.username,)


def test_a_picked_king_is_kept_and_beats_the_challenger() -> None:
    found = outcome_after(project_with_reviewer(), preference="king")
    assert (found.chosen_text, found.rejected_text) == (KING, CHALLENGER)


def test_a_draw_keeps_the_challenger_and_rejects_nothing() -> None:
    found = outcome_after(project_with_reviewer(), preference="draw")
    assert (found.pick, found.chosen_text, found.rejected_text) == ("draw", CHALLENGER, None)


def test_a_revision_takes_the_place_of_the_answer_it_revises_and_of_no_other() -> None:
    access = project_with_reviewer()
    found = outcome_after(access, revise_as="refined")
    assert (found.chosen_text, found.rejected_text, found.replaced_text) == ("refined", KING, CHALLENGER)
    assert found.revision_id
    other = outcome_after(access, revise_as="refined", preference="king")
    assert (other.chosen_text, other.rejected_text, other.revision_id) == (KING, CHALLENGER, None)
    king = outcome_after(access, revise_as="refined king", of=Pick.KING, preference="king")
    assert (king.chosen_text, king.rejected_text, king.replaced_text) == ("refined king", CHALLENGER, KING)


def test_against_the_reference_the_other_side_is_the_sources_turn() -> None:
    access = project_with_reviewer()
    duel = make_duel(access.project, challenger="mine")
    duel.king, duel.opponent = None, "reference"
    duel.save()
    found = outcome_of(sample_of(duel))
    assert (found.chosen_text, found.rejected_text) == ("mine", CHALLENGER)


def test_what_was_undone_or_overruled_is_no_approval() -> None:
    access = project_with_reviewer()
    other = reviewer_of(access.project)
    undone, overruled = judged(access.project), judged(access.project)
    for sample in (undone, overruled):
        decide(access=access, sample_id=sample.pk, action="approve", preference="king")
    decide(access=other, sample_id=overruled.pk, action="approve", version=2)
    undo(access=access, sample_id=undone.pk)
    assert (outcome_of(undone).pick, outcome_of(undone).reviewers) == (Pick.CHALLENGER, ())
    assert (outcome_of(overruled).pick, outcome_of(overruled).reviewers) == (Pick.CHALLENGER, (other.user.username,))


def test_the_number_of_queries_does_not_grow_with_the_samples(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    access = project_with_reviewer()
    samples = [judged(access.project) for _ in range(12)] + [make_sample(access.project)]
    for sample in samples[:6]:
        decide(access=access, sample_id=sample.pk, action="approve")
    with django_assert_num_queries(2):
        reviewed = Reviewed([sample.pk for sample in samples])
    found = [reviewed.outcome(sample.pk, AnsweredSide("mine"), AnsweredSide("theirs")) for sample in samples]
    assert [bool(outcome.reviewers) for outcome in found] == [True] * 6 + [False] * 7


@pytest.mark.skipif(connection.vendor != "sqlite", reason="plans of SQLite")
def test_decisions_that_are_not_undone_are_read_by_sample_without_statistics() -> None:
    rows = Decision.objects.filter(sample=1).not_undone()
    assert "sample_id=?" in rows.explain() and "undone_by_id=?" not in rows.explain()
