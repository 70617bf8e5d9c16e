"""A bundle as a request brings it."""

import orjson
from django.http import HttpRequest

from curation.web.problems import Problem

EXAMPLE: dict[str, object] = {
    "name": "greeting",
    "title": "Leave a greeting",
    "axes": {"task": "file-edit", "provider": "script", "announcement": "motd", "doc_depth": "help", "difficulty": 1},
    "fixtures": [
        {
            "path": "/usr/local/bin/todo",
            "mode": "755",
            "content": (
                "#!/bin/sh\n[ \"$1\" = --help ] && { echo 'usage: todo'; exit; }\necho 'write hello to greeting.txt'\n"
            ),
        }
    ],
    "env": {},
    "announcement": {"kind": "motd", "text": "Work is announced by: todo"},
    "provider": {"name": "todo", "doc": "todo --help"},
    "reference_solution": "todo\necho hello > greeting.txt\nexit",
    "checker": "grep -qx hello /home/agent/greeting.txt",
    "expected_terminal": "exit",
}


def read_document(request: HttpRequest) -> object:
    """The body's JSON. Raises `Problem` (400) with what is wrong with it."""
    try:
        return orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise Problem(f"The body is not JSON: {error}.", code="not_json") from None
