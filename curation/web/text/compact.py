"""JSON of columns with long texts: without blanks, and with characters as they are instead of escapes."""

import json
from typing import Any


class CompactEncoder(json.JSONEncoder):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"separators": (",", ":"), "ensure_ascii": False})
