"""Pages of invitations: made and revoked under Settings → Members, accepted at their own address."""

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from curation.projects.access import Access, principal_of, project_page
from curation.projects.invitations.invite import DAYS, accept_invitation, invitation_for, revoke_invitation
from curation.projects.models import Role, Scope
from curation.web.forms import ProblemForm
from curation.web.problems import NotFound


class InvitationForm(ProblemForm):
    role = forms.ChoiceField(choices=Role.choices, initial=Role.REVIEWER)
    username = forms.CharField(
        required=False,
        label="Username",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        help_text="Only the user of this name can accept. Leave empty to let anyone with the link accept, once.",
    )
    note = forms.CharField(required=False, help_text="Whom it is for, such as a name or an e-mail address.")
    expires_in_days = forms.IntegerField(initial=DAYS, label="Expires in days")


@project_page(Scope.ADMIN, "POST")
def invitation_revoke(request: HttpRequest, access: Access, invitation_id: str) -> HttpResponse:
    revoke_invitation(access=access, invitation_id=invitation_id)
    messages.success(request, "The invitation is revoked.")
    return redirect("member-list", access.project.slug)


@never_cache
@login_required
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, secret: str) -> HttpResponse:
    """The page behind a link."""
    user = principal_of(request).user
    if request.method == "POST":
        return _accepted(request, secret=secret)
    try:
        row = invitation_for(user, secret=secret)
    except NotFound as gone:
        return render(request, "projects/invitations/page.html", {"refusal": gone.detail}, status=404)
    return render(request, "projects/invitations/page.html", {"row": row})


@login_required
@require_POST
def invitation_accept(request: HttpRequest, invitation_id: str) -> HttpResponse:
    """Accept an invitation for the caller's name, from the list of projects."""
    return _accepted(request, invitation_id=invitation_id)


def _accepted(request: HttpRequest, **which: str) -> HttpResponse:
    member = accept_invitation(principal_of(request).user, **which)
    messages.success(request, f"You are now a member of {member.project.name}, as {member.get_role_display()}.")
    return redirect("overview", member.project.slug)
