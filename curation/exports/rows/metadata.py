"""The columns of rows with `metadata: true`: those of all projects, and those of a project's own questions."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from curation.exports.formats.row import Column, Columns
from curation.exports.rows.queries import ExportedRollout
from curation.exports.rows.skip_reasons import FrozenSample
from curation.labels.models import Label, Question, QuestionKind
from curation.projects.models import Project
from curation.samples.models import UNSCORED
from curation.trajectories.imported.save import main_reward
from curation.trajectories.models import RECORDED
from curation.web.ids import IdList

# Of an axis with a reward of an imported row.
REWARD = "reward."
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
# Beside these, a row has the columns of the project's questions (`LabelColumns`).
METADATA: Columns = {
    **dict.fromkeys(("id", "source", "instance_id", "scenario", "repo", "tier", "task", *RECORDED), "string"),
    "score": "float64",
    "bucket": "string",
    "reviewers": ["string"],
    "guarantee": "string",
    "run": "string",
    "outcome": "string",
    "reward": "float64",
    "rewards": "json",
    "metadata": "json",
}

# A rating that nobody gave: a column of nulls has no type.
UNRATED = -1
_SPAN: Column = {"field": "string", "revision": "string", "start": "int64", "end": "int64", "label": "string"}
_TYPES: Mapping[str, Column] = {
    QuestionKind.LABEL: "string",
    QuestionKind.MULTI_LABEL: ["string"],
    QuestionKind.RATING: "int64",
    QuestionKind.SPAN: [_SPAN],
    QuestionKind.TEXT: "string",
}
Given = Mapping[tuple[int, int], Sequence[tuple[str, object]]]


def metadata_of(
    sample: FrozenSample,
    reviewers: Sequence[str],
    rollout: ExportedRollout | None,
    kept: Mapping[str, str],
    guarantee: int | None,
) -> dict[str, object]:
    """Return the columns of `metadata: true`. `kept` are the axes of the sample: the outcome, the rewards and the
    metadata of an imported row among them. `guarantee` is the one that approved the sample. Text that does not apply is
    empty and a missing score is -1, because a column of nulls has no type."""
    axes = rollout.labels if rollout is not None else {}
    rewards = {name.removeprefix(REWARD): float(value) for name, value in kept.items() if _is_reward(name, value)}
    others = {name: value for name, value in kept.items() if name != "outcome" and not _is_reward(name, value)}
    return {
        "id": str(sample.sample_id),
        "source": sample.source,
        "instance_id": sample.instance_id if rollout is None or rollout.is_imported else "",
        "scenario": "" if rollout is None or rollout.is_imported else sample.instance_id,
        "repo": sample.repo,
        "tier": str(axes.get("tier", axes.get("difficulty", ""))),
        "task": "" if rollout is None else rollout.task,
        **{name: str(axes.get(name, "")) for name in RECORDED},
        "score": UNSCORED if sample.score is None else float(sample.score),
        "bucket": sample.bucket,
        "reviewers": list(reviewers),
        "guarantee": "" if guarantee is None else str(guarantee),
        "run": "" if sample.run_id is None else str(sample.run_id),
        "outcome": kept.get("outcome", "") if rollout is None else rollout.outcome,
        "reward": main_reward(rewards) if rollout is None else rollout.reward,
        "rewards": rewards if rollout is None else rollout.rewards,
        "metadata": others if rollout is None else {**others, **rollout.metadata},
    }


def _is_reward(name: str, value: str) -> bool:
    return name.startswith(REWARD) and _NUMBER.fullmatch(value) is not None


class LabelColumns:
    """One column `label_<name>` per question that was asked at a moment: every row of the export has the same ones,
    and an attempt that begins again reads the same answers."""

    def __init__(self, project: Project, at: datetime | None = None) -> None:
        self._at = at or timezone.now()
        asked = Q(archived_at=None) | Q(archived_at__gt=self._at)
        self._questions = list(Question.objects.filter(asked, project=project, created_at__lte=self._at).order_by("id"))

    def types(self) -> Columns:
        return {_column(question): _TYPES[question.kind] for question in self._questions}

    def read(self, sample_ids: Sequence[int]) -> Given:
        """The last answer of each person, by sample and question, the newest last. No query without questions."""
        if not self._questions or not sample_ids:
            return {}
        rows = Label.objects.filter(
            sample_id__in=IdList(sample_ids), question__in=self._questions, created_at__lte=self._at, undone=False
        )
        found: dict[tuple[int, int], dict[str, object]] = {}
        for sample, question, author, value in rows.order_by("id").values_list(
            "sample_id", "question_id", "author__username", "value"
        ):
            given = found.setdefault((sample, question), {})
            given.pop(author, None)
            if value is not None:
                given[author] = value
        return {key: list(given.items()) for key, given in found.items()}

    def values(self, sample_id: int, given: Given, reviewers: Sequence[str]) -> dict[str, object]:
        """The columns of one sample: the answer of the person who approved it, else the newest of another person."""
        columns = {}
        for question in self._questions:
            answers = given.get((sample_id, question.pk), ())
            newest = answers[-1][1] if answers else None
            value = next((value for author, value in answers if author in reviewers), newest)
            columns[_column(question)] = _empty(question) if value is None else _written(question, value)
        return columns


def _column(question: Question) -> str:
    return f"label_{question.name}"


def _empty(question: Question) -> object:
    if question.kind == QuestionKind.RATING:
        return UNRATED
    return [] if question.kind in (QuestionKind.MULTI_LABEL, QuestionKind.SPAN) else ""


def _written(question: Question, value: object) -> object:
    """A span of the text as recorded has an empty `revision`."""
    if question.kind != QuestionKind.SPAN or not isinstance(value, list):
        return value
    return [{**span, "revision": span["revision"] or ""} for span in value]
