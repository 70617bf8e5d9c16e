"""The entries of an audit log in words, for its pages."""

from collections.abc import Iterator, Mapping

# Verbs whose past is not made by -ed.
_PAST = {
    "do": "did",
    "end": "ended",
    "look": "looked at",
    "new_codes": "made new codes of",
    "override": "wrote own",
    "pin": "pinned",
    "second_opinion": "asked for a second opinion on",
    "set": "set",
    "skip": "skipped",
    "stop": "stopped",
    "take_in": "took in",
    "undo": "undid",
    "unpin": "unpinned",
    "update": "changed",
}
_OF_ITSELF = frozenset({"succeeded", "failed"})
_NO_PAIRS = frozenset({"fields", "moved"})


def said(action: str) -> str:
    """An action such as `sample.bulk_approve` as a sentence without its subject: "approved sample, in bulk"."""
    noun, _, verb = action.partition(".")
    name = noun.replace("_", " ")
    if not verb:
        return name
    if verb.startswith("bulk_"):
        return f"{_past(verb.removeprefix('bulk_'))} {name}, in bulk"
    if verb.endswith("ed"):
        return f"{name} {verb}" if verb in _OF_ITSELF else f"{name} was {verb}"
    return f"{_past(verb)} {name}"


def details(action: str, data: Mapping[str, object]) -> list[str]:
    """One line for each value of an entry: "panel.swap: yes → no" for a change, "reason: leaks" for a fact."""
    return [f"{name}: {text}" for name, text in _lines(data, changes=action.endswith(".update"))]


def _lines(data: Mapping[str, object], *, changes: bool, name: str = "") -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        here = f"{name} {key}".strip().replace("_", " ") if name not in ("settings", "params") else key
        if value in (None, "", [], {}):
            continue
        if isinstance(value, Mapping):
            yield from _lines(value, changes=changes, name=here)
        elif changes and key not in _NO_PAIRS and isinstance(value, list) and len(value) == 2:
            yield here, f"{_shown(value[0])} → {_shown(value[1])}"
        else:
            yield here, _shown(value)


def _past(verb: str) -> str:
    if verb in _PAST:
        return _PAST[verb]
    first, _, rest = verb.partition("_")
    past = first + ("d" if first.endswith("e") else "ed")
    return f"{past} {rest.replace('_', ' ')} of" if rest else past


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(one)}" for key, one in value.items())
    return "none" if value in (None, "") else str(value)
