"""The looks of an audit, and the proof that they are."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db.models import Exists, OuterRef, QuerySet
from pydantic import Field

from curation.guarantees.models import Audit, Draw, Guarantee
from curation.review.decisions.opinions import outcome_of
from curation.review.models import DECIDING, Action, Decision
from curation.review.queue.next import median_seconds
from curation.samples.models import Sample, SampleStatus
from curation.web.ids import IdList
from curation.web.schemas import out
from curation.web.text.figures import percent
from judging.statistics.guarantee import Noise, SetLevel, expected, holds, levels_of, noise, proven, wealth, with_looks

# The tolerated shares of the curve, beside the audit's own.
ALPHAS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2)
MORE_LOOKS = (25, 50, 100, 200, 400, 800, 1_600)


@dataclass(frozen=True, slots=True)
class AuditDraw:
    """A draw and its decision. `looked`: somebody decided, skipped or flagged it. `agreed`: they approved exactly the
    text that a guarantee would approve. `decision` is the id of the decision that counts."""

    sample_id: int | None
    score: float
    cluster: str
    looked: bool
    agreed: bool
    decision: int


@out
class PointOut:
    alpha: float = Field(examples=[0.05])
    proven: float = Field(examples=[0.62], description="Share of the unseen samples.")
    expected: float = Field(examples=[0.7], description="The same if the looks so far were the whole truth.")


@out
class MoreOut:
    looks: int = Field(examples=[100], description="Looks beside those of this audit.")
    share: float = Field(examples=[0.71], description="Expected to be proven.")


@dataclass(frozen=True)
class Proof:
    """The proof by the looks of an audit. `seconds` is their median time.

    All looks so far are one test, and those after an extension are another. A draw without a look counts as an error,
    so that looking at the figures early proves nothing too much: a later look can only improve them.
    """

    audit: Audit
    looks: Sequence[AuditDraw]
    noise: Noise
    seconds: float | None

    @property
    def seconds_saved(self) -> float | None:
        return None if self.seconds is None or self.proven is None else round(self.seconds * self.proven.unseen, 1)

    @property
    def looked(self) -> int:
        return sum(one.looked for one in self.looks)

    @property
    def agreed(self) -> int:
        return sum(one.agreed for one in self.looks)

    @cached_property
    def levels(self) -> list[SetLevel]:
        return self._levels(self.looks)

    @cached_property
    def seen_levels(self) -> list[SetLevel]:
        """The levels of the draws that people have looked at."""
        return self._levels([one for one in self.looks if one.looked])

    @cached_property
    def proven(self) -> SetLevel | None:
        return self._proven(self.levels, self.audit.alpha)

    @cached_property
    def expected(self) -> SetLevel | None:
        """The level that the looks so far point to, without any confidence."""
        return self._expected(self.audit.alpha)

    @property
    def is_too_noisy(self) -> bool:
        """Whether the reviewers disagree too much for the promise."""
        return self.noise.at_least > self.audit.alpha

    @property
    def why_not(self) -> str:
        """Why nothing is proven; empty if something is."""
        audit, waiting = self.audit, self.audit.drawn - self.looked
        if self.proven is not None:
            return ""
        if self.is_too_noisy:
            return (
                f"Reviewers disagree about {self.noise.disagreed} of {self.noise.samples} samples, so that each is "
                f"wrong about {percent(self.noise.rate, 1)} of them. No guarantee below that can be promised."
            )
        if waiting:
            return f"{waiting} of {audit.drawn} drawn samples wait for a look. Until then each counts as an error."
        return f"There are {audit.drawn - self.agreed} errors in {audit.drawn} looks, too many among the best scores."

    def share(self, level: SetLevel | None, *, more: int = 0) -> float:
        """The part of all unseen samples that a level would approve, in an audit of so many more looks."""
        unseen = self.audit.samples - self.audit.drawn - more
        return level.unseen / unseen if level is not None else 0.0

    def curve(self) -> list[PointOut]:
        """The shares for each tolerated share of errors, at the audit's confidence."""
        levels, alphas = self.levels, sorted({*ALPHAS, self.audit.alpha})
        return [PointOut(a, self.share(self._proven(levels, a)), self.share(self._expected(a))) for a in alphas]

    def more_looks(self) -> list[MoreOut]:
        """Numbers of further looks and the share that an audit of all of them is expected to prove, if they find errors
        as often as the looks so far; each with a larger share than the one before."""
        audit, found, best = self.audit, list[MoreOut](), self.share(self.proven)
        for more in MORE_LOOKS if self.looked else ():
            if audit.drawn + more < audit.samples:
                levels = with_looks(self.seen_levels, audit.drawn + more, self.looked)
                share = self.share(self._proven(levels, audit.alpha), more=more)
                if share > best:
                    found.append(MoreOut(more, share))
                    best = share
        return found

    def holds(self, guarantee: Guarantee) -> bool:
        """Whether the looks still prove the guarantee."""
        audit, threshold = self.audit, guarantee.threshold
        if self.is_too_noisy:
            return False
        return holds(self.levels, audit.alpha, audit.delta_of_test, threshold=threshold, approved=guarantee.samples)

    def _proven(self, levels: Sequence[SetLevel], alpha: float) -> SetLevel | None:
        return None if self.noise.at_least > alpha else proven(levels, alpha, self.audit.delta_of_test)

    def _expected(self, alpha: float) -> SetLevel | None:
        found = expected(self.seen_levels, alpha)
        return None if found is None else next(one for one in self.levels if one.threshold == found.threshold)

    def _levels(self, looks: Sequence[AuditDraw]) -> list[SetLevel]:
        thresholds, samples = zip(*self.audit.levels, strict=True)
        scores, errors = [one.score for one in looks], [not one.agreed for one in looks]
        clusters = [one.cluster for one in looks] if self.audit.cluster else None
        return levels_of(thresholds, samples, scores, errors, clusters)


