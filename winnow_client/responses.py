"""The base of the responses in `schemas`."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from winnow_client.errors import UnexpectedResponse


class Response(BaseModel):
    """A response, or an object in one. A field that this version of the client does not know is an attribute too."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


T = TypeVar("T", bound=Response)


def parse(kind: type[T], data: Any) -> T:
    """Return the JSON of a response as its model. Raises `UnexpectedResponse`."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise UnexpectedResponse(kind.__name__, error) from None
