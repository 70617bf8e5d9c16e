"""Two people decide at once: neither loses their decision, and the sample is settled exactly once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from curation.projects.access import Access
from curation.review.decisions.decide import decide
from curation.review.models import Decision
from curation.samples.models import Sample
from tests.factories import make_project
from tests.review.rows import judged, reviewer_of


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("words", [("approve", "approve"), ("approve", "reject")])
def test_two_people_who_decide_at_once_settle_or_dispute_each_sample_exactly_once(words: tuple[str, str]) -> None:
    project = make_project(settings_json={"review": {"overlap": 2}})
    people = [reviewer_of(project), reviewer_of(project)]
    samples = [judged(project) for _ in range(8)]
    meet = Barrier(2)

    def work(access: Access, word: str) -> None:
        try:
            for sample in samples:
                meet.wait(20)
                decide(access=access, sample_id=sample.pk, action=word)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, people, words))
    agree = words[0] == words[1]
    for sample in Sample.objects.all():
        assert (sample.status, sample.disputed) == (("approved", False) if agree else ("pending", True))
        assert sample.version == (2 if agree else 1)
        settling = Decision.objects.filter(sample=sample, settles=True).count()
        assert (settling, Decision.objects.filter(sample=sample).count()) == (int(agree), 2)
