"""The figures of several projects side by side, without those that blind review hides.

Counts by status, runs and costs are the same for every member. Scores, buckets and flags are not among them.
"""

from collections.abc import Sequence
from decimal import Decimal

from django.contrib.auth.models import User
from django.db.models import Count, Q, Sum

from curation.projects.models import Deletion, Member, Project, Role
from curation.runs.models import LIVE, Run
from curation.samples.models import Sample, SampleStatus


def figures_of(projects: Sequence[Project], user: User) -> dict[int, dict[str, object]]:
    """Return the figures of these projects, which the user is a member of, in four queries. `statuses` counts samples
    by status; `cost` is in US dollars, deleted runs included."""
    ids = [project.pk for project in projects]
    roles = dict(Member.objects.filter(user=user, project__in=ids).values_list("project_id", "role"))
    samples = Sample.objects.filter(project__in=ids).order_by().values_list("project_id", "status")
    statuses = {pk: dict.fromkeys(SampleStatus.values, 0) for pk in ids}
    for pk, status, number in samples.annotate(n=Count("id")):
        statuses[pk][status] = number
    spent = {"cost": Sum("cost"), "unknown": Sum("cost_unknown_calls")}
    costs, unknown, live = dict.fromkeys(ids, Decimal(0)), dict.fromkeys(ids, 0), dict.fromkeys(ids, 0)
    own = Run.objects.filter(project__in=ids, deleting_at=None).order_by().values_list("project_id")
    for pk, cost, calls, number in own.annotate(**spent, live=Count("id", filter=Q(state__in=LIVE))):
        costs[pk], unknown[pk], live[pk] = cost, calls, number
    # The costs of deleted runs count too.
    removed = Deletion.objects.filter(project_id__in=ids).order_by().values_list("project_id")
    for pk, cost, calls in removed.annotate(**spent):
        costs[pk] += cost
        unknown[pk] += calls
    return {
        project.pk: {
            "pk": project.pk,
            "slug": project.slug,
            "name": project.name,
            "role": Role.ADMIN if user.is_superuser else Role(roles[project.pk]),
            "samples": sum(statuses[project.pk].values()),
            "statuses": statuses[project.pk],
            "runs_live": live[project.pk],
            "cost": costs[project.pk],
            "cost_unknown_calls": unknown[project.pk],
        }
        for project in projects
        if user.is_superuser or project.pk in roles
    }
