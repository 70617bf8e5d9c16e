"""What a REST call declares of itself for the OpenAPI document, where its types do not say it (`openapi_extra`)."""

from typing import Any

# Of a call whose answers are streamed, or change with every request: they have no `ETag`, and are never 304.
WITHOUT_ETAG = "x-without-etag"


def answers_with_file(*media_types: str, has_etag: bool = True) -> dict[str, Any]:
    """Declare that the answer is a file of one of these media types."""
    content = {kind: {"schema": _schema(kind)} for kind in media_types}
    declared: dict[str, Any] = {"responses": {200: {"content": content}}}
    return declared if has_etag else {**declared, WITHOUT_ETAG: True}


def _schema(media_type: str) -> dict[str, str]:
    if media_type == "application/json":
        return {"type": "object"}
    return {"type": "string"} if media_type.startswith("text/") else {"type": "string", "format": "binary"}
