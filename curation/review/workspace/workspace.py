"""Everything that the page of one sample shows. Rendering it needs no more queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.contrib.auth.models import User
from django.utils.safestring import SafeString

from curation.assignments.models import REVIEWING, AssignedSample
from curation.duels.models import Duel, Verdict
from curation.duels.pages.verdicts import judge_views
from curation.duels.score.models import Score
from curation.duels.score.shown import imported
from curation.labels.models import Question
from curation.projects.access import Access
from curation.projects.instructions.texts import rubric_of
from curation.projects.models import Member, Scope
from curation.projects.settings.data import Words
from curation.review.decisions.decide import draft_of
from curation.review.decisions.findings import CHALLENGER, KING
from curation.review.decisions.opinions import sees_opinions
from curation.review.decisions.outcome import Reviewed
from curation.review.decisions.state import is_waiting
from curation.review.models import Action, Decision, Draft, Lease, Pick, Revision, Suggestion, TextScore
from curation.review.queue.lease import holder_of, own_lease
from curation.review.queue.next import ReviewProgress, progress_of
from curation.review.queue.seats import LEFT, RIGHT, Seats, is_blind, kept_side, place_of, shown_seats, side_token
from curation.review.workspace.detail import (
    AnswerDetail,
    Detail,
    FindingView,
    ShownPlaces,
    detail_of,
    findings_shown,
    history_of,
    marks_of,
)
from curation.review.workspace.diff import diff_html, word_diff
from curation.review.workspace.labels import ONLY, label_panel
from curation.review.workspace.navigation import DONE, Location, last_done, navigation_of
from curation.review.workspace.rollout import RolloutView, rollout_of
from curation.samples.models import Flag, Sample, SampleKind, SampleStatus, flag_names, source_url
from curation.web.text.markup import Spans, answer_form, markdown_html, marked, part_html, visible
from curation.web.text.transcript import Excerpt, TranscriptTurn
from judging.panel.rubric import Dimension

# A decision that waits for others, in words; `{}` is the sample, or the approved answer.
DID = {Action.APPROVE: "approved {}", Action.REJECT: "rejected {}", Action.REFINE: "marked {} for refining"}
# The flag of a rollout that is hidden while blind, since it tells how it ended. The others are in its session.
HIDDEN_OF_ROLLOUT = Flag.INFRA
# The sides as findings name them.
SIDES = {Pick.CHALLENGER: CHALLENGER, Pick.KING: KING}


@dataclass(frozen=True, slots=True)
class Workspace:
    sample: Sample
    location: Location
    blind: bool
    lease: Lease | None
    in_review_by: User | None
    may_decide: bool
    seats: list[dict[str, object]]
    has_sides: bool  # two answers to pick from
    left: str
    seats_shown: Seats | None
    history: Excerpt[TranscriptTurn] | None
    tools: SafeString | None
    rollout: RolloutView | None
    revealed: dict[str, object] | None
    flags: list[str]
    findings: list[FindingView]
    source_url: str | None
    decisions: Sequence[dict[str, Any]]
    attention: Sequence[Decision]
    rubric: tuple[Dimension, ...]
    guidelines: SafeString
    reasons: list[tuple[str, str]]
    progress: ReviewProgress | None
    navigation: dict[str, str]
    draft: Draft | None
    last_decision: int
    preference: str
    done: dict[str, object] | None
    labels: dict[str, object] | None
    skipped_before: bool = False
    notice: str = ""
    may_adjudicate: bool = False
    colleagues: Sequence[str] = ()
    asked: Sequence[dict[str, object]] = ()

    @property
    def waiting(self) -> Decision | None:
        """The caller's decision, if it waits for those of others."""
        return next((view["row"] for view in self.decisions if view["waits_for_others"]), None)

    @property
    def waiting_words(self) -> str:
        """That decision in words, with the place of an approved answer on this page: `approved left`."""
        row = self.waiting
        if row is None:
            return ""
        place = place_of(row.pick, self.seats_shown) if self.seats_shown and row.action == Action.APPROVE else ""
        return DID[Action(row.action)].format("a draw" if place == Pick.DRAW else place or "it")

    @property
    def adjudicates(self) -> bool:
        """Whether the caller's decision settles a dispute of others."""
        return self.may_adjudicate and self.sample.disputed and self.waiting is None

    @property
    def needs_pick(self) -> bool:
        """While blind, approving asks for the pick first."""
        return self.blind and self.has_sides

    @property
    def has_edit(self) -> bool:
        """Whether the caller began an edit that is not saved."""
        return self.draft is not None and bool(self.draft.text or self.draft.king_text)

    @property
    def has_draft(self) -> bool:
        return self.has_edit or (self.draft is not None and bool(self.draft.comment))

    @property
    def kept(self) -> str:
        """The decision on the sample, for the question before it is changed: `approved, left`; "" while undecided."""
        if self.sample.status not in (SampleStatus.APPROVED, SampleStatus.REJECTED):
            return ""
        word = self.sample.get_status_display().lower()
        return f"{word}, {self.preference}" if self.preference else word


