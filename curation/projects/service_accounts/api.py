"""REST calls of service accounts and their tokens."""

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.projects.access import enter, principal_of
from curation.projects.models import Scope, ServiceAccount, Token
from curation.projects.pages.schemas import NewTokenOut, TokenIn, TokenOut
from curation.projects.service_accounts.change import (
    create_service_account,
    remove_service_account,
    service_account_of,
)
from curation.projects.service_accounts.schemas import ServiceAccountIn, ServiceAccountOut
from curation.projects.tokens.api import token_response
from curation.projects.tokens.issue import create_token, revoke_token
from curation.web.lists.params import ListParams
from curation.web.schemas import Page

router = Router(tags=["service accounts"])
ACCOUNTS = "/projects/{slug}/service-accounts"
TOKENS = f"{ACCOUNTS}/{{username}}/tokens"


@router.get(ACCOUNTS, response=Page[ServiceAccountOut], summary="Service accounts of a project")
def list_service_accounts(request: HttpRequest, slug: str, params: Query[ListParams]) -> dict[str, object]:
    rows = ServiceAccount.objects.listed(enter(request, slug, Scope.ADMIN).project)
    return params.page(rows).response()


@router.post(ACCOUNTS, response={201: ServiceAccountOut}, summary="Create a service account")
def post_service_account(request: HttpRequest, slug: str, body: ServiceAccountIn) -> Status[ServiceAccountOut]:
    """Its username is `name@project`. It has no password; create a token for it."""
    access = enter(request, slug, Scope.ADMIN)
    made = create_service_account(access=access, name=body.name, role=body.role, note=body.note)
    return Status(201, ServiceAccountOut.model_validate(made))


@router.delete(f"{ACCOUNTS}/{{username}}", response={204: None}, summary="Remove a service account and its tokens")
def delete_service_account(request: HttpRequest, slug: str, username: str) -> Status[None]:
    remove_service_account(access=enter(request, slug, Scope.ADMIN), username=username)
    return Status(204, None)


@router.get(TOKENS, response=Page[TokenOut], summary="Tokens of a service account")
def list_service_tokens(request: HttpRequest, slug: str, username: str, params: Query[ListParams]) -> dict[str, object]:
    account = service_account_of(enter(request, slug, Scope.ADMIN), username)
    return params.page(Token.objects.filter(user=account.user)).response()


@router.post(TOKENS, response={201: NewTokenOut}, summary="Create a token of a service account; shown only once")
def post_service_token(request: HttpRequest, slug: str, username: str, body: TokenIn) -> HttpResponse:
    """It cannot have a scope that the token used for this call lacks, ends with it, and is limited by the account's
    role."""
    account = service_account_of(enter(request, slug, Scope.ADMIN), username)
    made = create_token(
        principal_of(request),
        scopes=body.scopes,
        name=body.name,
        expires_in_days=body.expires_in_days,
        service=account,
    )
    return token_response(made)


@router.delete(f"{TOKENS}/{{token_id}}", response={204: None}, summary="Revoke a token of a service account")
def delete_service_token(request: HttpRequest, slug: str, username: str, token_id: str) -> Status[None]:
    account = service_account_of(enter(request, slug, Scope.ADMIN), username)
    revoke_token(principal_of(request), token_id, service=account)
    return Status(204, None)
