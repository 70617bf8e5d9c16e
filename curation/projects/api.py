"""REST calls of `curation.projects`."""

from ninja import Router

router = Router(tags=["projects"])
