"""REST calls of review: the queue, leases, decisions, undo, revisions. Bulk decisions are in `bulk/views.py`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, ClassVar

from django.contrib.auth.models import User
from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status
from pydantic import Field

from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Project, Scope
from curation.review import schemas as s
from curation.review.agreement.views import router as agreement_router
from curation.review.bulk.views import router as bulk_router
from curation.review.decisions.decide import decide
from curation.review.decisions.findings import CHALLENGER, KING, clear, findings_of, withdraw
from curation.review.decisions.marks import mark_steps, marks_out
from curation.review.decisions.opinions import decisions_shown_to, look_at_opinions
from curation.review.decisions.revise import original_text, revise
from curation.review.decisions.undo import undo
from curation.review.models import Action, Decision, Lease, Pick, Revision
from curation.review.queue.lease import heartbeat, holder_of, own_lease, release
from curation.review.queue.next import lease_next
from curation.review.queue.seats import Seats, is_blind, shown_seats, side_named
from curation.review.thresholds.views import router as thresholds_router
from curation.review.workspace.detail import AnswerDetail, detail_of, facts_of
from curation.review.workspace.diff import unified_diff
from curation.review.workspace.rollout import turns_of
from curation.review.workspace.workspace import answers_shown
from curation.samples.blind import hides, reviews_blind, unblind
from curation.samples.list.api import enter_sample, sample_out
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Sample, SampleKind, SampleStatus
from curation.trajectories.models import Trajectory
from curation.trajectories.pages.schemas import turn_out
from curation.web.http.responses import set_etag
from curation.web.ids import find, id_number, number
from curation.web.lists.filters import ListParams, Moment, Words, ids_of, one_of
from curation.web.lists.keyset import KeysetPage
from curation.web.schemas import Page, answer


class DecisionList(ListParams):
    """Everybody's decisions. Someone who reviews blind gets their own, and all those on samples that are decided. Those
    that wait for others are listed for curators and for their authors."""

    lookups: ClassVar[Mapping[str, str]] = {
        "action": "action",
        "sample": "sample_id",
        "reviewer": "reviewer__username",
        "guarantee": "guarantee_id",
        "created_after": "created_at__gte",
        "created_before": "created_at__lt",
    }

    action: Annotated[Words, one_of(Action.values)] = ()
    sample: Annotated[Words, ids_of("sample")] = ()
    reviewer: Words = Field(default=(), description="Usernames.")
    guarantee: Annotated[Words, ids_of("guarantee")] = Field(
        default=(), description="Ids of guarantees: their approvals, and the undoing of these."
    )
    waits: bool | None = Field(default=None, description="Whether it waits for the decisions of others.")
    undone: bool | None = Field(default=None, description="Whether somebody has undone it.")
    created_after: Moment | None = Field(default=None, description="From this moment on.")
    created_before: Moment | None = Field(default=None, description="Before this moment.")

    def rows(self, access: Access) -> KeysetPage[Decision]:
        rows = self.narrow(Decision.objects.filter(sample__project=access.project))
        if self.undone is not None:
            rows = rows.filter(undone_by__isnull=not self.undone)
        if self.waits is not None:
            waiting = Q(settles=False, undone_by=None, round=F("sample__round"))
            rows = rows.filter(waiting if self.waits else ~waiting)
        if reviews_blind(access):
            rows = rows.filter(Q(reviewer=access.user) | ~Q(sample__status=SampleStatus.PENDING))
        page = self.page(decisions_shown_to(access, rows).select_related("reviewer", "sample", "guarantee__audit"))
        look_at_opinions(access, page.rows)
        return page


calls = Router(tags=["review"])
FINDINGS = answer("ScanFindingsOut", data=list[s.ScanFindingOut])
router = Router(tags=["review"])
# First, or `/samples/bulk` would be read as the sample with the id `bulk`.
router.add_router("", bulk_router)
router.add_router("", calls)
router.add_router("", thresholds_router)
router.add_router("", agreement_router)


class OldestFirst(ListParams):
    sorts = ("id", "-id")


@calls.post(
    "/projects/{slug}/queue/next",
    response={200: answer("QueueNextOut", lease=s.LeaseOut, sample=s.SampleDetail), 204: None},
    summary="Claim the next sample",
)
def queue_next(request: HttpRequest, slug: str, body: s.QueueNextIn | None = None) -> Status[object]:
    """Each call leases another sample to you; 204 when none is left for you."""
    access = enter(request, slug, Scope.REVIEW)
    body = body or s.QueueNextIn.model_validate({})
    wanted = SampleFilter.from_json(body.filter)
    taken = lease_next(access=access, order=body.order, wanted=wanted, resume=body.resume)
    if taken is None:
        return Status(204, None)
    blind = is_blind(access, taken.sample)
    lease = s.LeaseOut.of(taken.lease, blind=blind)
    return Status(200, {"lease": lease, "sample": _detail(access, taken.sample, access.user, taken.lease, blind=blind)})


@calls.post("/leases/{lease_id}/heartbeat", response=s.LeaseOut, summary="Extend a lease")
def post_heartbeat(request: HttpRequest, lease_id: str) -> s.LeaseOut:
    access, lease = _lease(request, lease_id)
    return s.LeaseOut.of(heartbeat(access=access, lease=lease), blind=is_blind(access, lease.sample))


@calls.delete("/leases/{lease_id}", response={204: None}, summary="Give a sample back")
def delete_lease(request: HttpRequest, lease_id: str) -> Status[None]:
    access, lease = _lease(request, lease_id)
    release(access=access, lease=lease)
    return Status(204, None)


@calls.get("/samples/{sample_id}", response=s.SampleDetail, summary="One sample with its answers or turns")
def get_sample(request: HttpRequest, response: HttpResponse, sample_id: str) -> dict[str, object]:
    access, sample = enter_sample(request, sample_id, Scope.READ)
    set_etag(response, sample.version)
    blind = _reads_blind(access, sample)
    lease = own_lease(sample, access) if blind else None
    return _detail(access, sample, holder_of(sample.pk), lease, blind=blind)


@calls.get("/projects/{slug}/decisions", response=Page[s.DecisionOut], summary="Everybody's decisions")
def list_project_decisions(request: HttpRequest, slug: str, params: Query[DecisionList]) -> dict[str, object]:
    """The whole log of a project, the newest first. While you review blind, your own and those on decided samples."""
    access = enter(request, slug, Scope.READ)
    return params.rows(access).response(lambda row: s.DecisionOut.of(row, blind=hides(access, row.sample)))


@calls.get("/samples/{sample_id}/decisions", response=Page[s.DecisionOut], summary="The decisions log")
def list_decisions(request: HttpRequest, sample_id: str, params: Query[OldestFirst]) -> dict[str, object]:
    """While you review blind, your own and the flags."""
    access, sample = enter_sample(request, sample_id, Scope.READ)
    rows = decisions_shown_to(access, Decision.objects.filter(sample=sample))
    rows = rows.select_related("reviewer", "sample", "guarantee__audit")
    blind = _reads_blind(access, sample)
    if blind:
        rows = rows.filter(Q(reviewer=access.user) | Q(action=Action.FLAG))
    page = params.page(rows)
    look_at_opinions(access, page.rows)
    return page.response(lambda row: s.DecisionOut.of(row, blind=blind))


@calls.post("/samples/{sample_id}/decisions", response={201: s.DecisionOut}, summary="Decide")
def post_decision(
    request: HttpRequest, response: HttpResponse, sample_id: str, body: s.DecisionIn
) -> Status[s.DecisionOut]:
    """Needs no lease, unless someone else has one on the sample. A stale `If-Match` or `version`: 412.

    Where several people decide (`settings.review.overlap`), a decision may wait for others (`waits`). The decision of a
    curator on a disputed sample adjudicates it."""
    access, sample = enter_sample(request, sample_id, Scope.REVIEW)
    decision = decide(
        access=access,
        sample_id=sample.pk,
        action=body.action,
        version=s.seen_version(request, sample, body.version),
        preference=body.preference or "",
        reason=body.reason,
        comment=body.comment,
        seconds=body.seconds,
        keep=None if body.keep is None else id_number(body.keep) or 0,
        trim=body.trim,
    )
    set_etag(response, decision.sample.version)
    return Status(201, s.DecisionOut.of(decision, blind=_reads_blind(access, decision.sample)))


@calls.post(
    "/trajectories/{trajectory_id}/marks",
    response=answer("MarksOut", marks=list[s.MarkOut]),
    summary="Mark steps of a trajectory",
)
def post_marks(request: HttpRequest, response: HttpResponse, trajectory_id: str, body: s.MarksIn) -> dict[str, object]:
    """`learn` false leaves the steps out of training, `label` is a judgement of them."""
    mine = Trajectory.objects.filter(project__in=Project.objects.visible_to(principal_of(request).user))
    row = find(mine.select_related("project"), trajectory_id, "trajectory")
    access = enter(request, row.project, Scope.REVIEW)
    steps = [*body.steps, *([] if body.step is None else [body.step])]
    marks = mark_steps(access=access, trajectory=row, steps=steps, learn=body.learn, label=body.label)
    return {"marks": marks_out(marks)}


@calls.post("/samples/{sample_id}/undo", response=s.DecisionOut, summary="Undo your last step on it")
def post_undo(request: HttpRequest, response: HttpResponse, sample_id: str) -> s.DecisionOut:
    """Answers with the decision that is now undone. A revision that you saved last is undone too: the text before it
    counts again, and the answer is the new line `undo`, whose `revision` names it. 409 where someone else has changed
    the sample since, or where the revision was judged again. A stale `If-Match`: 412."""
    access, sample = enter_sample(request, sample_id, Scope.REVIEW)
    done = undo(access=access, sample_id=sample.pk, version=s.seen_version(request, sample, None))
    set_etag(response, done.sample.version)
    return s.DecisionOut.of(done.shown, blind=_reads_blind(access, done.sample))


@calls.get("/samples/{sample_id}/revisions", response=Page[s.RevisionOut], summary="The revisions")
def list_revisions(request: HttpRequest, sample_id: str, params: Query[OldestFirst]) -> dict[str, object]:
    access, sample = enter_sample(request, sample_id, Scope.READ)
    seats = _blind_seats(access, sample)
    rows = Revision.objects.seen_by(access.user.pk).filter(sample=sample)
    rows = rows.select_related("author", "parent", "suggestion").prefetch_related("text_scores")
    return params.page(rows).response(lambda row: _revision(row, sample, seats))


@calls.post("/samples/{sample_id}/revisions", response={201: s.RevisionOut}, summary="Revise an answer")
def post_revision(
    request: HttpRequest, response: HttpResponse, sample_id: str, body: s.RevisionIn
) -> Status[s.RevisionOut]:
    access, sample = enter_sample(request, sample_id, Scope.REVIEW)
    version = s.seen_version(request, sample, body.version)
    side = side_named(body.of, access, sample, own_lease(sample, access))
    revision = revise(
        access=access,
        sample_id=sample.pk,
        text=body.text,
        note=body.note,
        of=side,
        version=version,
        suggestion=None if body.suggestion is None else number(body.suggestion) or 0,
    )
    sample = revision.sample
    set_etag(response, sample.version)
    return Status(201, _revision(revision, sample, _blind_seats(access, sample)))


@calls.get("/samples/{sample_id}/findings", response=FINDINGS, summary="Secrets and personal data in it")
def list_findings(request: HttpRequest, sample_id: str) -> dict[str, object]:
    access, sample = enter_sample(request, sample_id, Scope.READ)
    return _findings(access, sample)


@calls.post("/samples/{sample_id}/clearances", response={201: FINDINGS}, summary="Clear a finding of the scan")
def post_clearance(
    request: HttpRequest, response: HttpResponse, sample_id: str, body: s.ClearanceIn
) -> Status[dict[str, object]]:
    """Clears this value for this rule in this sample, and nothing else. The reason is in the audit log."""
    access, sample = enter_sample(request, sample_id, Scope.REVIEW)
    done = clear(access=access, sample_id=sample.pk, **body.model_dump())
    set_etag(response, done.version)
    return Status(201, _findings(access, done))


@calls.delete(
    "/samples/{sample_id}/clearances/{rule}/{value_sha256}", response={204: None}, summary="Withdraw a clearance"
)
def delete_clearance(request: HttpRequest, sample_id: str, rule: str, value_sha256: str) -> Status[None]:
    access, sample = enter_sample(request, sample_id, Scope.REVIEW)
    withdraw(access=access, sample_id=sample.pk, rule=rule, value_sha256=value_sha256)
    return Status(204, None)


def _findings(access: Access, sample: Sample) -> dict[str, object]:
    scan, seats = access.project.settings.scan, _blind_seats(access, sample)
    first = KING if seats and seats.left == Pick.KING else CHALLENGER
    found = [row for row in findings_of(sample, first=first) if seats is None or row.part not in ("comment", "note")]
    return {"data": [s.ScanFindingOut.of(row, scan.action(row.rule), blind=seats) for row in found]}


def _reads_blind(access: Access, sample: Sample) -> bool:
    """Whether the sides of a sample are hidden from a reader: a curator sees them, and the audit log says so."""
    if not is_blind(access, sample):
        return False
    if not reviews_blind(access):
        unblind(access, sample)
        return False
    return True


def _blind_seats(access: Access, sample: Sample) -> Seats | None:
    """The seats by which a blind reader names the answers, None for everyone else."""
    if not _reads_blind(access, sample):
        return None
    return shown_seats(access, sample, own_lease(sample, access))


def _lease(request: HttpRequest, lease_id: str) -> tuple[Access, Lease]:
    visible = Project.objects.visible_to(principal_of(request).user)
    rows = Lease.objects.select_related("sample__project", "reviewer").filter(sample__project__in=visible)
    lease = find(rows, lease_id, "lease")
    return enter(request, lease.sample.project, Scope.REVIEW), lease


def _detail(
    access: Access, sample: Sample, holder: User | None, lease: Lease | None, *, blind: bool
) -> dict[str, object]:
    rolled_out = sample.kind == SampleKind.TRAJECTORY
    found = None if rolled_out else detail_of(sample, access.user.pk)
    shown = [answer for _, _, answer in answers_shown(access, sample, found, lease)] if found and blind else []
    sides = [{"text": answer.kept_text, "facts": asdict(answer.blind_facts)} for answer in shown]
    answers = (
        None
        if found is None or blind
        else {
            "opponent": found.duel.opponent,
            "king": found.king and _answer(found.king),
            "challenger": _answer(found.challenger),
        }
    )
    name = holder.get_username() if holder else None
    return sample_out(sample, access, in_review_by=name, hidden=blind) | {
        "hidden": blind,
        "answers": answers,
        "left": sides[0] if sides else None,
        "right": sides[1] if len(sides) > 1 else None,
        "turns": [turn_out(turn) for turn in turns_of(sample)] if rolled_out else None,
        "decided_by": sample.decided_by.get_username() if sample.decided_by else None,
        "decided_at": sample.decided_at.isoformat().replace("+00:00", "Z") if sample.decided_at else None,
    }


def _answer(answer: AnswerDetail) -> dict[str, object]:
    leak = {"score": answer.leak_score, "spans": list(answer.leak_spans)} if answer.side == Pick.CHALLENGER else None
    return {
        "model": answer.model,
        "text": answer.text,
        "facts": asdict(answer.facts),
        "leak": leak,
        "revision": str(answer.revision.pk) if answer.revision else None,
    }


def _revision(row: Revision, sample: Sample, blind: Seats | None) -> s.RevisionOut:
    before = row.parent.text if row.parent else original_text(sample, row.of)
    diff = unified_diff(before, row.text)
    return s.RevisionOut.of_row(row, asdict(facts_of(row.text)), diff, blind=blind)