# All samples of a project have the same guidelines beside them.
_guidelines_html = lru_cache(maxsize=32)(markdown_html)


def workspace_of(
    *,
    access: Access,
    sample: Sample,
    location: Location,
    lease: Lease | None = None,
    skipped_before: bool = False,
    notice: str = "",
    done: dict[str, object] | None = None,
) -> Workspace:
    """Read it all, with about a dozen queries by index. `lease` is the one that the page keeps, if any. `done` is the
    caller's last step where the request made it.

    With a `notice`, why something was refused, the page has no keys: the sample is opened again before it is decided.
    """
    settings = access.project.settings
    rolled_out, words, is_agent = sample.kind == SampleKind.TRAJECTORY, settings.data.words, settings.data.is_agent
    found = None if rolled_out else detail_of(sample, access.user.pk, words)
    blind = is_blind(access, sample)
    rollout = rollout_of(access, sample, blind=blind, view=location.view) if rolled_out else None
    holder = None if lease else holder_of(sample.pk, other_than=access.user)
    log = Decision.objects.own_and_settled(access.user.pk).filter(sample=sample).order_by("-id")
    decisions = list(log.select_related("reviewer", "revision", "resolution__resolved_by")[:50])
    may_decide = access.may(Scope.REVIEW) and holder is None and not notice
    draft = draft_of(access=access, sample_id=sample.pk) if may_decide else None
    pick = (
        Reviewed([sample.pk]).pick(sample.pk) if sample.status == SampleStatus.APPROVED else draft.pick if draft else ""
    )
    answers = answers_shown(access, sample, found, lease) if found else []
    has_sides = len(answers) > 1
    history = None if rollout else history_of(sample)
    questions = list(Question.objects.asked(access.project, sample.kind))
    revisions = _revisions(sample, access) if found and not blind else []
    places = ShownPlaces(
        access,
        sample,
        answers={
            SIDES[answer.side]: (place, answer.revision.pk if answer.revision else 0) for place, _, answer in answers
        },
        transcript=rollout.transcript if rollout else history,
        remarks={("comment", row.pk) for row in decisions} | {("note", row.pk) for row in revisions},
    )
    findings = findings_shown(access, sample, blind=blind, places=places)
    hides_ending = rolled_out and blind
    return Workspace(
        sample=sample,
        location=location,
        blind=blind,
        lease=lease,
        in_review_by=holder,
        may_decide=may_decide,
        seats=_seats(sample, answers, findings, blind=blind, pick=pick, is_agent=is_agent) if found else [],
        has_sides=has_sides,
        left=side_token(access, sample, answers[0][2].side) if has_sides else "",
        seats_shown=_seats_shown(answers),
        history=None if history is None else history.opening(),
        tools=history.tools_html if history is not None and history.tools else None,
        rollout=rollout,
        revealed=_revealed(found, revisions, findings, words) if found and not blind else None,
        flags=flag_names(sample.flags & ~HIDDEN_OF_ROLLOUT) if hides_ending else sample.shown_flags(hidden=blind),
        findings=findings,
        source_url=source_url(sample.source, found.duel.prompt.row_offset) if found else None,
        decisions=[
            {
                "row": row,
                "done": DONE[row.action],
                "pick": (found.side(row.pick).label if found and row.pick not in ("", Pick.DRAW) else row.pick).lower(),
                "reason": _remark(findings, "comment", row.pk, row.reason),
                "comment": _remark(findings, "comment", row.pk, row.comment),
                "waits_for_others": row.reviewer_id == access.user.pk and is_waiting(row, sample),
            }
            for row in decisions
        ],
        attention=[
            row
            for row in decisions
            if row.action == Action.FLAG and row.undone_by_id is None and not hasattr(row, "resolution")
        ],
        rubric=() if rolled_out else rubric_of(access.project),
        guidelines=_guidelines_html(access.project.guidelines),
        reasons=[(str(number), reason) for number, reason in enumerate(settings.review.reasons[:9], 1)],
        progress=progress_of(access) if location.queue else None,
        navigation=navigation_of(access, location, sample.pk),
        draft=draft,
        last_decision=_last_own(decisions, access),
        preference=_preference(access, sample, pick, lease) if has_sides else "",
        done=done or last_done(access),
        labels=label_panel(access, sample, questions, lease, [place for place, _, _ in answers]) if questions else None,
        skipped_before=skipped_before,
        notice=notice,
        may_adjudicate=access.may(Scope.RUN),
        colleagues=colleagues_of(access, sample) if may_decide else (),
        asked=requests_of(access, sample) if may_decide else (),
    )


