"""REST calls of the caller's own API tokens."""

import orjson
from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from curation.projects.access import principal_of
from curation.projects.models import Token
from curation.projects.pages import schemas as s
from curation.projects.tokens.issue import NewToken, create_token, revoke_token
from curation.web.http.idempotency import store_instead
from curation.web.lists.params import ListParams
from curation.web.lists.schemas import Page

router = Router(tags=["tokens"])


@router.get("/tokens", response=Page[s.TokenOut], summary="Your own tokens, without their secrets")
def list_tokens(request: HttpRequest, params: Query[ListParams]) -> dict[str, object]:
    rows = Token.objects.filter(user=principal_of(request).user)
    return params.page(rows).response(s.TokenOut.of)


@router.post("/tokens", response={201: s.NewTokenOut}, summary="Create a token; its secret is shown only once")
def post_token(request: HttpRequest, body: s.TokenIn) -> HttpResponse:
    """A token cannot have a scope that the token used for this call lacks, and ends with it: it expires no later and is
    revoked with it."""
    return token_response(
        create_token(principal_of(request), scopes=body.scopes, name=body.name, expires_in_days=body.expires_in_days)
    )


@router.delete("/tokens/{token_id}", response={204: None}, summary="Revoke a token")
def delete_token(request: HttpRequest, token_id: str) -> Status[None]:
    revoke_token(principal_of(request), token_id)
    return Status(204, None)


def token_response(made: NewToken) -> HttpResponse:
    """The only response with the secret."""
    shown = s.NewTokenOut(**s.TokenOut.of(made.row).model_dump(), token=made.secret)
    response = HttpResponse(orjson.dumps(shown.model_dump(mode="json")), status=201, content_type="application/json")
    # The response stored for a repeated `Idempotency-Key` must not contain the secret.
    store_instead(response, orjson.dumps(shown.model_copy(update={"token": None}).model_dump(mode="json")))
    return response
