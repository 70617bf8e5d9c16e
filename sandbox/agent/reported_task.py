"""The task that a server reports, compared with the requested one.

A server may ignore the body of `reset`. It reports its task in the observation, in `info` or in its state: as an id, as
a text, or as an object with both, at any of the usual places.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

# Names that servers use for a task, for the fields of a task object, and for what contains one of them.
TASK = ("task", "task_description", "instruction", "question", "goal", "prompt")
TASK_TEXT = ("description", "instruction", "text", "prompt", "goal", "title")
TIER = ("difficulty", "tier", "level")
# In an observation `prompt` may be a shell's, and a number is an id only under these names.
OBJECTS = frozenset({"task", "current_task", "task_info", "problem"})
TEXTS = OBJECTS | {"task_description", "instruction", "question", "goal"}
ROW_TEXTS = TEXTS | {"description"}
TASK_ID = frozenset({"task_id", "taskid", "task-id"})
OBJECT_ID = TASK_ID | {"id", "instance_id", "problem_id", "uid"}
CONTAINERS = frozenset({"observation", "info", "metadata", "state", "data", "episode", "context", "env", "extra"})
# Tiers whose names mean the same everywhere, the easiest first. Others may be a file's own words.
TIERS = ("warmup", "beginner", "intermediate", "advanced", "expert")
LABEL = re.compile(r"^[A-Za-z][A-Za-z ]{0,24}:\s*")
DEEPEST = 5


class TaskConfirmation(StrEnum):
    """`seed`: only a seed was asked for, which names no task."""

    CONFIRMED = "confirmed"
    UNCONFIRMED = "unconfirmed"
    SEED = "seed"
    MISMATCH = "mismatch"


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """Statements about a task. Each of `ids` is a set of names for one task. `texts` and `tiers` are in normal form,
    `text` is one of the texts as it was written."""

    ids: frozenset[frozenset[str]] = frozenset()
    texts: frozenset[str] = frozenset()
    tiers: frozenset[str] = frozenset()
    text: str = ""

    def __or__(self, other: "TaskFacts") -> "TaskFacts":
        return TaskFacts(
            self.ids | other.ids, self.texts | other.texts, self.tiers | other.tiers, self.text or other.text
        )

    @property
    def names(self) -> list[str]:
        return sorted({name for names in self.ids for name in names})

    @property
    def key(self) -> str:
        """Equal for the same task, empty if nothing is said."""
        return "\n".join([*self.names, "", *sorted(self.texts)]).strip()

    def as_json(self) -> dict[str, object]:
        return {"ids": self.names, "text": self.text, "tiers": sorted(self.tiers), "sentence": self.sentence}

    @property
    def sentence(self) -> str:
        """For people: `task 17 "List the queues." (warmup)`."""
        parts = [f"task {', '.join(self.names)}" if self.ids else "a task"]
        parts += [f'"{self.text}"'] if self.text else []
        parts += [f"({', '.join(sorted(self.tiers))})"] if self.tiers else []
        return " ".join(parts) if len(parts) > 1 or self.ids else "no task"


@dataclass(frozen=True, slots=True)
class AskedTask:
    """The task of a row. `prompt` is the text of the row's user messages; `known` is false for a seed alone."""

    facts: TaskFacts = field(default_factory=TaskFacts)
    prompt: str = ""
    known: bool = True


def asked_task(fields: Mapping[str, object], *, task_id: object, tier: str, prompt: str) -> AskedTask:
    """Return the task that a row names. `fields` are the row's own; `task_id` is empty if the row gives none.

    A row that gives a `task_id` and a task object with another id names two tasks: no server can play both.
    """
    facts = TaskFacts()
    for name in sorted(ROW_TEXTS & fields.keys()):
        facts |= _task(name, fields[name])
    explicit = fields.get("task_id") not in (None, "")
    ids = facts.ids | {frozenset({_id(task_id)})} if _id(task_id) and (explicit or not facts.ids) else facts.ids
    tiers = frozenset({_words(tier)}) if tier else facts.tiers
    return AskedTask(TaskFacts(ids, facts.texts, tiers, facts.text), prompt)


