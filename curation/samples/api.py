"""REST calls of `curation.samples`."""

from ninja import Router

router = Router(tags=["samples"])
