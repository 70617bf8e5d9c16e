"""REST calls of `curation.llm`."""

from ninja import Router

router = Router(tags=["llm"])
