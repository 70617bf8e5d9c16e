"""Service accounts of a project and their tokens: admins only, recorded in its audit log."""

import re
from datetime import datetime
from typing import Annotated

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from ninja import Query, Status
from pydantic import Field

from curation.projects.access import Access, enter, principal_of, project_page
from curation.projects.members.change import refuse_unknown_role
from curation.projects.models import Member, Role, Scope, ServiceAccount, Token
from curation.projects.pages.forms import TokenForm
from curation.projects.pages.schemas import STAMP, NewTokenOut, TokenIn, TokenOut
from curation.projects.resource import Resource
from curation.projects.settings.context import settings_context
from curation.projects.tokens.issue import create_token, revoke_token
from curation.projects.tokens.views import token_response
from curation.web.lists.filters import ListParams
from curation.web.problems import Conflict, Invalid
from curation.web.schema_form import SchemaForm
from curation.web.schemas import Out, Page, StrictModel, Username

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
MAX_ACCOUNTS = 50
TOKENS = "/projects/{slug}/service-accounts/{username}/tokens"


class ServiceAccountIn(StrictModel):
    name: str = Field(
        examples=["nightly-export"], description="Lower-case letters, digits and hyphens, such as nightly-export."
    )
    role: Annotated[str, forms.ChoiceField(choices=Role.choices, help_text="Its rights in the project.")] = Field(
        Role.VIEWER.value, examples=["curator"], description="viewer, reviewer, curator or admin"
    )
    note: Annotated[str, forms.CharField(required=False, max_length=200)] = Field(
        "", examples=["The export of every night, in the CI of acme/train."], description="Its purpose and its owner."
    )


class ServiceAccountOut(Out):
    username: Username = Field(validation_alias="user", examples=["nightly-export@shell-agents"])
    role: str | None = Field(examples=["curator"], description="Changed like that of any member.")
    note: str
    created_by: Username | None = Field(examples=["ada"])
    created_at: datetime = Field(examples=[STAMP])


class ServiceAccounts(Resource[ServiceAccount]):
    model, noun, plural = ServiceAccount, "service_account", "service_accounts"
    tag, words = "service accounts", "service account"
    path, row_path = "/service-accounts", "/projects/{slug}/service-accounts/{username}"
    key, calls, reads = "user__username", ("list", "post", "delete"), Scope.ADMIN
    body, out = ServiceAccountIn, ServiceAccountOut
    about = {"post": "Its username is `name@project`. It has no password; create a token for it."}

    def rows(self, access: Access) -> QuerySet[ServiceAccount]:
        return ServiceAccount.objects.listed(access.project).select_related("project")

    def create(self, access: Access, body: ServiceAccountIn) -> ServiceAccount:
        """Create the user `name@project` with a role in the project and without a password.

        Raises `Invalid` for a name or role of another form, `Conflict` for a name that is taken.
        """
        access.require(Scope.ADMIN)
        refuse_unknown_role(body.role)
        if not NAME.fullmatch(body.name):
            raise Invalid.at("name", "Lower-case letters, digits and hyphens, at most 40.")
        project, username = access.project, f"{body.name}@{access.project.slug}"
        try:
            with transaction.atomic():
                if project.service_accounts.count() >= MAX_ACCOUNTS:
                    detail = f"A project has at most {MAX_ACCOUNTS} service accounts; remove one."
                    raise Conflict(detail, code="too_many")
                user = User(username=username)
                user.set_unusable_password()
                user.save(force_insert=True)
                Member.objects.create(project=project, user=user, role=body.role)
                made = ServiceAccount(user=user, project=project, note=body.note[:200], created_by=access.user)
                made.save(force_insert=True)
                self.record(access, "create", made, {"role": body.role, "note": made.note})
        except IntegrityError:
            raise Conflict.at("name", f"The name {username} is taken. Choose another one.", code="name_taken") from None
        return made

    def delete(self, access: Access, row: ServiceAccount) -> None:
        """End its tokens and its membership. Its decisions and runs stay, under its name, which is not given again."""
        access.require(Scope.ADMIN)
        with transaction.atomic():
            tokens = Token.objects.filter(user=row.user).delete()[0]
            self.record(access, "remove", row, {"tokens_revoked": tokens})
            Member.objects.filter(user=row.user).delete()
            User.objects.filter(pk=row.user_id).update(is_active=False)
            row.delete()