def _last_own(decisions: Sequence[Decision], access: Access) -> int:
    """Return the caller's last line of the log, or if they have none of those that are read, the earliest of these."""
    own = next((row.pk for row in decisions if row.reviewer_id == access.user.pk), None)
    return own or (decisions[-1].pk if decisions else 0)


def colleagues_of(access: Access, sample: Sample) -> list[str]:
    """Whom the caller may ask for a second opinion on the sample; none where they may not ask."""
    settled = sample.status != SampleStatus.PENDING
    disputed = sample.disputed and sees_opinions(access)  # nobody else may know
    if disputed or (settled and sample.decided_by_id != access.user.pk and not access.may(Scope.RUN)):
        return []
    members = Member.objects.listed(access.project).filter(role__in=REVIEWING).exclude(user=access.user)
    return list(members.values_list("user__username", flat=True)[:500])


def requests_of(access: Access, sample: Sample) -> list[dict[str, object]]:
    """The requests for a second opinion on the sample that the caller may withdraw. One that counts has left its mark
    on the sample, so the page of another costs no query."""
    if not sample.opinions:
        return []
    rows = AssignedSample.objects.filter(sample=sample, assignment__second_opinion=True)
    if not access.may(Scope.RUN):
        rows = rows.filter(assignment__created_by=access.user)
    shown = rows.order_by("assignment_id").values_list("assignment_id", "member__user__username")
    return [{"assignment": pk, "whom": username or "anybody"} for pk, username in shown]


def answers_shown(
    access: Access, sample: Sample, found: Detail, lease: Lease | None = None
) -> list[tuple[str, str, AnswerDetail]]:
    """Both answers from left to right, each with its place and its key; without an opponent the only one."""
    if found.king is None:
        return [(ONLY, "", found.challenger)]
    if lease is None and is_blind(access, sample):
        lease = own_lease(sample, access)
    seats = shown_seats(access, sample, lease)
    return [(LEFT, "1", found.side(seats.left)), (RIGHT, "2", found.side(seats.right))]


def _preference(access: Access, sample: Sample, pick: str, lease: Lease | None) -> str:
    """Where the pick is on the page; while blind a page without a lease has no pick."""
    if lease is None and is_blind(access, sample):
        return ""
    return place_of(pick, shown_seats(access, sample, lease))


def _seats_shown(answers: Sequence[tuple[str, str, AnswerDetail]]) -> Seats | None:
    if len(answers) < 2:
        return None
    return Seats.KING_LEFT if answers[0][2].side == Pick.KING else Seats.CHALLENGER_LEFT


