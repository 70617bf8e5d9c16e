"""Stage `embed`: the embeddings of all tasks of a split and of its training data, to find paraphrases."""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from curation.evaluations.contamination.training import CheckParams, rows_of_split, training_data
from curation.evaluations.models import ContaminationCheck
from curation.llm.client.completion import Request, Target
from curation.runs.calls.targets import run_target
from curation.runs.kinds import MOST_OPEN_CALLS, LlmContext, PlannedItem, Write
from curation.runs.models import CallText, Item, ItemState, Run
from judging.contamination.normalise import task_of

# Texts of one call, characters of a text, and tasks of the training data that are embedded.
TOGETHER, LONGEST, MOST_TASKS = 32, 2_000, 20_000
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbedJob:
    target: Target
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Paraphrases:
    """`of` names for each training task the tasks of the split that are close to it. `missing` tasks of either have no
    embedding: their call failed, or they are beyond the limit."""

    of: Mapping[str, frozenset[str]]
    embedded: int
    missing: int


class EmbedStage:
    name = "embed"
    queue = "llm"
    most_open = MOST_OPEN_CALLS

    def __init__(self, params: CheckParams) -> None:
        self._params = params

    def targets(self, run: Run) -> Sequence[Target]:
        return [run_target(run, self._params.embedding)]

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        split_tasks, training_tasks, _ = tasks_of(run, self._params)
        for number, texts in enumerate(_chunks(sorted(split_tasks | training_tasks))):
            yield PlannedItem(str(number), data={"texts": texts})

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, EmbedJob]:
        (target,) = self.targets(run)
        return {item.pk: EmbedJob(target, item.data["texts"]) for item in items}

    async def work(self, context: LlmContext, item: Item, job: EmbedJob) -> Write:
        request = Request([{"role": "user", "content": text} for text in job.texts], embed=True)
        answer = await context.ask(item, job.target, request)
        return lambda: {"call": answer.call_id}


def tasks_of(run: Run, params: CheckParams) -> tuple[set[str], set[str], int]:
    """Return the tasks of the split, the first of the training data, and how many more it has."""
    check = ContaminationCheck.objects.select_related("split").get(run=run)
    own = {task_of(row.opening)[:LONGEST] for row in rows_of_split(check.split)} - {""}
    with closing(training_data(run.project, params).rows()) as rows:
        theirs = dict.fromkeys(task_of(row.opening)[:LONGEST] for row in rows)
    theirs.pop("", None)
    return own, set(islice(theirs, MOST_TASKS)), max(0, len(theirs) - MOST_TASKS)


def paraphrases(run: Run, params: CheckParams, *, closest: float) -> Paraphrases:
    """Return the pairs of tasks whose embeddings have a cosine of at least `closest`."""
    own, theirs, beyond = tasks_of(run, params)
    vectors = _vectors(run)
    split_tasks, training_tasks = (sorted(tasks & vectors.keys()) for tasks in (own, theirs))
    missing = len((own | theirs) - vectors.keys()) + beyond
    if not split_tasks or not training_tasks:
        return Paraphrases({}, len(vectors), missing)
    ours = np.stack([vectors[task] for task in split_tasks])
    found: dict[str, frozenset[str]] = {}
    for task in training_tasks:
        if close := np.flatnonzero(ours @ vectors[task] >= closest).tolist():
            found[task] = frozenset(split_tasks[number] for number in close)
    return Paraphrases(found, len(vectors), missing)


def _vectors(run: Run) -> dict[str, Vectors]:
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
