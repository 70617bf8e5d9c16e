"""Tell webhooks, and the parts of review that depend on decisions, that samples were decided."""

from collections.abc import Iterable, Sequence

from django.dispatch import Signal

from curation.projects.models import Project
from curation.review.models import Decision
from curation.samples.models import Sample
from curation.web.lists.id_list import IdList
from curation.webhooks.emit import emit_each
from curation.webhooks.models import WebhookEvent

# Sent with the `lines` of the log, in their transaction.
decided = Signal()


def emit_decided(project: Project, lines: Sequence[Decision]) -> None:
    """Emit `review.decided` for these lines of the log, after their samples were changed. Needs a transaction."""

    def data() -> Iterable[dict[str, object]]:
        ids = IdList([line.sample_id for line in lines])
        status = dict(Sample.objects.filter(pk__in=ids).values_list("pk", "status"))
        for line in lines:
            yield {
                "sample": str(line.sample_id),
                "decision": str(line.pk),
                "action": line.action,
                "status": status[line.sample_id],
                "waits": not line.settles,
                "batch": line.batch or None,
            }

    if lines:
        decided.send(Decision, lines=lines)
        emit_each(project, WebhookEvent.REVIEW_DECIDED, data)
