"""REST calls of `curation.dashboard`."""

from ninja import Router

from curation.dashboard.health_api import router as health_router

router = Router(tags=["dashboard"])
router.add_router("", health_router)
