"""REST calls of `curation.exports`."""

from ninja import Router

router = Router(tags=["exports"])
