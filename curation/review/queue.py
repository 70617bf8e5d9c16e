"""The queue: what is left to decide."""

from curation.projects.models import Project
from curation.samples.models import Sample, Status

COUNTED_UP_TO = 10_000


def open_count(project: Project) -> int:
    """Undecided samples, counted by index up to `COUNTED_UP_TO`; a page shows more as "10,000+"."""
    return Sample.objects.of(project).filter(status=Status.PENDING).order_by()[:COUNTED_UP_TO].count()
