"""REST calls of `curation.runs`."""

from ninja import Router

router = Router(tags=["runs"])
