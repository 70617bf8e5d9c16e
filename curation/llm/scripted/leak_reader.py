"""The scripted leak reader: it finds sentences of the record that an answer repeats in other forms of its words."""

import json
import re

_PART = re.compile(r"<(history|title|description|files|patch|answer)( key=\"\w+\")?>\n(.*?)\n</\1\2?>", re.DOTALL)
_SENTENCE = re.compile(r"[^.!?\n]{8,400}")
_WORD = re.compile(r"[a-z]{5,}")
_BEGINNING = 5  # letters that two forms of a word share
_ENOUGH = 2


def is_reading(prompt: str) -> bool:
    """Whether a judge is asked for leaks instead of a verdict."""
    return {"history", "patch", "answer"} <= {match[1] for match in _PART.finditer(prompt)}


def read_leaks(prompt: str) -> str:
    """Reply with findings as JSON: a sentence of title or description that shares two words with one of the answer,
    by their first five letters, which the history has not."""
    parts = {match[1]: match[3] for match in _PART.finditer(prompt)}
    known = _beginnings(parts.get("history", ""))
    findings = []
    for said in _SENTENCE.findall(parts.get("answer", "")):
        own = _beginnings(said) - known
        for place in ("title", "description"):
            sentences = _SENTENCE.findall(parts.get(place, ""))
            source = next((text for text in sentences if len(own & _beginnings(text)) >= _ENOUGH), None)
            if source is not None:
                finding = {"answer": said.strip(), "place": place, "record": source.strip(), "reason": "the same fact"}
                findings.append(finding)
                break
    return json.dumps({"findings": findings})


def _beginnings(text: str) -> set[str]:
    return {word[:_BEGINNING] for word in _WORD.findall(text.lower())}
