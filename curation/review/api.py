"""REST calls of `curation.review`."""

from ninja import Router

router = Router(tags=["review"])