accounts = ServiceAccounts()
router = accounts.router()


@router.get(TOKENS, response=Page[TokenOut], summary="Tokens of a service account")
def list_service_tokens(request: HttpRequest, slug: str, username: str, params: Query[ListParams]) -> dict[str, object]:
    account = accounts.one(enter(request, slug, Scope.ADMIN), username)
    return params.page(Token.objects.filter(user=account.user)).response()


@router.post(TOKENS, response={201: NewTokenOut}, summary="Create a token of a service account; shown only once")
def post_service_token(request: HttpRequest, slug: str, username: str, body: TokenIn) -> HttpResponse:
    """It cannot have a scope that the token used for this call lacks, ends with it, and is limited by the account's
    role."""
    account = accounts.one(enter(request, slug, Scope.ADMIN), username)
    made = create_token(
        principal_of(request), scopes=body.scopes, name=body.name, expires_in_days=body.expires_in_days, service=account
    )
    return token_response(*made)


@router.delete(f"{TOKENS}/{{token_id}}", response={204: None}, summary="Revoke a token of a service account")
def delete_service_token(request: HttpRequest, slug: str, username: str, token_id: str) -> Status[None]:
    account = accounts.one(enter(request, slug, Scope.ADMIN), username)
    revoke_token(principal_of(request), token_id, service=account)
    return Status(204, None)


@project_page(Scope.ADMIN, "GET", "POST")
def service_accounts(request: HttpRequest, access: Access) -> HttpResponse:
    form = SchemaForm[ServiceAccountIn](request.POST or None)
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            made = accounts.create(access, form.body())
            return redirect("service-token", access.project.slug, made.user.get_username())
    path = f"/api/v1/projects/{access.project.slug}/service-accounts"
    context = settings_context(access, "service_accounts", path)
    context |= {"form": form, "rows": accounts.rows(access)}
    return render(request, "projects/service_accounts/list.html", context, status=form.status)


@never_cache
@project_page(Scope.ADMIN, "GET", "POST")
def service_token(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    """The account's tokens. A new token's secret is shown only in the response to its form."""
    account = accounts.one(access, name)
    form = TokenForm(request.POST or None)
    secret = ""
    if request.method == "POST" and form.is_valid():
        with form.shows_problem():
            _, secret = create_token(principal_of(request), **form.cleaned_data, service=account)
            form = TokenForm()
    return render(
        request,
        "projects/service_accounts/tokens.html",
        _tokens(access, account) | {"form": form, "secret": secret},
        status=201 if secret else form.status,
    )


@project_page(Scope.ADMIN, "POST")
def service_token_revoke(request: HttpRequest, access: Access, name: str, token_id: str) -> HttpResponse:
    revoke_token(principal_of(request), token_id, service=accounts.one(access, name))
    messages.success(request, "The token is revoked.")
    return redirect("service-token", access.project.slug, name)


@project_page(Scope.ADMIN, "POST")
def service_account_remove(request: HttpRequest, access: Access, name: str) -> HttpResponse:
    accounts.delete(access, accounts.one(access, name))
    messages.success(request, f"{name} and its tokens are removed.")
    return redirect("service-accounts", access.project.slug)


def _tokens(access: Access, account: ServiceAccount) -> dict[str, object]:
    username = account.user.get_username()
    path = f"/api/v1/projects/{access.project.slug}/service-accounts/{username}/tokens"
    context = settings_context(access, "service_accounts", path)
    return context | {"account": username, "rows": account.user.api_tokens.all(), "now": timezone.now()}
