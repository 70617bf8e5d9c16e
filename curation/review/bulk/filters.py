from curation.projects.access import Access
from curation.projects.models import Scope
from curation.review.models import Batch
from curation.web.lists.keyset import KeysetPage
from curation.web.lists.params import ListParams, named_list


@named_list("batches", page="batch-list")
class BatchList(ListParams):
    """The project's bulk actions, the newest first. People who only review see their own."""

    def rows(self, access: Access) -> KeysetPage[Batch]:
        rows = Batch.objects.filter(project=access.project).select_related("reviewer")
        return self.page(rows if access.may(Scope.RUN) else rows.filter(reviewer=access.user))
