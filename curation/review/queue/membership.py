"""People without the right to review any more give back their leases, so that nobody waits for them."""

from typing import Any

from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from curation.projects.models import SCOPES_OF_ROLE, Member, Scope
from curation.review.models import Lease
from curation.review.queue.lease import give_back


@receiver(post_save, sender=Member)
def release_after_change(instance: Member, **kwargs: Any) -> None:
    if Scope.REVIEW not in SCOPES_OF_ROLE[instance.role]:
        release_after_removal(instance)


@receiver(post_delete, sender=Member)
def release_after_removal(instance: Member, **kwargs: Any) -> None:
    give_back(Lease.objects.filter(reviewer=instance.user_id, sample__project=instance.project_id))
