"""The section of a gate run's page: how many scenarios were admitted, and why others were rejected or held."""

from dataclasses import dataclass

from django.db.models import Count, Max
from django.urls import reverse

from curation.runs.models import Run
from curation.scenarios.models import GateReport, ScenarioStatus
from curation.web.text.markup import with_signs

TEMPLATE = "scenarios/gate/_run_gate.html"
SHOWN = 50


@dataclass(frozen=True, slots=True)
class VerdictCount:
    status: ScenarioStatus
    count: int


@dataclass(frozen=True, slots=True)
class GateRefusal:
    name: str
    url: str
    reason: str
    status: ScenarioStatus


def gate_section(run: Run) -> dict[str, object]:
    """Context of `TEMPLATE`: scenarios by their last verdict in the run, and the latest reasons for a refusal."""
    reports = GateReport.objects.filter(run=run)
    last = reports.order_by().values("scenario").annotate(last=Max("id")).values("last")
    counts = dict(reports.filter(pk__in=last).order_by().values_list("verdict").annotate(n=Count("id")))
    refused = (
        reports.filter(verdict__in=(ScenarioStatus.REJECTED, ScenarioStatus.HELD))
        .select_related("scenario")
        .order_by("-id")
    )
    slug = run.project.slug
    return {
        "verdicts": [VerdictCount(status, counts[status.value]) for status in ScenarioStatus if status.value in counts],
        "refusals": [
            GateRefusal(
                name=with_signs(row.scenario.name),
                url=f"{reverse('scenario-report', args=[slug, row.scenario_id])}?report={row.pk}",
                reason=with_signs(row.reason),
                status=ScenarioStatus(row.verdict),
            )
            for row in refused[:SHOWN]
        ],
        "refused": refused.count(),
        "scenarios_url": reverse("scenario-list", args=[slug]),
    }
