"""A project whose people reject loops and everything of one repository, and hardly follow the score."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User

from curation.projects.models import Project
from curation.review.models import Decision
from curation.samples.models import Flag, Sample, SampleStatus
from tests.factories import make_member, make_project, make_sample

REPOS = ("acme/billing", "acme/ledger", "acme/flaky", "acme/search")


@dataclass
class Planted:
    project: Project
    reviewer: User
    decided: list[Sample]
    pending: list[Sample]

    def would_approve(self, sample: Sample) -> bool:
        return would_approve(sample)


def would_approve(sample: Sample) -> bool:
    return not sample.flags & Flag.LOOP and sample.repo != "acme/flaky"


def make_planted(*, decided: int = 120, pending: int = 40, seed: int = 0) -> Planted:
    drawn = random.Random(seed)
    project = make_project("planted")
    reviewer = make_member(project)
    samples = [
        make_sample(
            project,
            score=drawn.uniform(40, 95),
            repo=drawn.choice(REPOS),
            flags=Flag.LOOP if drawn.random() < 0.25 else 0,
            instance_id=f"task-{number // 2}",
            body=f"answer {number}",
        )
        for number in range(decided + pending)
    ]
    settle(reviewer, samples[:decided])
    return Planted(project, reviewer, samples[:decided], samples[decided:])


def settle(reviewer: User, samples: Sequence[Sample], *, approve: bool | None = None) -> None:
    """Decide them as the planted people do, or all alike."""
    for sample in samples:
        yes = would_approve(sample) if approve is None else approve
        action, status = ("approve", SampleStatus.APPROVED) if yes else ("reject", SampleStatus.REJECTED)
        Decision.objects.create(sample=sample, reviewer=reviewer, action=action, version=sample.version)
        sample.status, sample.decided_by, sample.version = status, reviewer, sample.version + 1
        sample.save()
