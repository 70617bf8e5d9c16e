"""Stage `embed`: the embeddings of all tasks of held-out rows and of training data, to find paraphrases."""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from curation.llm.client.completion import CompletionRequest, EndpointTarget
from curation.runs.calls.targets import run_target
from curation.runs.kinds import MOST_OPEN_CALLS, LlmContext, PlannedItem, Write
from curation.runs.models import CallText, Item, ItemState, Run
from judging.contamination.find import LONGEST_TASK
from judging.contamination.normalise import task_of

# Texts of one call, and tasks of either side that are embedded.
TOGETHER, MOST_TASKS = 32, 20_000
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Paraphrases:
    """`of` names for each task of `EmbeddedTasks.others` those of `EmbeddedTasks.searched` that are close to it.
    `missing` tasks of either have no embedding: their call failed, or they are beyond the limit."""

    of: Mapping[str, frozenset[str]]
    embedded: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True)
class EmbeddedTasks:
    """The tasks among which paraphrases of the `others` are searched. `beyond` are more than can be embedded."""

    searched: frozenset[str]
    others: frozenset[str]
    beyond: int

    @classmethod
    def of(cls, searched: Iterable[str], others: Iterable[str]) -> "EmbeddedTasks":
        """Read the first messages of users; each has its task first."""
        (own, more), (theirs, rest) = _first(searched), _first(others)
        return cls(own, theirs, more + rest)


class EmbedStage:
    name = "embed"
    queue = "llm"
    most_open = MOST_OPEN_CALLS
    # `vectors_of` does, also after the run was resumed.
    reads_texts = True

    def __init__(self, endpoint: str, tasks: Callable[[Run], EmbeddedTasks]) -> None:
        self._endpoint, self._tasks = endpoint, tasks

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        return [run_target(run, self._endpoint)]

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        tasks = self._tasks(run)
        for number, texts in enumerate(_chunks(sorted(tasks.searched | tasks.others))):
            yield PlannedItem(str(number), data={"texts": texts})

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, EndpointTarget]:
        (target,) = self.targets(run)
        return dict.fromkeys((item.pk for item in items), target)

    async def work(self, context: LlmContext, item: Item, target: EndpointTarget) -> Write:
        request = CompletionRequest([{"role": "user", "content": text} for text in item.data["texts"]], embed=True)
        answer = await context.ask(item, target, request)
        return lambda: {"call": answer.call_id}


def paraphrases(run: Run, tasks: EmbeddedTasks) -> Paraphrases:
    """Return the pairs of tasks whose embeddings have a cosine of `evaluation.paraphrase_from` or more."""
    vectors, closest = vectors_of(run), run.settings.evaluation.paraphrase_from
    own, theirs = (sorted(found & vectors.keys()) for found in (tasks.searched, tasks.others))
    missing = len((tasks.searched | tasks.others) - vectors.keys()) + tasks.beyond
    if not own or not theirs:
        return Paraphrases({}, len(vectors), missing)
    ours = np.stack([vectors[task] for task in own])
    found: dict[str, frozenset[str]] = {}
    for task in theirs:
        if close := np.flatnonzero(ours @ vectors[task] >= closest).tolist():
            found[task] = frozenset(own[number] for number in close)
    return Paraphrases(found, len(vectors), missing)


def _first(openings: Iterable[str]) -> tuple[frozenset[str], int]:
    tasks = dict.fromkeys(task_of(opening)[:LONGEST_TASK] for opening in openings)
    tasks.pop("", None)
    return frozenset(islice(tasks, MOST_TASKS)), max(0, len(tasks) - MOST_TASKS)


def vectors_of(run: Run) -> dict[str, Vectors]:
    """Return the unit vector of each task that was embedded."""
    items = run.items.filter(stage=EmbedStage.name, state=ItemState.DONE)
    calls = {int(item.result["call"]): item.data["texts"] for item in items}
    return {
        task: _unit(line)
        for found in CallText.objects.filter(call__in=list(calls))
        for task, line in zip(calls[found.call_id], found.text.splitlines(), strict=True)
    }


def _unit(line: str) -> Vectors:
    vector = np.frombuffer(base64.b64decode(line), dtype="<f2").astype(np.float32)
    length = max(float(np.linalg.norm(vector)), 1e-9)
    unit: Vectors = vector / np.float32(length)
    return unit


def _chunks(texts: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), TOGETHER):
        yield list(texts[start : start + TOGETHER])