def proof_of(audit: Audit) -> Proof:
    looks = _looks(Draw.objects.filter(audit=audit, guarantee=None).offered(), since=audit.created_at)
    ids = [one.sample_id for one in looks if one.sample_id is not None]
    own = Decision.objects.filter(sample_id__in=IdList(ids), action__in=DECIDING, batch="").not_undone()
    return Proof(audit, looks, _noise(ids, audit.delta), median_seconds(own, last=audit.drawn))


@out
class AliveOut:
    """The samples that the guarantee keeps for people. It is withdrawn when `wealth` reaches `limit`."""

    kept: int = Field(examples=[62])
    looked: int = Field(examples=[20])
    errors: int = Field(examples=[1])
    wealth: float = Field(examples=[0.8])
    limit: float = Field(examples=[20.0])

    @property
    def has_failed(self) -> bool:
        return self.wealth >= self.limit


def alive_of(guarantee: Guarantee) -> AliveOut:
    """The sequential test of the samples that the guarantee keeps, in the order in which people decided them."""
    looks = [one for one in _looks(guarantee.draws.all(), since=guarantee.created_at) if one.looked]
    errors = [not one.agreed for one in sorted(looks, key=lambda one: one.decision)]
    audit, total = guarantee.audit, guarantee.samples + guarantee.kept
    reached = float(wealth(errors, total, audit.alpha).max()) if errors else 1.0
    return AliveOut(guarantee.kept, len(errors), sum(errors), reached, 1 / audit.delta)


@out
class SinceOut:
    """Samples that it approved and people have decided since. They are no random choice, and prove nothing."""

    decided: int = Field(examples=[12])
    otherwise: int = Field(examples=[3], description="Of these, other than by an approval.")


def decided_since(guarantee: Guarantee) -> SinceOut:
    approved = Decision.objects.filter(guarantee=guarantee, sample=OuterRef("pk"), action=Action.APPROVE)
    # By the index of samples that a person decided, of which a guarantee's are none.
    states = Sample.objects.filter(Exists(approved), decided_by__isnull=False).values_list("status", flat=True)
    return SinceOut(len(states), sum(status != SampleStatus.APPROVED for status in states))


def _looks(draws: QuerySet[Draw], *, since: datetime) -> list[AuditDraw]:
    rows = list(draws.order_by("place").values_list("sample_id", "score", "cluster", "pick", "text_sha256"))
    ids = IdList([row[0] for row in rows if row[0] is not None])
    # A bulk decision, an imported one and one under a guarantee are no look at this sample, nor is an earlier skip.
    own = Decision.objects.filter(sample_id__in=ids, batch="")
    columns = ("sample_id", "pk", "action", "pick", "text_sha256")
    decided = {row[0]: row[1:] for row in own.standing(*DECIDING).values_list(*columns)}
    passed = own.filter(action__in=(Action.SKIP, Action.FLAG), created_at__gt=since).not_undone().order_by("id")
    skipped = dict(passed.values_list("sample_id", "pk"))
    looks = []
    for sample_id, score, cluster, pick, digest in rows:
        decision, *outcome = decided.get(sample_id) or (skipped.get(sample_id, 0), "", "", "")
        agreed = tuple(outcome) == (Action.APPROVE, pick, digest)
        looks.append(AuditDraw(sample_id, score, cluster, decision > 0, agreed, decision))
    return looks


def _noise(ids: Sequence[int], delta: float) -> Noise:
    """The disagreement of people who decided the same drawn sample independently."""
    rows = Decision.objects.opinions().filter(sample_id__in=IdList(ids), batch="").order_by("id")
    given: dict[tuple[int, int], dict[int, tuple[str, str, str]]] = defaultdict(dict)
    for row in rows:
        given[row.sample_id, row.round][row.reviewer_id] = outcome_of(row)
    several = [list(by.values()) for by in given.values() if len(by) > 1]
    return noise(len(several), sum(len(set(one)) > 1 for one in several), delta)
