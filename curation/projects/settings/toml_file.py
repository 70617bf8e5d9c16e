"""Read a TOML file with `[judge]`, `[duel]`, `[runs]` and `[taxonomy]` tables as a change of a project's settings."""

from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from curation.projects.settings.patch import Json, field_at
from curation.web.problems import Invalid
from sandbox.harbor.task_folder import read_toml

MAX_BYTES = 64 * 1024  # a parser of TOML takes quadratic time
# The keys of each table and the project's settings that they set.
TABLES = {
    "judge": {
        "models": "panel.judges",
        "max_tokens": "panel.max_tokens",
        "temperature": "panel.temperature",
        "attempts": "panel.attempts",
        "swap": "panel.swap",
        "min_judges": "panel.min_judges",
        "show_reference": "panel.show_reference",
        "controls": "panel.controls",
    },
    "duel": {
        "final": "thresholds.final",
        "refined": "thresholds.refined",
        "win_margin": "gate.win_margin",
        "min_clusters": "gate.min_clusters",
        "equivalent_within": "gate.equivalent_within",
        "strict": "gate.strict",
        "min_parsed": "gate.min_parsed",
        "resamples": "gate.resamples",
        "seed": "gate.seed",
        "cluster": "gate.cluster",
        "max_leak": "limits.max_leak",
        "mode": "panel.mode",
    },
    "runs": {"wait_minutes": "runs.wait_minutes", "keep_texts_days": "runs.keep_texts_days"},
}


def settings_from_toml(text: str) -> tuple[dict[str, Json], list[str]]:
    """Return the file as a patch of the settings, and its tables that are of other programs. Raises `Invalid` with the
    reason."""
    if len(text.encode()) > MAX_BYTES:
        raise _refusal(f"The file is larger than {MAX_BYTES // 1024} KiB; it should have four short tables.")
    try:
        document = read_toml(text)
    except (ValueError, RecursionError) as error:  # the latter: nested beyond the interpreter's depth
        raise _refusal(f"not a TOML file: {error}") from None
    patch: dict[str, Json] = {}
    unknown = []
    for table, values in document.items():
        if not isinstance(values, dict):
            is_known = table in TABLES or table == "taxonomy"
            raise _refusal(f"[{table}] must be a table" if is_known else f"unknown key outside of a table {table!r}")
        if table == "taxonomy":
            if values:
                patch["taxonomy"] = {"axes": _checked("[taxonomy]", "taxonomy.axes", values)}
        elif table not in TABLES:
            unknown.append(table)
        else:
            _read(table, values, patch)
    if not patch:
        raise _refusal("The file sets nothing: it has no key in [judge], [duel], [runs] or [taxonomy].")
    return patch, unknown


def _read(table: str, values: dict[str, object], patch: dict[str, Json]) -> None:
    known = TABLES[table]
    for key, value in values.items():
        if key not in known:
            raise _refusal(f"[{table}] {key!r} is not a setting: known are {', '.join(known)}")
        section, name = known[key].split(".")
        inner = patch.setdefault(section, {})
        if isinstance(inner, dict):
            inner[name] = _checked(f"[{table}] {key}", known[key], value)


def _checked(place: str, setting: str, value: object) -> Json:
    """Return the value if it has the type and the range of the setting. The settings' other rules are those of every
    change."""
    info = field_at(setting)
    setting_type: Any = Annotated[info.annotation, info]
    try:
        return TypeAdapter[Json](setting_type).validate_python(value, strict=True)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        at = "".join(f".{part}" for part in found["loc"] if part != "[key]")
        raise _refusal(f"{place}{at} is {_shown(found['input'])}: {found['msg']}") from None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _refusal(reason: str) -> Invalid:
    return Invalid.at("toml", reason)
