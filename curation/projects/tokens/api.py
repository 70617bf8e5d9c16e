from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.projects.access import principal_of
from curation.projects.models import Token
from curation.projects.pages import schemas as s
from curation.projects.tokens.issue import create_token, revoke_token
from curation.web.http.idempotency import shown_once
from curation.web.lists.filters import ListParams
from curation.web.schemas import Page, answer

router = Router(tags=["tokens"])


@router.get(
    "/me",
    response=answer("MeOut", username=str, scopes=list[str], token=s.TokenOut | None),
    summary="Your account, and the scopes of this call's credential",
)
def get_me(request: HttpRequest) -> dict[str, object]:
    """`scopes` are what the credential allows; the role in a project may allow less. `token` is null for a signed-in
    browser."""
    principal = principal_of(request)
    return {"username": principal.user.username, "scopes": sorted(principal.scopes), "token": principal.token}


@router.get("/tokens", response=Page[s.TokenOut], summary="Your own tokens, without their secrets")
def list_tokens(request: HttpRequest, params: Query[ListParams]) -> dict[str, object]:
    rows = Token.objects.filter(user=principal_of(request).user)
    return params.page(rows).response()


@router.post("/tokens", response={201: s.NewTokenOut}, summary="Create a token; its secret is shown only once")
def post_token(request: HttpRequest, body: s.TokenIn) -> HttpResponse:
    """A token cannot have a scope that the token used for this call lacks, and ends with it: it expires no later and is
    revoked with it."""
    principal = principal_of(request)
    return token_response(
        *create_token(principal, scopes=body.scopes, name=body.name, expires_in_days=body.expires_in_days)
    )


@router.delete("/tokens/{token_id}", response={204: None}, summary="Revoke a token")
def delete_token(request: HttpRequest, token_id: str) -> Status[None]:
    revoke_token(principal_of(request), token_id)
    return Status(204, None)


def token_response(row: Token, secret: str) -> HttpResponse:
    """The only response with the secret."""
    token = s.TokenOut.model_validate(row).model_dump()
    return shown_once(s.NewTokenOut(**token, token=secret), "token")
