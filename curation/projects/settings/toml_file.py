"""Read a TOML file with `[judge]`, `[duel]`, `[runs]` and `[taxonomy]` tables as a change of a project's settings."""

import math
from dataclasses import asdict

from curation.projects.settings.patch import Json
from curation.web.problems import FieldError, Invalid
from judging.settings_file import SettingsError, read_duel_tables, read_toml

MAX_BYTES = 256 * 1024
# The file's keys and the project's settings that they set.
JUDGE = {
    "models": "panel.judges",
    "max_tokens": "panel.max_tokens",
    "temperature": "panel.temperature",
    "attempts": "panel.attempts",
    "swap": "panel.swap",
    "min_judges": "panel.min_judges",
    "show_reference": "panel.show_reference",
    "controls": "panel.controls",
}
DUEL = {
    "final": "thresholds.final",
    "refined": "thresholds.refined",
    "win_margin": "gate.win_margin",
    "min_clusters": "gate.min_clusters",
    "equivalent_within": "gate.equivalent_within",
    "min_parsed": "gate.min_parsed",
    "resamples": "gate.resamples",
    "seed": "gate.seed",
    "cluster": "gate.cluster",
    "max_leak": "limits.max_leak",
    "mode": "panel.mode",
}


def settings_from_toml(text: str) -> tuple[dict[str, Json], list[str]]:
    """Return the file as a patch of the settings, and its tables that are of other programs. Raises `Invalid` with the
    reason."""
    if len(text.encode()) > MAX_BYTES:
        raise _refusal(f"The file is larger than {MAX_BYTES // 1024} KiB; it should have four short tables.")
    try:
        document = read_toml(text)
        axes, runs = document.pop("taxonomy", None), document.pop("runs", None)
        unknown = [
            name for name, table in document.items() if name not in ("judge", "duel") and isinstance(table, dict)
        ]
        for name in unknown:
            del document[name]
        file = read_duel_tables(document)
    except SettingsError as error:
        raise _refusal(str(error)) from None
    patch: dict[str, Json] = {}
    for table, settings in ((asdict(file.judge), JUDGE), (asdict(file.duel), DUEL)):
        for key, value in table.items():
            if value is None:
                continue
            section, name = settings[key].split(".")
            inner = patch.setdefault(section, {})
            if isinstance(inner, dict):
                inner[name] = list(value) if isinstance(value, tuple) else value
    if runs:
        patch["runs"] = _runs(runs)
    if axes:
        patch["taxonomy"] = {"axes": _axes(axes)}
    if not patch:
        raise _refusal("The file sets nothing: it has no key in [judge], [duel], [runs] or [taxonomy].")
    return patch, unknown


def _runs(table: object) -> dict[str, Json]:
    """`[runs]`: `wait_minutes`, how long items wait for a model endpoint that is down."""
    if not isinstance(table, dict) or set(table) != {"wait_minutes"}:
        raise _refusal("[runs] has one key, wait_minutes")
    minutes = table["wait_minutes"]
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not math.isfinite(minutes):
        raise _refusal("[runs] wait_minutes must be a number of minutes")
    return {"wait_minutes": minutes}


def _axes(table: object) -> dict[str, Json]:
    """`[taxonomy]`: values that the project adds to an axis, as in `task = ["deploy", "restore"]`."""
    if not isinstance(table, dict):
        raise _refusal("[taxonomy] must be a table")
    axes: dict[str, Json] = {}
    for name, values in table.items():
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise _refusal(f"[taxonomy] {name} must be a list of values")
        axes[name] = list(values)
    return axes


def _refusal(reason: str) -> Invalid:
    return Invalid(reason, errors=[FieldError("toml", reason)])
