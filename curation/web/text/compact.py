"""JSON of columns with long texts: without blanks, and with characters as they are instead of escapes."""

import json
from typing import Any

import orjson


class CompactEncoder(json.JSONEncoder):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"separators": (",", ":"), "ensure_ascii": False})

    def encode(self, o: Any) -> str:
        """Return the JSON. The fast writer refuses numbers of more than 64 bits, which Python's own writes."""
        try:
            return orjson.dumps(o).decode()
        except orjson.JSONEncodeError:
            return super().encode(o)
