from collections.abc import Iterator, Mapping
from textwrap import shorten
from typing import Any

from django.urls import reverse
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from curation.projects.models import Project
from curation.runs.kinds import Json, Kind, RunFact
from curation.web.lists.filters import RowFilter, list_of_filter

CHOICES: dict[str, dict[object, str]] = {
    "mode": {1: "Against the source's own turn", 2: "Against the king"},
    "source": {"scenarios": "Rollouts and episodes on servers", "trajectories": "Imported runs"},
    "decisions": {"single": "Made one by one", "all": "Also in bulk, and imported"},
    "part": {"tune": "To write by", "held_out": "Held out, to test"},
    "known": {"audited": "Drawn by audits", "decided": "All that people decided"},
    "of": {"failures": "Failures", "new": "Unlike anything reviewed so far"},
    "subject": {"trajectory": "Whole sessions", "answer": "Their last messages", "step": "Each step of the agent"},
    "steps": {"divergences": "Where solved and failed rollouts part", "all": "Every step"},
    "sight": {"both": "Without the checker's text, then with it", "without": "Without it", "with": "With it"},
    "advantage": {"any": "Also where no probe knows", "likely": "Likely better", "proven": "Proven better"},
    "strategy": {"first_divergence": "The first action that differs", "whole_trajectory": "Whole trajectories"},
}
MOST_CHARACTERS = 300
LABELS = {
    "n": "Scenarios to write",
    "swap": "Both orders",
    "fresh": "Ask the model again",
    "structured": "Answers by JSON schema",
    "min_judges": "Judges needed",
    "of": "Samples",
    "part": "Tasks",
    "known": "Duels",
    "text": "Instructions",
    "url": "Address",
    "alpha": "α",
    "delta": "δ",
    "size": "Duels for the proof",
}


def label_of(name: str) -> str:
    return LABELS.get(name) or name.replace("_", " ").capitalize()


def parameter_facts(kind: Kind[Any], project: Project, params: Json) -> list[RunFact]:
    """Return a row per parameter that has a value. A filter leads to the list with the rows that it matches."""
    given = {name: value for name, value in params.items() if name not in kind.set_at_launch}
    return list(_facts(kind.params, kind.filter, project, given))


def _facts(model: type[BaseModel], filter: type[RowFilter] | None, project: Project, given: Json) -> Iterator[RunFact]:
    for name, value in given.items():
        info = model.model_fields.get(name)
        own = filter if name == "filter" and filter else _class_in(info, RowFilter)
        if own is not None:
            yield _filter_fact(own.from_json(value), project)
        elif isinstance(value, dict) and (inner := _class_in(info, BaseModel)):
            yield from _facts(inner, None, project, value)
        elif value not in (None, "", [], {}):
            words = CHOICES.get(name, {}).get(_key(value)) or words_of(value)
            yield RunFact(label_of(name), shorten(words, MOST_CHARACTERS, placeholder=" …"))


def _filter_fact(filter: RowFilter, project: Project) -> RunFact:
    found = list_of_filter(filter)
    url = f"{reverse(found.page, args=[project.slug])}?{filter.to_query()}" if found else ""
    return (
        RunFact(label_of("filter"), "all", "")
        if filter.is_empty()
        else RunFact(label_of("filter"), filter.words(), url)
    )


def _key(value: object) -> object:
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def words_of(value: object) -> str:
    """Return a value of JSON in words: "on", "a, b", "train 0.9, val 0.1". PostgreSQL keeps no order of names."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return ", ".join(f"{str(name).replace('_', ' ')} {words_of(one)}" for name, one in sorted(value.items()))
    if isinstance(value, list):
        return ", ".join(words_of(one) for one in value)
    return "–" if value is None else str(value)


def _class_in(info: FieldInfo | None, base: type[BaseModel]) -> type[Any] | None:
    """Return the subclass of `base` that a field holds, alone or as one of several."""
    annotation: Any = info.annotation if info else None
    parts = [annotation, *getattr(annotation, "__args__", ())]
    return next((part for part in parts if isinstance(part, type) and issubclass(part, base)), None)
