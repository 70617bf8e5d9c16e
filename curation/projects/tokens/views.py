"""The page of one's own API tokens."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from curation.projects.access import Access, principal_of, project_page
from curation.projects.models import Scope, Token
from curation.projects.pages.forms import TokenForm
from curation.projects.pages.tabs import settings_context
from curation.projects.tokens.issue import create_token_as, revoke_token
from curation.web.problems import Problem


@never_cache
@require_http_methods(["GET", "POST"])
@project_page(Scope.READ)
def token_list(request: HttpRequest, access: Access) -> HttpResponse:
    """The caller's tokens, of all projects. A new one's secret stands in the answer to its form and nowhere else."""
    form = TokenForm(request.POST or None)
    secret = ""
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            try:
                secret = create_token_as(principal_of(request), **form.cleaned_data).secret
            except Problem as problem:
                status = problem.status
                form.add_error(None, problem.detail)
            else:
                status, form = 201, TokenForm()
    context = settings_context(access, "tokens", "/api/v1/tokens")
    context |= {"form": form, "secret": secret, "now": timezone.now()}
    context["rows"] = Token.objects.filter(user=access.user)
    return render(request, "projects/tokens/list.html", context, status=status)


@require_POST
@project_page(Scope.READ)
def token_revoke(request: HttpRequest, access: Access, token_id: str) -> HttpResponse:
    revoke_token(principal_of(request), token_id)
    messages.success(request, "The token is revoked.")
    return redirect("token-list", access.project.slug)
