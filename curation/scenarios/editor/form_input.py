"""Read the submitted form of a bundle as a JSON document."""

from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from curation.scenarios.bundles.document import MARKS
from curation.web.ids import number
from curation.web.problems import FieldError, Invalid
from curation.web.text.storable import parse_inner

AXIS = "axes__"


@dataclass(frozen=True, slots=True)
class FormInput:
    """`document` is None for text that is not a JSON object; `then` is the button that was pressed."""

    document: dict[str, Any] | None
    json_text: str | None
    as_json: bool
    then: str
    version: int | None

    def require_document(self) -> dict[str, Any]:
        if self.document is None:
            text = "This is not a JSON object"
            raise Invalid(text, errors=[FieldError("", f"{text}{_where(self.json_text or '')}")])
        return self.document


def read_form(post: QueryDict) -> FormInput:
    """The submitted form, with LF for the CR LF that browsers send."""
    as_json = post.get("as") == "json"
    text = post.get("json", "").replace("\r\n", "\n") if as_json else None
    version = post.get("version", "")
    return FormInput(
        document=_object(text) if text is not None else _from_fields(post),
        json_text=text,
        as_json=as_json,
        then=post.get("then", "save"),
        version=number(version),
    )


def _from_fields(post: QueryDict) -> dict[str, Any]:
    """The document of the fields, without empty optional keys and empty rows."""
    document: dict[str, Any] = {"name": post.get("name", "").strip()}
    document["title"] = post.get("title", "").strip()
    document["axes"] = {key.removeprefix(AXIS): post[key] for key in post if key.startswith(AXIS) and post[key]}
    document["fixtures"] = _fixtures(post)
    document["env"] = _env(post)
    document["announcement"] = {"kind": post.get("announcement__kind", ""), "text": _lf(post, "announcement__text")}
    document["provider"] = {"name": post.get("provider__name", "").strip(), "doc": _lf(post, "provider__doc")}
    document |= {name: _lf(post, name) for name in ("reference_solution", "checker")}
    marks = {name: [line.strip() for line in _lf(post, name).splitlines() if line.strip()] for name in MARKS}
    document |= {name: paths for name, paths in marks.items() if paths}
    document["expected_terminal"] = post.get("expected_terminal", "")
    document["authored_by"] = post.get("authored_by", "").strip()
    if seed := post.get("seed", "").strip():
        document["seed"] = int(seed) if seed.removeprefix("-").isdecimal() and len(seed) < 25 else seed
    return document


def _fixtures(post: QueryDict) -> list[dict[str, str]]:
    rows = []
    for path, mode, encoding, data in zip(
        post.getlist("fixture_path"),
        post.getlist("fixture_mode"),
        post.getlist("fixture_encoding"),
        post.getlist("fixture_data"),
        strict=False,
    ):
        if path.strip() or data:
            key = "base64" if encoding == "base64" else "content"
            rows.append({"path": path.strip(), "mode": mode.strip(), key: data.replace("\r\n", "\n")})
    return rows


def _env(post: QueryDict) -> dict[str, str]:
    """A repeated name gets a number, which makes it invalid, so that no value is lost."""
    env: dict[str, str] = {}
    for name, value in zip(post.getlist("env_name"), post.getlist("env_value"), strict=False):
        key = name.strip()
        if key or value:
            env[key if key not in env else f"{key} ({len(env) + 1})"] = value.replace("\r\n", "\n")
    return env


def _lf(post: QueryDict, name: str) -> str:
    return post.get(name, "").replace("\r\n", "\n")


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = parse_inner(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _where(text: str) -> str:
    try:
        parse_inner(text)
    except ValueError as error:
        return f": {error}"
    return ""
