"""The TOML form of a project's judging settings: tables `[judge]` and `[duel]`."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass


class SettingsError(ValueError):
    """The file cannot be used. The message names the table, the key and the expected value."""


@dataclass(frozen=True, slots=True)
class JudgeTable:
    """`[judge]`. None means that the file does not set it and the project's setting stays."""

    models: tuple[str, ...] | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    attempts: int | None = None
    swap: bool | None = None
    min_judges: int | None = None
    show_reference: bool | None = None
    controls: float | None = None


@dataclass(frozen=True, slots=True)
class DuelTable:
    """`[duel]`. `final`, `refined`, `win_margin` in points; `min_parsed`, `max_leak` as shares. None: not set."""

    final: float | None = None
    refined: float | None = None
    win_margin: float | None = None
    min_parsed: float | None = None
    max_leak: float | None = None
    mode: int | None = None
    resamples: int | None = None
    seed: int | None = None
    cluster: bool | None = None
    min_clusters: int | None = None
    equivalent_within: float | None = None


@dataclass(frozen=True, slots=True)
class DuelFile:
    """Both tables of the file; a table that is absent has None everywhere."""

    judge: JudgeTable
    duel: DuelTable


def read_duel_toml(text: str) -> DuelFile:
    """Parse the file. Raises SettingsError for bad TOML, unknown names, wrong types and values out of range."""
    return read_duel_tables(read_toml(text))


def read_toml(text: str) -> dict[str, object]:
    """Parse TOML. Raises SettingsError for anything else."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"not a TOML file: {error}") from error


def read_duel_tables(document: Mapping[str, object]) -> DuelFile:
    """Read the two tables of a document that has no others. Raises SettingsError like `read_duel_toml`."""
    for name, table in document.items():
        if name not in ("judge", "duel"):
            what = "table" if isinstance(table, dict) else "key outside of a table"
            raise SettingsError(f"unknown {what} {_shown(name)}: the file has [judge] and [duel]")
    judge, duel = _Table(document, "judge"), _Table(document, "duel")
    result = DuelFile(
        judge=JudgeTable(
            models=judge.names("models"),
            max_tokens=judge.whole("max_tokens", 1, 1_000_000),
            temperature=judge.number("temperature", 0, 2),
            attempts=judge.whole("attempts", 1, 20),
            swap=judge.switch("swap"),
            min_judges=judge.whole("min_judges", 1, 100),
            show_reference=judge.switch("show_reference"),
            controls=judge.number("controls", 0, 1),
        ),
        duel=DuelTable(
            final=duel.number("final", 0, 100),
            refined=duel.number("refined", 0, 100),
            win_margin=duel.number("win_margin", -100, 100),
            min_parsed=duel.number("min_parsed", 0, 1),
            max_leak=duel.number("max_leak", 0, 1),
            mode=duel.whole("mode", 1, 2),
            resamples=duel.whole("resamples", 100, 1_000_000),
            seed=duel.whole("seed", 0, 2**63 - 1),
            cluster=duel.switch("cluster"),
            min_clusters=duel.whole("min_clusters", 1, 100_000),
            equivalent_within=duel.number("equivalent_within", 0, 100),
        ),
    )
    judge.refuse_unknown()
    duel.refuse_unknown()
    _check_together(result)
    return result


def _check_together(file: DuelFile) -> None:
    judge, duel = file.judge, file.duel
    if duel.final is not None and duel.refined is not None and duel.refined > duel.final:
        raise SettingsError(f"[duel] refined is {duel.refined:g}: it must not be above final ({duel.final:g})")
    if judge.models is not None and judge.min_judges is not None and judge.min_judges > len(judge.models):
        raise SettingsError(f"[judge] min_judges is {judge.min_judges}: models names only {len(judge.models)}")


class _Table:
    """Reads one table key by key and remembers which keys are known."""

    def __init__(self, document: Mapping[str, object], name: str) -> None:
        table = document.get(name, {})
        if not isinstance(table, dict):
            raise SettingsError(f"[{name}] must be a table")
        self.name = name
        self.values: Mapping[str, object] = table
        self.known: list[str] = []

    def refuse_unknown(self) -> None:
        for key in self.values:
            if key not in self.known:
                raise SettingsError(f"[{self.name}] {_shown(key)} is not a setting: known are {', '.join(self.known)}")

    def switch(self, key: str) -> bool | None:
        value = self._take(key)
        if value is None or isinstance(value, bool):
            return value
        raise self._wrong(key, value, "true or false")

    def whole(self, key: str, low: int, high: int) -> int | None:
        value = self._take(key)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        raise self._wrong(key, value, f"a whole number from {low} to {high}")

    def number(self, key: str, low: float, high: float) -> float | None:
        value = self._take(key)
        if value is None:
            return None
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and math.isfinite(value)
            and low <= value <= high
        ):
            return float(value)
        raise self._wrong(key, value, f"a number from {low:g} to {high:g}")

    def names(self, key: str) -> tuple[str, ...] | None:
        value = self._take(key)
        if value is None:
            return None
        expected = "a list of different model names"
        if not isinstance(value, list) or not value:
            raise self._wrong(key, value, expected)
        names = tuple(name.strip() for name in value if isinstance(name, str) and name.strip())
        if len(names) != len(value) or len(set(names)) != len(names):
            raise self._wrong(key, value, expected)
        return names

    def _take(self, key: str) -> object:
        self.known.append(key)
        return self.values.get(key)

    def _wrong(self, key: str, value: object, expected: str) -> SettingsError:
        return SettingsError(f"[{self.name}] {key} is {_shown(value)}: it must be {expected}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
