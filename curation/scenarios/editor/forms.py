"""The form of a bundle: a document as fields and rows, with each error at its field.

It is not a Django form, since a bundle has rows, and invalid input of any shape must be shown again unchanged.
`curation.scenarios.editor.form_input` reads the submitted fields.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curation.scenarios.taxonomy.axes import Taxonomy
from curation.web.problems import FieldError
from curation.web.text.figures import quoted

Document = Mapping[str, Any]
Options = Sequence[tuple[str, str]]
KINDS = (
    ("motd", "Message of the day"),
    ("banner", "Login banner"),
    ("env", "Environment variable"),
    ("file", "File in the home directory"),
)
TERMINALS = (("exit", "exit"), ("panic", "panic"))
ENCODINGS = (("content", "text"), ("base64", "base64"))
# Path in the document → (label, help).
TEXTS = {
    "name": ("Name", "Unique in the project."),
    "title": ("Title", ""),
    "authored_by": ("Author", ""),
    "seed": ("Seed", "A whole number."),
    "announcement.text": ("Text", "For a variable: `NAME=value`; without a name it is NOTICE."),
    "provider.name": ("Name", "The command, file or directory that serves the directives."),
    "provider.doc": ("Documentation", "How the agent learns to use it. For people, not for the sandbox."),
    "reference_solution": ("Reference solution", "As the agent would act; the last line is exit or panic [reason]."),
    "scratch": ("Scratch paths", "One to a line: what the reference writes and need not be exact."),
    "free_order": ("Files in free order", "One to a line: their lines may be in any order."),
    "checker": ("Checker", "Status 0 means that the state is right. It sees TERMINAL and PANIC_REASON."),
}
CHOICES = {"announcement.kind": ("Announced by", KINDS), "expected_terminal": ("Expected terminal", TERMINALS)}
SECTIONS = ("axes", "fixtures", "env", "announcement", "provider")


@dataclass(frozen=True, slots=True)
class FormField:
    """One control with its value; `id` is also the control's name."""

    id: str
    label: str
    value: str
    errors: tuple[str, ...] = ()
    options: Options = ()
    help: str = ""


def form_of(
    document: Document,
    taxonomy: Taxonomy,
    *,
    errors: Sequence[FieldError] = (),
    as_json: bool = False,
    json_text: str | None = None,
) -> dict[str, object]:
    """The form that shows `document`; `json_text` is the submitted JSON, if there is any."""
    plain = "\\r" not in json.dumps(document) and not document.get("tools")
    as_json = as_json or not plain
    placed = _Placed(() if as_json else errors)
    fields = {
        _key(path): FormField(_id(path), label, _text(_value(document, path)), placed.at(path), help=quoted(text))
        for path, (label, text) in TEXTS.items()
    } | {
        _key(path): _choice(path, label, options, _text(_value(document, path)), placed)
        for path, (label, options) in CHOICES.items()
    }
    axes, fixtures, env = _axes(document, taxonomy, placed), _fixtures(document, placed), _env(document, placed)
    sections = {name: placed.at(name) for name in SECTIONS}
    return {
        "fields": fields,
        "axes": axes,
        "fixtures": fixtures,
        "env": env,
        "sections": sections,
        "json_text": printed(document) if json_text is None else json_text,
        "as_json": as_json,
        "plain": plain,
        "errors": _lines(errors) if as_json else placed.rest(),
        "problems": len(errors),
    }


def blank_fixture(number: int = 0) -> dict[str, object]:
    return _fixture_row(number, {}, _Placed(()))


def blank_variable(number: int = 0) -> dict[str, object]:
    return _env_row(number, "", "", _Placed(()))


def printed(document: Document) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


class _Placed:
    """Errors by their path; those that no field takes are left for the top of the form."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        self._errors = list(errors)

    def at(self, path: str) -> tuple[str, ...]:
        found = [error for error in self._errors if error.path == path]
        self._errors = [error for error in self._errors if error.path != path]
        return tuple(quoted(error.message) for error in found)

    def rest(self) -> tuple[str, ...]:
        return _lines(self._errors)


def _choice(path: str, label: str, options: Options, value: str, placed: _Placed) -> FormField:
    """A value that is none of the options is shown, and refused on saving."""
    shown = options if any(value == known for known, _ in options) else ((value, value or "–"), *options)
    return FormField(_id(path), label, value, placed.at(path), shown)


def _axes(document: Document, taxonomy: Taxonomy, placed: _Placed) -> tuple[FormField, ...]:
    """A select per axis; a value or an axis that is no longer in the taxonomy is shown, and refused on saving."""
    given = _part(document, "axes")
    fields = []
    for name in dict.fromkeys((*taxonomy.axes, *given)):
        values = taxonomy.axes[name].values if name in taxonomy.axes else {}
        value = _text(given.get(name))
        shown = dict.fromkeys(("", *values, value))
        about = taxonomy.axes[name].about if name in taxonomy.axes else ""
        options = [(word, word or "–") for word in shown]
        fields.append(FormField(f"axes__{name}", name, value, placed.at(f"axes.{name}"), options, about))
    return tuple(fields)


def _fixtures(document: Document, placed: _Placed) -> tuple[dict[str, object], ...]:
    given = document.get("fixtures")
    files = [file for file in given if isinstance(file, Mapping)] if isinstance(given, list) else []
    return tuple(_fixture_row(number, file, placed) for number, file in enumerate(files))


def _fixture_row(number: int, file: Document, placed: _Placed) -> dict[str, object]:
    at, id_ = f"fixtures.{number}", f"fixture-{number}"
    encoding = "base64" if file.get("base64") is not None else "content"
    return {
        "path": FormField(f"{id_}-path", "Path", _text(file.get("path")), placed.at(f"{at}.path")),
        "mode": FormField(f"{id_}-mode", "Mode", _text(file.get("mode", "644")), placed.at(f"{at}.mode")),
        "encoding": FormField(f"{id_}-encoding", "As", encoding, options=ENCODINGS),
        "data": FormField(f"{id_}-data", "Content", _text(file.get(encoding)), placed.at(f"{at}.{encoding}")),
        "errors": placed.at(at),
    }


def _env(document: Document, placed: _Placed) -> tuple[dict[str, object], ...]:
    variables = _part(document, "env").items()
    return tuple(_env_row(number, name, value, placed) for number, (name, value) in enumerate(variables))


def _env_row(number: int, name: str, value: object, placed: _Placed) -> dict[str, object]:
    return {
        "name": FormField(f"env-{number}-name", "Name", name, placed.at(f"env.{name}")),
        "value": FormField(f"env-{number}-value", "Value", _text(value)),
    }


def _part(document: Document, name: str) -> Document:
    part = document.get(name)
    return part if isinstance(part, Mapping) else {}


def _value(document: Document, path: str) -> object:
    part, _, key = path.rpartition(".")
    return (_part(document, part) if part else document).get(key)


def _key(path: str) -> str:
    """The path without dots, for templates."""
    return path.replace(".", "_")


def _id(path: str) -> str:
    return path.replace(".", "__")


def _text(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)


def _lines(errors: Sequence[FieldError]) -> tuple[str, ...]:
    return tuple(quoted(str(error)) for error in errors)