def reported_task(*said: Mapping[str, object]) -> TaskFacts:
    """Return the task that these observations, infos and states report."""
    facts = TaskFacts()
    for fields in said:
        facts |= _facts(fields, DEEPEST)
    return facts


def compare_tasks(asked: AskedTask, said: TaskFacts) -> TaskConfirmation:
    """Compare the requested task with the reported one. One contradiction (another id, another text, another of the
    well-known tiers) is a mismatch. The task is confirmed by its texts, or by its id if no text of the server says
    otherwise. Everything else is unconfirmed.
    """
    if not asked.known:
        return TaskConfirmation.SEED
    facts = asked.facts
    ids = [bool(mine & theirs) for mine in facts.ids for theirs in said.ids]
    texts = [_in_row(text, asked) for text in said.texts]
    known = facts.tiers & set(TIERS), said.tiers & set(TIERS)
    other_tier = all(known) and known[0] != known[1]
    if not all(ids) or other_tier or (facts.texts and texts and not any(texts)):
        return TaskConfirmation.MISMATCH
    if texts and (facts.texts or asked.prompt):
        return TaskConfirmation.CONFIRMED if all(texts) else TaskConfirmation.UNCONFIRMED
    return TaskConfirmation.CONFIRMED if ids else TaskConfirmation.UNCONFIRMED


def _in_row(text: str, asked: AskedTask) -> bool:
    names = {_words(name) for name in asked.facts.names}
    return text in asked.facts.texts or text in names or text in _blocks(asked.prompt)


def _blocks(prompt: str) -> set[str]:
    """The lines and paragraphs of a prompt in normal form, each with and without a label such as `TASK:`."""
    blocks = [prompt, *prompt.splitlines(), *re.split(r"\n\s*\n", prompt)]
    return {_words(text) for block in blocks for text in (block, LABEL.sub("", block.strip()))}


def _facts(fields: Mapping[str, object], depth: int) -> TaskFacts:
    """Only the usual names are read, so that an id or a text of something else, or of another task in a list, is not
    taken for the task's."""
    facts = _own(fields, TASK_ID)
    for name, value in fields.items():
        if name.lower() in TEXTS:
            facts |= _task(name.lower(), value)
        elif name.lower() in CONTAINERS and isinstance(value, Mapping) and depth:
            facts |= _facts(value, depth - 1)
    return facts


def _task(name: str, value: object) -> TaskFacts:
    """A task under this name: a text, an object, or an id."""
    if isinstance(value, str):
        return TaskFacts(texts=frozenset({_words(value)} - {""}), text=value.strip())
    if isinstance(value, Mapping):
        text = next((text for key in TASK_TEXT if isinstance(text := value.get(key), str) and text.strip()), "")
        return _own(value, OBJECT_ID) | TaskFacts(texts=frozenset({_words(text)} - {""}), text=text.strip())
    found = _id(value) if name in OBJECTS else ""
    return TaskFacts(ids=frozenset({frozenset({found})})) if found else TaskFacts()


def _own(fields: Mapping[str, object], id_names: frozenset[str]) -> TaskFacts:
    """The id and the tier that these fields give themselves."""
    ids = frozenset(found for name, value in fields.items() if name.lower() in id_names and (found := _id(value)))
    return TaskFacts(frozenset({ids} - {frozenset()}), tiers=frozenset(_tiers(fields)))


def _tiers(fields: Mapping[str, object]) -> Iterator[str]:
    return (
        _words(str(fields[name])) for name in TIER if isinstance(fields.get(name), str | int) and fields[name] != ""
    )


def _id(value: object) -> str:
    """An id as text: `3`, `3.0` and `"3"` are the same one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _words(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
