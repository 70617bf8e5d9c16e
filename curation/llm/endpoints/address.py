"""The name of a model endpoint, and its place in an address."""

import re

from django.urls.converters import StringConverter

# Pages and calls of an endpoint: `…/models/{name}/usage`.
BELOW = ("apply-test", "delete", "edit", "line-up", "served", "test", "usage")


class EndpointName(StringConverter):
    """A name in an address, which may have slashes, as in `Qwen/Qwen3-8B`. No later part of it is a word of `BELOW`."""

    regex = rf"[A-Za-z0-9][\w.:-]*(?:/(?!(?:{'|'.join(BELOW)})(?:/|$))[A-Za-z0-9][\w.:-]*)*"


def is_endpoint_name(name: str) -> bool:
    return len(name) <= 60 and re.fullmatch(EndpointName.regex, name, re.ASCII) is not None
