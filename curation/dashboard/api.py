"""REST calls of `curation.dashboard`."""

from ninja import Router

router = Router(tags=["dashboard"])
