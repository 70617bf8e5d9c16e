"""Values that a table such as CSV has as text."""

import math
import re

LONGEST_NUMBER = 40
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)


def is_number_as_text(value: object) -> bool:
    """Return whether this is the text of a finite number."""
    if not isinstance(value, str) or len(value) > LONGEST_NUMBER or not _NUMBER.fullmatch(value.strip()):
        return False
    return math.isfinite(float(value))


def truth_as_text(value: object) -> bool | None:
    """Return the truth of "true" and "False"; None of anything else."""
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None
