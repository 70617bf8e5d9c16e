"""Prometheus metrics: requests as counted by the web processes, everything else read from the database."""

from collections.abc import Iterable

from django.db.models import Count, Sum
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from curation.llm.models import EndpointPace
from curation.projects.models import Project
from curation.review.queue.take import open_count
from curation.runs.models import Run, RunState


class ProductCollector(Collector):
    """Runs, items, calls, tokens, cost and queues of all projects: one aggregate over runs, one count per project."""

    def collect(self) -> Iterable[Metric]:
        by_state = dict(Run.objects.order_by().values_list("state").annotate(Count("id")))
        states = GaugeMetricFamily("winnow_runs", "Runs by state.", labels=["state"])
        for state in RunState.values:
            states.add_metric([state], by_state.get(state, 0))
        yield states
        partly = Run.objects.filter(state=RunState.SUCCEEDED, items_failed__gt=0).count()
        yield GaugeMetricFamily("winnow_runs_with_failures", "Succeeded runs of which items failed.", value=partly)
        now_down = EndpointPace.objects.down().count()
        yield GaugeMetricFamily("winnow_endpoints_down", "Model endpoints that are paused as down.", value=now_down)
        sums = Run.objects.aggregate(**{f"{key}_sum": Sum(key) for key in COUNTED})
        sums = {key: sums[f"{key}_sum"] or 0 for key in COUNTED}
        yield _by_label("winnow_items", "Items that ended.", "outcome", ITEMS, sums)
        yield _by_label("winnow_tokens", "Tokens of model calls.", "direction", TOKENS, sums)
        yield CounterMetricFamily("winnow_calls", "Model calls that were sent.", value=sums["calls"])
        yield CounterMetricFamily("winnow_cost_usd", "Known cost of model calls.", value=float(sums["cost"]))
        unknown = sums["cost_unknown_calls"]
        yield CounterMetricFamily("winnow_cost_unknown_calls", "Calls of unknown cost.", value=unknown)
        ended = sum(sums[key] for key in ITEMS.values())
        yield GaugeMetricFamily("winnow_items_open", "Items that have not ended.", value=sums["items_total"] - ended)
        queue = GaugeMetricFamily("winnow_review_queue", "Samples that wait for a decision.", labels=["project"])
        for project in Project.objects.only("slug"):
            queue.add_metric([project.slug], open_count(project))
        yield queue


ITEMS = {"done": "items_done", "failed": "items_failed", "skipped": "items_skipped"}
TOKENS = {"in": "tokens_in", "out": "tokens_out"}
COUNTED = ("items_total", *ITEMS.values(), *TOKENS.values(), "calls", "cost", "cost_unknown_calls")


def exposition() -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library leaves it untyped
    registry.register(ProductCollector())
    return generate_latest(registry)


def _by_label(name: str, text: str, label: str, keys: dict[str, str], sums: dict[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, key in keys.items():
        family.add_metric([value], sums[key])
    return family
