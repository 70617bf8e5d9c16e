"""The repository that the id of a benchmark's task names."""

import re

# `owner__name-123` of SWE-bench, with `_4` after it where one task has several runs …
_BENCH_ID = re.compile(r"(?P<owner>.+?)__(?P<name>.+)-\d+(?:_\d+)?")
# … and `owner__name.1a2b3c4d.kind_of_fault` of synthetic tasks.
_SYNTHETIC_ID = re.compile(r"(?P<owner>.+?)__(?P<name>.+?)\.[0-9a-f]{7,40}\..+")


def repo_of(instance_id: str) -> str:
    """Return `owner/name`, or an empty string."""
    found = _BENCH_ID.fullmatch(instance_id) or _SYNTHETIC_ID.fullmatch(instance_id)
    return f"{found['owner']}/{found['name']}" if found else ""
