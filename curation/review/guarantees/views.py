"""The page Guarantee: draw an audit, see its proof, approve and withdraw."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from curation.guarantees.models import Audit
from curation.projects.access import Access, project_page
from curation.projects.models import Scope
from curation.review.guarantees.carry_out import approve_unseen
from curation.review.guarantees.draw import extend_audit
from curation.review.guarantees.proof import PointOut, proof_of
from curation.review.guarantees.resource import (
    audits,
    guarantee_values,
    guarantees,
    method_of,
    several_audits,
)
from curation.review.guarantees.schemas import AuditIn, GuaranteeIn
from curation.review.queue.next import open_count
from curation.samples.list.filters import SampleFilter
from curation.web.charts import Figure, axis, color, figure, lines, vertical_line
from curation.web.ids import find
from curation.web.problems import FieldError, Invalid
from curation.web.schema_form import SchemaForm

SHOWN = 20


@project_page(Scope.RUN, "GET", "POST")
def guarantee_page(request: HttpRequest, access: Access) -> HttpResponse:
    """The audit of `?audit=`, else the newest, and the form that draws another."""
    form = SchemaForm[AuditIn](request.POST or None)
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            audit = audits.create(access, form.body())
            messages.success(request, f"Audit {audit.pk} is drawn. Its {audit.size} samples are in the queues.")
            return redirect("guarantee-page", access.project.slug)
    rows = audits.rows(access).order_by("-id")
    chosen = find(rows, request.GET["audit"], "audit") if request.GET.get("audit") else rows.first()
    slug, pending = access.project.slug, open_count(access.project)
    context: dict[str, Any] = {
        "form": form,
        "audits": rows[:SHOWN],
        "pending": pending,
        "share": access.project.settings.review.audit_share,
        "api_path": f"/api/v1/audits/{chosen.pk}" if chosen else f"/api/v1/projects/{slug}/audits",
    }
    if chosen is not None:
        context |= _audit_context(access, chosen)
    return render(request, "review/guarantee.html", context, status=form.status)


@project_page(Scope.RUN, "POST")
def audit_approve(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    form = SchemaForm[GuaranteeIn](request.POST)
    if not form.is_valid():
        raise Invalid.fields([FieldError(name, " ".join(map(str, errors))) for name, errors in form.errors.items()])
    guarantee = approve_unseen(access, audits.one(access, pk), keep_alive=form.body().keep_alive)
    messages.success(request, f"Guarantee {guarantee.pk} approves {guarantee.samples:,} samples.")
    return redirect("guarantee-page", access.project.slug)


@project_page(Scope.RUN, "POST")
def audit_extend(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    audit = audits.one(access, pk)
    extend_audit(access, audit)
    messages.success(request, f"{audit.size} more samples are in the queues.")
    return redirect("guarantee-page", access.project.slug)


@project_page(Scope.RUN, "POST")
def guarantee_withdraw(request: HttpRequest, access: Access, pk: str) -> HttpResponse:
    guarantees.delete(access, guarantees.one(access, pk))
    messages.success(request, f"Guarantee {pk} is withdrawn. Its samples are pending again.")
    return redirect("guarantee-page", access.project.slug)


def _audit_context(access: Access, audit: Audit) -> dict[str, Any]:
    proof = proof_of(audit)
    level, curve = proof.proven, proof.curve()
    rows = guarantees.rows(access).filter(audit=audit).order_by("-id")
    is_used = any(row.withdrawn_at is None for row in rows)
    return {
        "audit": audit,
        "proof": proof,
        "level": level,
        "share_proven": proof.share(level),
        "share_expected": proof.share(proof.expected),
        "method": method_of(audit),
        "filter_words": SampleFilter.from_json(audit.filter).words(),
        "curve": curve,
        "chart": share_chart(curve, audit.alpha),
        "more_looks": proof.more_looks(),
        "confidence": 1 - audit.delta,
        "guarantees": [guarantee_values(row) for row in rows],
        "may_approve": level is not None and not is_used,
        "may_extend": not is_used and audit.drawn < audit.size * (1 + audit.extensions),
        "several": several_audits(audit),
        "approve_form": SchemaForm[GuaranteeIn](),
    }


def share_chart(curve: Sequence[PointOut], alpha: float) -> Figure:
    """The share of the unseen samples by the tolerated share of errors, both in percent; a line marks the audit's."""
    x = [100 * one.alpha for one in curve]
    traces = [
        lines("proven", x, [100 * one.proven for one in curve], "%", line={"color": color("chart-1")}),
        lines("expected", x, [100 * one.expected for one in curve], "%", line={"color": color("chart-2")}),
    ]
    return figure(
        traces,
        xaxis=axis("tolerated share of errors α, %", rangemode="tozero", fixedrange=True),
        yaxis=axis("approved unseen, %", range=[-3, 103], fixedrange=True),
        shapes=[vertical_line(100 * alpha, dash="dash")],
    )
