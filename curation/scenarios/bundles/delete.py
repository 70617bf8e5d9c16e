"""A scenario is taken away, unless something was made from it."""

from django.db import transaction

from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Scope
from curation.scenarios.models import Scenario
from curation.web.problems import Conflict


def delete_scenario(*, access: Access, scenario: Scenario) -> None:
    """With its bundle and reports. Raises `Conflict` where it was rolled out: trajectories need what they came from."""
    access.require(Scope.RUN)
    with transaction.atomic():
        row = Scenario.objects.select_for_update().get(pk=scenario.pk)
        if count := row.trajectories.count():
            raise Conflict(
                f"It has {count} trajectories, which say nothing without it. Edit it instead.", code="rolled_out"
            )
        data: dict[str, object] = {"scenario": str(row.pk), "bundle_sha256": row.bundle_sha256}
        record(actor=access.user, project=access.project, action="scenario.delete", subject=row.name, data=data)
        row.delete()
