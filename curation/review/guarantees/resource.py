"""Audits and guarantees as resources: their REST calls, which the page makes too."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from curation.guarantees.models import Audit, Guarantee
from curation.projects.access import Access, enter, principal_of
from curation.projects.models import Project, Scope
from curation.projects.resource import Resource
from curation.review.guarantees.carry_out import approve_unseen, soon
from curation.review.guarantees.draw import draw_audit, extend_audit
from curation.review.guarantees.proof import Proof, alive_of, decided_since, proof_of
from curation.review.guarantees.schemas import AuditIn, DrawnAuditOut, GuaranteeIn, GuaranteeOut
from curation.review.guarantees.withdraw import withdraw_guarantee
from curation.web.http.responses import set_etag
from curation.web.ids import find
from curation.web.problems import Conflict
from curation.web.text.figures import counted, percent
from judging.statistics.guarantee import SetLevel


class Audits(Resource[Audit]):
    model, noun, plural, tag = Audit, "audit", "audits", "review"
    path, row_path = "/audits", "/audits/{audit_id}"
    calls = ("list", "post", "get", "delete")
    body, out = AuditIn, DrawnAuditOut
    reads = changes = Scope.RUN
    about: ClassVar[Mapping[str, str]] = {
        "post": "Draws samples, which appear in the queues of reviewers, who do not learn that they are of an audit. "
        "409 where no pending sample matches; 422 where so few looks could prove nothing, with the number it takes.",
        "get": "`proven` is what may be approved unseen: a drawn sample without a look counts as an error until then.",
        "delete": "Its drawn samples are as all others. 409 while it has a guarantee.",
    }

    def rows(self, access: Access) -> QuerySet[Audit]:
        return Audit.objects.filter(project=access.project).select_related("project", "created_by")

    def create(self, access: Access, body: AuditIn) -> Audit:
        access.require(self.changes)
        audit = Audit(project=access.project, created_by=access.user, **body.model_dump())
        draw_audit(access, audit)
        return audit

    def delete(self, access: Access, row: Audit) -> None:
        if row.guarantees.exists():
            raise Conflict(f"Audit {row.pk} has a guarantee, which refers to it.", code="has_guarantee")
        super().delete(access, row)

    def shown(self, access: Access, rows: Sequence[Audit]) -> list[DrawnAuditOut]:
        return [DrawnAuditOut.model_validate(audit_values(proof_of(row))) for row in rows]


class Guarantees(Resource[Guarantee]):
    model, noun, plural, tag = Guarantee, "guarantee", "guarantees", "review"
    path, row_path = "/guarantees", "/guarantees/{guarantee_id}"
    calls = ("list", "get", "delete")
    names: ClassVar[Mapping[str, str]] = {"delete": "withdraw_guarantee"}
    body, out = GuaranteeIn, GuaranteeOut
    reads = changes = Scope.RUN
    about: ClassVar[Mapping[str, str]] = {
        "delete": "Withdraws it: what it approved is pending again, but for samples that a person has decided or "
        "revised since. The guarantee stays, with the time."
    }

    def rows(self, access: Access) -> QuerySet[Guarantee]:
        rows = Guarantee.objects.filter(project=access.project)
        return rows.select_related("project", "audit", "created_by", "withdrawn_by")

    def delete(self, access: Access, row: Guarantee) -> None:
        access.require(self.changes)
        with transaction.atomic():
            if not withdraw_guarantee(row, by=access, reason=f"{access.user.get_username()} withdrew it."):
                raise Conflict(f"Guarantee {row.pk} is withdrawn already.", code="withdrawn")
            transaction.on_commit(soon(row.pk))

    def shown(self, access: Access, rows: Sequence[Guarantee]) -> list[GuaranteeOut]:
        return [GuaranteeOut.model_validate(guarantee_values(row)) for row in rows]

    def version(self, access: Access, row: Guarantee) -> int:
        """It changes when the guarantee is withdrawn, and not with each batch."""
        return 1 if row.withdrawn_at is None else 2


audits, guarantees = Audits(), Guarantees()
router = Router(tags=["review"])
router.add_router("", audits.router())
router.add_router("", guarantees.router())


@router.post("/audits/{audit_id}/extensions", response={201: DrawnAuditOut}, summary="Draw an audit's next looks")
def post_extension(request: HttpRequest, audit_id: str) -> Status[DrawnAuditOut]:
    """As many looks as the first time. 409 where no extension was planned at the draw or is left, and where a guarantee
    stands on the audit."""
    access, audit = _entered(request, audit_id)
    extend_audit(access, audit)
    return Status(201, audits.shown(access, [audit])[0])


@router.post("/audits/{audit_id}/guarantees", response={201: GuaranteeOut}, summary="Approve what an audit proves")
def post_guarantee(
    request: HttpRequest, response: HttpResponse, audit_id: str, body: GuaranteeIn | None = None
) -> Status[GuaranteeOut]:
    """Approves the unseen samples of `proven` in batches: workers go on with a large set. 409 where nothing is
    proven."""
    access, audit = _entered(request, audit_id)
    row = approve_unseen(access, audit, keep_alive=body.keep_alive if body else 0.0)
    row = guarantees.one(access, str(row.pk))
    response["Location"] = f"/api/v1/guarantees/{row.pk}"
    set_etag(response, guarantees.version(access, row))
    return Status(201, guarantees.shown(access, [row])[0])


def _entered(request: HttpRequest, audit_id: str) -> tuple[Access, Audit]:
    visible = Audit.objects.filter(project__in=Project.objects.visible_to(principal_of(request).user))
    audit = find(visible.select_related("project"), audit_id, "audit")
    return enter(request, audit.project, Scope.RUN), audit


def audit_values(proof: Proof) -> dict[str, Any]:
    """The fields of `DrawnAuditOut`."""
    audit = proof.audit
    fields = [field.name for field in Audit._meta.concrete_fields if field.name not in ("project", "levels")]
    values = {name: getattr(audit, name) for name in fields}
    return values | {
        "method": method_of(audit),
        "looked": proof.looked,
        "agreed": proof.agreed,
        "proven": level_values(proof, proof.proven),
        "expected": level_values(proof, proof.expected),
        "why_not": proof.why_not,
        "curve": proof.curve(),
        "more_looks": proof.more_looks(),
        "disagreement": proof.noise,
        "seconds_per_decision": proof.seconds,
        "seconds_saved": proof.seconds_saved,
        "several": several_audits(audit),
        "guarantees": [str(row.pk) for row in audit.guarantees.order_by("-id")],
    }


def level_values(proof: Proof, level: SetLevel | None) -> dict[str, object] | None:
    if level is None:
        return None
    return {"threshold": level.threshold, "share": round(proof.share(level), 4), "samples": level.unseen}


def method_of(audit: Audit) -> str:
    """How the audit was drawn and is tested."""
    text = (
        f"A simple random sample of {audit.drawn} of {counted(audit.samples, 'sample')}. Thresholds are tested from "
        "strict to loose by the exact tail of such draws."
    )
    if audit.extensions:
        text += f" {audit.extensions + 1} tests were planned, each at the same part of δ."
    if audit.cluster:
        text += f" A second test counts one look for each {audit.cluster}, the first one drawn; both must pass."
    return text


def guarantee_values(row: Guarantee) -> dict[str, Any]:
    """The fields of `GuaranteeOut`."""
    fields = [field.name for field in Guarantee._meta.concrete_fields]
    values = {name: getattr(row, name) for name in fields}
    values |= {name: getattr(row.audit, name) for name in ("alpha", "delta", "score", "set_sha256")}
    values |= {"state": row.state, "promise": promise_of(row)}
    return values | {"alive": alive_of(row), "since": decided_since(row)}


def promise_of(row: Guarantee) -> str:
    audit = row.audit
    if row.withdrawn_at is not None:
        return f"Nothing is promised any more about the {counted(row.approved, 'sample')} that it approved."
    return (
        f"With {percent(1 - audit.delta, 1)} confidence, at most {percent(audit.alpha, 1)} of these "
        f"{counted(row.samples, 'sample')} would be rejected or changed by the project's reviewers."
    ) + (f" {several}" if (several := several_audits(audit)) else "")


def several_audits(audit: Audit) -> str:
    """What earlier audits of the same samples change, as a sentence; empty without one."""
    if not audit.spent:
        return ""
    chance = percent(min(1.0, audit.spent + audit.delta), 1)
    return (
        "Audits were drawn from these samples before: the chance that a guarantee of any of them is wrong is "
        f"up to {chance}."
    )
