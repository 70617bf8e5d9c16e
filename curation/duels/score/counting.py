"""Copy the counting panel's newest scores to duels and their samples. Statuses and decisions never change.

Everything is a few statements for all rows, so that another panel or other thresholds take a second for many thousands
of duels. The bucket and the priority follow `judging.panel.scoring` and `curation.samples.scores`; a test
compares both.
"""

from collections.abc import Collection, Sequence

from django.db.models import Case, CharField, Count, Exists, F, FloatField, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Abs, Coalesce, Least
from django.db.models.lookups import Exact, GreaterThanOrEqual, IsNull
from django.urls import reverse

from curation.duels.models import Duel
from curation.duels.score.models import Score, ScorePanel
from curation.duels.score.panels import counting_panel
from curation.projects.instructions.texts import rubric_of
from curation.projects.models import Project
from curation.projects.settings.dependents import Dependent, MissingOut, MoveOut
from curation.projects.settings.document import ProjectSettings
from curation.projects.settings.document import ThresholdSettings as Edges
from curation.runs.models import Run
from curation.samples.models import LEAKS, SCANNED, UNSCORED, Bucket, Flag, Sample, SampleStatus, flag_bits
from curation.samples.scores import FLIP_BONUS, HELD_BONUS, SPREAD_WEIGHT, UNPARSED_PRIORITY
from curation.web.ids import IdList
from judging.panel.rubric import names_of
from judging.panel.scoring import HOLDING_FLAGS

# Set by a panel's verdicts; the other flags are about the answers.
OF_VERDICTS = Flag.FLIP | Flag.INFRA
ALL = 2 * max(Flag) - 1
EXAMPLES = 3
# The settings that move samples.
PATHS = frozenset({"thresholds.final", "thresholds.refined", "panel.counting"})


def copy_scores(project: Project, ids: Sequence[int] | None = None) -> None:
    """Copy the scores of the project's duels, or of those with these ids. The caller has locked the project."""
    duels = Duel.objects.filter(project=project)
    if ids is not None:
        duels = duels.filter(pk__in=IdList(ids))
    edges = project.settings.thresholds
    duels.update(counting=_newest(counting_panel(project)))
    # An imported score is nobody's verdict here: it stays until the counting panel scores the duel.
    imported = Q(counting=None, run__in=Run.objects.filter(project=project, kind="import"))
    duels = duels.exclude(imported)
    samples = Sample.objects.filter(pk__in=duels.filter(sample__isnull=False).values("sample"))
    chosen = Score.objects.filter(pk=OuterRef("counting_id"))
    duels.update(
        run=Coalesce(Subquery(chosen.values("run")), F("run")),
        score=Subquery(chosen.values("score")),
        score_key=Coalesce(Subquery(chosen.values("score_key")), Value(UNSCORED)),
        metrics=Coalesce(Subquery(chosen.values("metrics")), Value({}, Duel._meta.get_field("metrics"))),
        spread=Coalesce(Subquery(chosen.values("spread")), Value(0.0)),
        flags=Coalesce(Subquery(chosen.values("flags")), F("flags").bitand(ALL ^ OF_VERDICTS)),
    )
    duels.update(bucket=_bucket("counting", "score", "flags", edges))
    duel = Duel.objects.filter(sample=OuterRef("pk"))
    flags = Subquery(duel.values("flags"))
    # A revision has a leak flag of its own, and the scan's flags are about all texts.
    revised = Exists(Sample.objects.filter(pk=OuterRef("pk"), revisions__isnull=False))
    own = SCANNED | Flag.LEAK
    samples.update(
        run=Subquery(duel.values("run")),
        score=Subquery(duel.values("score")),
        score_key=Subquery(duel.values("score_key")),
        bucket=Subquery(duel.values("bucket")),
        flags=Case(
            When(revised, then=flags.bitand(ALL ^ own) + F("flags").bitand(own)),
            default=flags.bitand(ALL ^ SCANNED) + F("flags").bitand(SCANNED),
        ),
        priority=Subquery(duel.annotate(found=_priority(edges)).values("found")),
    )


