from dataclasses import dataclass

from django.urls import reverse

from curation.duels.verdict.report import RunReport, report_of
from curation.runs.models import Run
from curation.samples.models import Bucket

TEMPLATE = "duels/verdict/_report.html"


@dataclass(frozen=True, slots=True)
class BucketLink:
    bucket: Bucket
    count: int
    url: str


def report_section(run: Run) -> dict[str, object]:
    report: RunReport = report_of(run)
    samples = reverse("sample-list", args=[run.project.slug])
    return {
        "report": report,
        "buckets": [
            BucketLink(bucket, count, f"{samples}?run={run.pk}&bucket={bucket.value}")
            for bucket, count in report.buckets
        ],
        "duels_url": f"{reverse('duel-list', args=[run.project.slug])}?run={run.pk}",
        "panels_url": reverse("panel-list", args=[run.project.slug]),
        "report_url": f"/api/v1/runs/{run.pk}/report.md",
    }
