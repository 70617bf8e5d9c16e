"""The list of duels: what it can be filtered and sorted by."""

from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from curation.duels.models import Duel, DuelQuerySet
from curation.projects.models import Project
from curation.runs.models import Run
from curation.samples.models import Bucket, Flag, flag_bits, with_any_flag
from curation.web.ids import find
from curation.web.lists.filters import Moment, Words, one_of
from curation.web.lists.params import ListParams


class DuelList(ListParams):
    sorts: ClassVar[Sequence[str]] = ("-id", "id", "-score", "score")
    # A duel without a score is sorted below all others.
    sort_columns: ClassVar[Mapping[str, str]] = {"score": "score_key"}
    lookups: ClassVar[Mapping[str, str]] = {
        "bucket": "bucket",
        "opponent": "opponent",
        "instance_id": "prompt__instance_id",
        "score_max": "score_key__lte",
        "created_after": "created_at__gte",
    }

    bucket: Annotated[Words, one_of(Bucket.values)] = ()
    flags: Annotated[Words, one_of([flag.label for flag in Flag])] = ()
    opponent: Annotated[Words, one_of(("king", "reference"))] = ()
    instance_id: Words = ()
    run: str | None = None
    score_min: float | None = None
    score_max: float | None = None
    created_after: Moment | None = None

    def rows(self, project: Project) -> DuelQuerySet:
        """The project's duels that match. A run of another project: `NotFound`."""
        duels = self.narrow(Duel.objects.of(project))
        for group in self.flags:
            duels = duels.filter(flags__in=with_any_flag(flag_bits(group)))
        if self.score_min is not None or self.score_max is not None:
            duels = duels.filter(score_key__gte=max(0.0, self.score_min or 0.0))
        if self.run is not None:
            duels = duels.filter(run=find(Run.objects.of(project), self.run, "run"))
        return duels
