from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache

from curation.projects.access import Access, principal_of, project_page
from curation.projects.models import Scope, Token
from curation.projects.pages.forms import TokenForm
from curation.projects.settings.pages import settings_context
from curation.projects.tokens.issue import create_token, revoke_token


@never_cache
@project_page(Scope.READ, "GET", "POST", while_archived=True)
def token_list(request: HttpRequest, access: Access) -> HttpResponse:
    """The caller's tokens, for all projects. A new token's secret is shown only in the response to its form."""
    form = TokenForm(request.POST or None)
    secret = ""
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            _, secret = create_token(principal_of(request), **form.cleaned_data)
            form = TokenForm()
    context = settings_context(access, "tokens", "/api/v1/tokens")
    context |= {"form": form, "secret": secret, "now": timezone.now()}
    context["rows"] = Token.objects.filter(user=access.user)
    return render(request, "projects/tokens/list.html", context, status=201 if secret else form.status)


@project_page(Scope.READ, "POST", while_archived=True)
def token_revoke(request: HttpRequest, access: Access, token_id: str) -> HttpResponse:
    revoke_token(principal_of(request), token_id)
    messages.success(request, "The token is revoked.")
    return redirect("token-list", access.project.slug)
