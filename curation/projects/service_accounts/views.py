"""The settings tab of service accounts: the accounts, and the tokens of each."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from curation.projects.access import Access, principal_of, project_page
from curation.projects.models import Role, Scope, ServiceAccount
from curation.projects.pages.forms import TokenForm
from curation.projects.service_accounts.change import (
    create_service_account,
    remove_service_account,
    service_account_of,
)
from curation.projects.settings.pages import settings_context
from curation.projects.tokens.issue import create_token, revoke_token
from curation.web.forms import ProblemForm


class ServiceAccountForm(ProblemForm):
    name = forms.CharField(help_text="Lower-case letters, digits and hyphens, such as nightly-export.")
    role = forms.ChoiceField(choices=Role.choices, initial=Role.VIEWER)
    note = forms.CharField(required=False, max_length=200, help_text="Its purpose and the person who runs it.")


@require_http_methods(["GET", "POST"])
@project_page(Scope.ADMIN)
def service_accounts(request: HttpRequest, access: Access) -> HttpResponse:
    form = ServiceAccountForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            made = create_service_account(access=access, **form.cleaned_data)
            return redirect("service-token", access.project.slug, made.user.get_username())
    path = f"/api/v1/projects/{access.project.slug}/service-accounts"
    context = settings_context(access, "service_accounts", path)
    context |= {"form": form, "rows": ServiceAccount.objects.listed(access.project)}
    return render(request, "projects/service_accounts/list.html", context, status=form.status)


@never_cache
@require_http_methods(["GET", "POST"])
@project_page(Scope.ADMIN)
def service_token(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    """The account's tokens. A new token's secret is shown only in the response to its form."""
    account = service_account_of(access, name)
    form = TokenForm(request.POST or None)
    secret = ""
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            secret = create_token(principal_of(request), **form.cleaned_data, service=account).secret
            form = TokenForm()
    return render(
        request,
        "projects/service_accounts/tokens.html",
        _tokens(access, account) | {"form": form, "secret": secret},
        status=201 if secret else form.status,
    )


@require_POST
@project_page(Scope.ADMIN)
def service_token_revoke(request: HttpRequest, access: Access, name: str, token_id: str) -> HttpResponse:
    revoke_token(principal_of(request), token_id, service=service_account_of(access, name))
    messages.success(request, "The token is revoked.")
    return redirect("service-token", access.project.slug, name)


@require_POST
@project_page(Scope.ADMIN)
def service_account_remove(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    remove_service_account(access=access, username=name)
    messages.success(request, f"{name} and its tokens are removed.")
    return redirect("service-accounts", access.project.slug)


def _tokens(access: Access, account: ServiceAccount) -> dict[str, object]:
    username = account.user.get_username()
    path = f"/api/v1/projects/{access.project.slug}/service-accounts/{username}/tokens"
    context = settings_context(access, "service_accounts", path)
    return context | {"account": username, "rows": account.user.api_tokens.all(), "now": timezone.now()}
