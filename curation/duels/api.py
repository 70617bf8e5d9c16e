"""REST calls of `curation.duels`."""

from ninja import Router

router = Router(tags=["duels"])
