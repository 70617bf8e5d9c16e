from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, ClassVar

from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from pydantic import BeforeValidator, Field

from curation.predictions.extra import missing_extra
from curation.predictions.models import Cluster, ClusteredSample
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.projects.resource import Resource
from curation.runs.kinds import kind_of
from curation.samples.blind import has_hidden, record_unblinding, refuse_pending
from curation.samples.models import Sample
from curation.web.charts import Figure, axis, bars, color, figure
from curation.web.lists.filters import ListParams, Words, one_of
from curation.web.lists.pages import list_context, tabs
from curation.web.schemas import Id, Out

EXAMPLES = 3


class ClusterOut(Out):
    """`examples` are the ids of its most typical samples; `GET /samples?cluster=` lists all of them."""

    id: Id
    of: Annotated[str, Field(description="`failures` or `new`.")]
    name: str = Field(examples=["traceback, import, module"])
    words: list[str]
    size: int
    examples: Annotated[list[Id], BeforeValidator(lambda given: [str(getattr(one, "sample_id", one)) for one in given])]
    run: Id
    created_at: datetime


class ClusterList(ListParams):
    labels = {"of": "Samples"}
    choices = {"of": Cluster.Of.choices}
    lookups = {"of": "of"}
    sorts: ClassVar = ("-size", "size")

    of: Annotated[Words, one_of(Cluster.Of.values)] = ()


class Clusters(Resource[Cluster]):
    model, noun, plural, tag = Cluster, "cluster", "clusters", "review"
    path, row_path = "/clusters", "/projects/{slug}/clusters/{cluster_id}"
    calls, out, params = ("list", "get"), ClusterOut, ClusterList
    about = {
        "list": "Samples that are alike, the largest groups first. A run of kind `cluster` replaces those of its kind."
    }

    def rows(self, access: Access) -> QuerySet[Cluster]:
        refuse_pending(access, Sample.objects.of(access.project), "a group of samples")
        members = ClusteredSample.objects.filter(place__lt=EXAMPLES).order_by("place").select_related("sample")
        rows = Cluster.objects.filter(project=access.project, run__deleting_at=None).select_related("run")
        return rows.prefetch_related(Prefetch("members", members, to_attr="examples"))

    def shown(self, access: Access, rows: Sequence[Cluster]) -> list[ClusterOut]:
        record_unblinding(access, [one.sample_id for row in rows for one in _examples(row)])
        return [ClusterOut.model_validate(row) for row in rows]


def _examples(row: Cluster) -> list[ClusteredSample]:
    found: list[ClusteredSample] = row.examples  # type: ignore[attr-defined]  # of `Clusters.rows`
    return found


clusters = Clusters()
router = clusters.router()


def size_chart(rows: Sequence[Cluster]) -> Figure:
    """The samples in each group, the largest on top."""
    shown = rows[::-1]
    sizes = bars(
        "samples",
        [row.size for row in shown],
        [f"{row.name} ({row.pk})" for row in shown],
        hover="%{x}",
        orientation="h",
        marker={"color": color("chart-1")},
    )
    x_axis = axis("samples", rangemode="tozero", fixedrange=True)
    return figure([sizes], xaxis=x_axis, yaxis={"automargin": True, "fixedrange": True}, showlegend=False)


@project_page(Scope.READ, "GET", closed_to=has_hidden)
def cluster_list(request: HttpRequest, access: Access) -> HttpResponse:
    project = access.project
    params = ClusterList.from_query(request.GET)
    page = params.page(params.narrow(clusters.rows(access)))
    record_unblinding(access, [one.sample_id for row in page.rows for one in _examples(row)])
    context = {
        **list_context(request, params, page, f"/api/v1/projects/{project.slug}/clusters"),
        "tabs": tabs(request.path, params, "of", Cluster.Of.choices),
        "shown": [(row, _examples(row)) for row in page.rows],
        "launch_url": kind_of("cluster").form_url(project) if access.may(Scope.RUN) else "",
        "missing": missing_extra(),
        "chart": size_chart(page.rows),
    }
    return render(request, "predictions/clusters.html", context)