def moves(project: Project, settings: ProjectSettings) -> list[MoveOut]:
    """Return what these settings would move from bucket to bucket (empty: no score of the counting panel). Nothing is
    written."""
    duels = Duel.objects.filter(project=project, sample__isnull=False)
    if settings.panel.counting == project.settings.panel.counting:
        # Each duel has the score that would be copied: other thresholds are shown while a person drags an edge.
        duels = duels.annotate(next=F("counting"), next_score=F("score"), next_flags=F("flags"))
    else:
        chosen = Score.objects.filter(pk=OuterRef("next"))
        duels = duels.annotate(next=_newest(counting_panel(project, settings)))
        duels = duels.annotate(next_score=Subquery(chosen.values("score")), next_flags=Subquery(chosen.values("flags")))
    duels = duels.exclude(Q(IsNull(F("next"), True)) & Q(run__kind="import"))
    after = _bucket("next", "next_score", "next_flags", settings.thresholds)
    moved = duels.annotate(after=after).exclude(Exact(F("after"), F("bucket")))
    undecided = Count("pk", filter=Q(sample__status=SampleStatus.PENDING))
    rows = moved.order_by().values("bucket", "after").annotate(n=Count("pk"), undecided=undecided)
    order = [*Bucket.values, ""]
    found = []
    for row in sorted(rows, key=lambda row: (order.index(row["bucket"]), order.index(row["after"]))):
        alike = moved.filter(Exact(F("after"), row["after"]), bucket=row["bucket"]).order_by("pk")
        examples = [
            (f"sample {pk}", reverse("sample-page", args=[project.slug, pk]))
            for pk in alike.values_list("sample_id", flat=True)[:EXAMPLES]
        ]
        found.append(MoveOut(row["bucket"], row["after"], row["n"], row["n"] - row["undecided"], examples))
    return found


class CountingScores(Dependent):
    """Samples follow the counting panel and the thresholds."""

    def missing(self, project: Project, settings: ProjectSettings) -> list[MissingOut]:
        named = settings.panel.counting
        if not named or ScorePanel.objects.filter(project=project, digest=named).exists():
            return []
        return [MissingOut("panel.counting", f"panel {named}")]

    def moves(self, project: Project, settings: ProjectSettings, changed: Collection[str]) -> list[MoveOut]:
        return moves(project, settings) if PATHS.intersection(changed) else []

    def apply(self, project: Project, changed: Collection[str]) -> None:
        if PATHS.intersection(changed):
            copy_scores(project)


class RubricWeights(Dependent):
    def missing(self, project: Project, settings: ProjectSettings) -> list[MissingOut]:
        if not settings.panel.weights:
            return []
        known = names_of(rubric_of(project))
        return [
            MissingOut("panel.weights", f"dimension {name}") for name in settings.panel.weights if name not in known
        ]


def _newest(panel: ScorePanel | None) -> Subquery:
    scores = Score.objects.filter(panel=panel, duel=OuterRef("pk")).order_by("-scored_at", "-pk")
    return Subquery(scores.values("pk")[:1])


def _bucket(scored_by: str, score: str, flags: str, edges: Edges) -> Case:
    """`judging.panel.scoring.bucket_for` of these columns, or "" without a score of the counting panel."""
    free = Exact(F(flags).bitand(flag_bits(sorted(HOLDING_FLAGS))), 0)
    return Case(
        When(IsNull(F(scored_by), True), then=Value("")),
        When(IsNull(F(score), True), then=Value(Bucket.UNPARSED.value)),
        When(Q(GreaterThanOrEqual(F(score), edges.final)) & Q(free), then=Value(Bucket.FINAL.value)),
        When(GreaterThanOrEqual(F(score), edges.refined), then=Value(Bucket.REFINED.value)),
        default=Value(Bucket.DEFEAT.value),
        output_field=CharField(),
    )


def _priority(edges: Edges) -> Case:
    """`curation.samples.scores.priority_of` a duel."""
    distance = Least(Abs(F("score") - edges.final), Abs(F("score") - edges.refined))
    flipped = Case(When(Exact(F("flags").bitand(Flag.FLIP), 0), then=0.0), default=FLIP_BONUS)
    held = Case(When(Exact(F("flags").bitand(LEAKS | Flag.INJECTION), 0), then=0.0), default=HELD_BONUS)
    return Case(
        When(score=None, then=UNPARSED_PRIORITY),
        default=distance - flipped - F("spread") * SPREAD_WEIGHT - held,
        output_field=FloatField(),
    )