def _seats(
    sample: Sample,
    answers: Sequence[tuple[str, str, AnswerDetail]],
    findings: Sequence[FindingView],
    *,
    blind: bool,
    pick: str,
    is_agent: bool,
) -> list[dict[str, object]]:
    """Return each answer in its place: `left`, `right` or `ONLY`. `side` and `model` are empty while blind. `raw` is
    its text as it is, for the forms that change it."""
    kept = kept_side(pick) if sample.status == SampleStatus.APPROVED else None
    found = []
    for place, key, answer in answers:
        text = answer.kept_text
        spans: Spans = sorted([*([] if blind else answer.kept_leaks), *marks_of(findings, SIDES[answer.side])])
        # Marks are shown in the text as it is.
        form = "blocks" if is_agent or spans else answer_form(text)
        found.append(
            {
                "place": place,
                "title": "Answer" if place == ONLY else place.capitalize(),
                "key": key,
                "side": "" if blind else answer.label,
                "model": "" if blind else answer.model,
                "html": part_html(form, text, spans),
                "form": form,
                "raw": SafeString() if form == "blocks" else visible(text),
                "facts": answer.blind_facts if blind else answer.kept_facts,
                "revision": answer.revision.number if answer.revision else None,
                "leaks": 0 if blind else len(answer.kept_leaks),
                "picked": answer.side == kept,
            }
        )
    return found


def _revisions(sample: Sample, access: Access) -> list[Revision]:
    rows = Revision.objects.seen_by(access.user.pk).filter(sample=sample)
    rows = rows.select_related("author", "parent", "suggestion").order_by("-number")
    return list(rows.prefetch_related("text_scores")[:20])


def _revealed(
    found: Detail, rows: Sequence[Revision], findings: Sequence[FindingView], words: Words
) -> dict[str, object]:
    metrics = [(name, float(value)) for name, value in found.duel.metrics.items() if isinstance(value, int | float)]
    revisions = []
    against_king = _against_king(found.duel, rows)
    for row in reversed(rows):
        side = found.side(row.of)
        diff = diff_html(word_diff(row.parent.text if row.parent else side.text, row.text), show="both")
        note = _remark(findings, "note", row.pk, row.note)
        before = against_king.get(row.parent_id, {}) if row.of == Pick.CHALLENGER else {}
        scores: list[dict[str, object]] = [
            {
                "row": score,
                "before": before.get(score.panel["digest"]) if score.against == TextScore.Against.KING else None,
            }
            for score in row.text_scores.all()
        ]
        # The model's suggestion that it was saved from, if any.
        draft: Suggestion | None = getattr(row, "suggestion", None)
        revisions.append(
            {
                "row": row,
                "of": side.label,
                "note": note,
                "diff": diff,
                "may_rejudge": row.of == Pick.CHALLENGER and found.king is not None and row.undone_by_id is None,
                "scores": scores,
                "draft": draft,
                "edited": draft is not None and draft.text != row.text,
            }
        )
    score = Score.objects.filter(counts_for=found.duel).select_related("panel").first()
    revised = [found.side(side) for side in dict.fromkeys(row.of for row in reversed(rows))]
    made_by = Verdict.objects.filter(pk__in=score.verdicts) if score is not None else Verdict.objects.none()
    judges = judge_views(found.duel, made_by.order_by("judge", "pk"), words)
    return {
        "duel_id": found.duel.pk,
        "score": score,
        "imported": imported(found.duel),
        "judges": judges,
        "metrics": metrics,
        "revisions": revisions,
        "revised": revised,
    }


def _against_king(duel: Duel, rows: Sequence[Revision]) -> dict[int | None, dict[str, float]]:
    """Return the newest score against the king by the panel's digest, by the revision's id; None is the answer as
    recorded."""
    found: dict[int | None, dict[str, float]] = {}
    if any(row.text_scores.all() for row in rows):
        scores = Score.objects.filter(duel=duel, score__isnull=False).order_by("scored_at", "pk")
        rows_of_duel = scores.values_list("panel__digest", "score")
        found[None] = {digest: score for digest, score in rows_of_duel if score is not None}
    for row in rows:
        kings = [one for one in row.text_scores.all() if one.against == TextScore.Against.KING]
        kings.sort(key=lambda one: (one.created_at, one.pk))
        found[row.pk] = {one.panel["digest"]: one.score for one in kings if one.score is not None}
    return found


def _remark(findings: Sequence[FindingView], part: str, pk: int, text: str) -> SafeString:
    """A comment, reason or note with its findings marked."""
    return marked(text, marks_of(findings, part, index=pk, text=text))
