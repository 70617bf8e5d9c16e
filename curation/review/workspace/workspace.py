"""Everything that the page of one sample shows, gathered in one place and free of queries afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils.safestring import SafeString

from curation.projects.access import Access
from curation.projects.models import Scope
from curation.projects.settings.guidelines import guidelines_html
from curation.review.decisions.drafts import draft_of
from curation.review.decisions.outcome import Outcome, outcomes
from curation.review.models import Decision, Draft, Lease, Pick, Revision
from curation.review.queue.lease import Held, holder_of
from curation.review.queue.pace import Progress, progress_of
from curation.review.queue.seats import onlooker_swapped
from curation.review.workspace.detail import AnswerDetail, Detail, Facts, detail_of
from curation.review.workspace.diff import diff_html, word_diff
from curation.review.workspace.history import history_of
from curation.review.workspace.navigation import Trail, list_trail, queue_trail
from curation.review.workspace.rollout import Rollout, rollout_of
from curation.review.workspace.verdicts import Judge, judges_of
from curation.samples.list.queries import source_url
from curation.samples.models import Flag, Kind, Sample, Status, flag_names
from curation.web.text.markup import Span, render_text
from curation.web.text.transcript import Excerpt, Turn
from judging.panel.rubric import RUBRIC, Dimension

# What the panel of judges brought to light; naming it while blind would tell the sides apart.
TELLING_FLAGS = Flag.LEAK | Flag.FLIP
# Of a trajectory: how it ended.
TELLING_OF_ROLLOUT = Flag.INFRA


@dataclass(frozen=True, slots=True)
class Seat:
    """One answer where it sits. `name` and `model` are empty while the seats are blind; `word` is left or right."""

    word: str
    key: str
    name: str
    model: str
    html: SafeString
    facts: Facts
    revision: int | None
    leaks: int
    picked: bool

    @property
    def title(self) -> str:
        return self.word.capitalize()


@dataclass(frozen=True, slots=True)
class RevisionView:
    row: Revision
    of: str
    diff: SafeString


@dataclass(frozen=True, slots=True)
class Revealed:
    """What stays hidden while blind: who sits where, the judges, the score, the leak."""

    judges: list[Judge]
    metrics: list[tuple[str, float]]
    revisions: list[RevisionView]
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class Place:
    """Where the reviewer came from: a queue (with its query), looking back at a decision, or neither."""

    queue: bool = False
    query: str = ""
    at: int | None = None

    @property
    def looking_back(self) -> bool:
        return self.queue and self.at is not None


@dataclass(frozen=True, slots=True)
class Workspace:
    sample: Sample
    place: Place
    blind: bool
    held: Held | None
    in_review_by: User | None
    may_decide: bool
    duel_id: int | None
    seats: list[Seat]
    history: Excerpt[Turn] | None
    rollout: Rollout | None
    revealed: Revealed | None
    flags: list[str]
    source_url: str | None
    decisions: Sequence[Decision]
    attention: Sequence[Decision]
    rubric: tuple[Dimension, ...]
    guidelines: SafeString
    reasons: list[tuple[str, str]]
    progress: Progress | None
    trail: Trail
    draft: Draft | None
    skipped_before: bool = False
    notice: str = ""

    @property
    def needs_pick(self) -> bool:
        """While the seats are blind approving asks for the pick first."""
        return self.blind and bool(self.seats)


def workspace_of(
    *,
    access: Access,
    sample: Sample,
    place: Place,
    held: Held | None = None,
    skipped_before: bool = False,
    notice: str = "",
) -> Workspace:
    """Reads it all: about a dozen queries by index, whatever the size of the project."""
    review = access.project.settings.review
    rolled_out = sample.kind == Kind.TRAJECTORY
    found = None if rolled_out else detail_of(sample)
    blind = blind_for(access, sample)
    rollout = rollout_of(sample, blind=blind) if rolled_out else None
    holder = holder_of(sample.pk, other_than=access.user)
    decisions = list(Decision.objects.filter(sample=sample).select_related("reviewer").order_by("-id")[:50])
    may_decide = access.may(Scope.REVIEW) and holder is None
    approved = sample.status == Status.APPROVED and not rolled_out
    outcome = outcomes([sample]).get(sample.pk) if approved else None
    return Workspace(
        sample=sample,
        place=place,
        blind=blind,
        held=held,
        in_review_by=holder,
        may_decide=may_decide,
        duel_id=found.duel.pk if found else None,
        seats=_seats(found, swapped_for(access, sample, held), blind, outcome) if found else [],
        history=None if rollout else history_of(sample).opening(),
        rollout=rollout,
        revealed=_revealed(found, outcome) if found and not blind else None,
        flags=flag_names(
            sample.flags & ~(TELLING_OF_ROLLOUT if rolled_out else TELLING_FLAGS) if blind else sample.flags
        ),
        source_url=source_url(sample.source, found.duel.prompt.row_offset) if found else None,
        decisions=decisions,
        attention=[row for row in decisions if row.action == "flag" and row.undone_by_id is None],
        rubric=RUBRIC,
        guidelines=guidelines_html(access.project.guidelines),
        reasons=[(str(number), reason) for number, reason in enumerate(review.reasons[:9], 1)],
        progress=progress_of(access) if place.queue else None,
        trail=_trail(access, sample, place),
        draft=draft_of(access=access, sample_id=sample.pk) if may_decide else None,
        skipped_before=skipped_before,
        notice=notice,
    )


def blind_for(access: Access, sample: Sample) -> bool:
    """Whether what the machine made of the sample is hidden: until it is decided, where the project wants that."""
    return access.project.settings.review.blind and sample.status == Status.PENDING


def swapped_for(access: Access, sample: Sample, held: Held | None = None) -> bool:
    """The seats that this person sees: of their lease while blind; once all is shown, the king on the left."""
    if not blind_for(access, sample):
        return False
    if held is not None:
        return held.swapped
    own = Lease.objects.filter(sample=sample, reviewer=access.user).values_list("swapped", flat=True).first()
    return onlooker_swapped(sample.pk, blind=True) if own is None else own


def _trail(access: Access, sample: Sample, place: Place) -> Trail:
    if place.queue:
        return queue_trail(access, sample_id=sample.pk, at=place.at, query=place.query)
    return list_trail(access, sample.pk)


def _seats(found: Detail, swapped: bool, blind: bool, outcome: Outcome | None) -> list[Seat]:
    sides = (found.candidate, found.opponent) if swapped else (found.opponent, found.candidate)
    kept = (Pick.OPPONENT if outcome.pick == Pick.OPPONENT else Pick.CANDIDATE) if outcome else None
    return [
        _seat(word, key, side, blind, picked=side.side == kept)
        for word, key, side in zip(("left", "right"), ("1", "2"), sides, strict=True)
    ]


def _seat(word: str, key: str, side: AnswerDetail, blind: bool, *, picked: bool) -> Seat:
    spans = [] if blind or side.revision else spans_of(side)
    return Seat(
        word=word,
        key=key,
        name="" if blind else side.label,
        model="" if blind else side.model,
        html=render_text(side.kept_text, spans),
        facts=side.facts,
        revision=side.revision.number if side.revision else None,
        leaks=0 if blind else len(side.leak_spans),
        picked=picked,
    )


def spans_of(side: AnswerDetail) -> list[Span]:
    """The leak spans as sorted pairs; what is no pair of numbers was not written by the lint and is left out."""
    pairs = [(span.get("start"), span.get("end")) for span in side.leak_spans]
    return sorted((start, end) for start, end in pairs if isinstance(start, int) and isinstance(end, int))


def _revealed(found: Detail, outcome: Outcome | None) -> Revealed:
    metrics = [(name, float(value)) for name, value in found.duel.metrics.items() if isinstance(value, int | float)]
    return Revealed(judges_of(found.duel), metrics, _revisions(found), outcome)


def _revisions(found: Detail) -> list[RevisionView]:
    views = []
    rows = Revision.objects.filter(sample=found.duel.sample_id).select_related("author", "parent").order_by("-number")
    for row in rows[:20]:
        side = found.side(row.of)
        before = row.parent.text if row.parent else side.text
        views.append(RevisionView(row, side.label, diff_html(word_diff(before, row.text), show="both")))
    return views
