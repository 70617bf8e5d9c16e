"""Find the two models to compare, and pair their results on the same rows or tasks."""

from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from curation.evaluations.models import (
    AnswerMark,
    Episode,
    EvaluatedModel,
    Evaluation,
    EvaluationKind,
    ScreenedAnswer,
    SplitRow,
    SplitRowText,
    TaskPlayed,
)
from curation.exports.hygiene.held_out import read_messages
from curation.projects.models import Project
from curation.web.ids import find
from curation.web.problems import FieldError, Invalid
from judging.commands.screen import FLAGS
from judging.statistics.bounds import choose_clusters

EPISODE_COUNTS = ("completed", "steps", "hinted", "format_failures", "invalid_actions")


@dataclass(frozen=True, slots=True)
class ComparedResult:
    """One model's answer or episode: `mark` for programs, `label` for people, `values` by metric. `failed`: the call
    failed, and the answer is empty, or no verdict is known."""

    pk: int
    mark: str
    label: str
    values: Mapping[str, float]
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """The results of a row of a split (`row` is its id) or of a task of live episodes. `number` counts from 1."""

    before: ComparedResult
    after: ComparedResult
    number: int
    task: str
    tier: str
    source: str
    preview: str
    row: int | None = None
    repo: str = ""

    @property
    def failed(self) -> bool:
        return self.before.failed or self.after.failed


def paired(before: EvaluatedModel, after: EvaluatedModel) -> tuple[list[ComparedPair], int]:
    """The pairs in order, and how many results have no partner. Raises `Invalid` without a pair."""
    if before.evaluation.kind != after.evaluation.kind:
        raise Invalid("A static screen cannot be compared with live episodes.")
    if before.evaluation.kind == EvaluationKind.LIVE:
        pairs, unpaired = _episodes(before, after)
    else:
        pairs, unpaired = _rows(before, after)
    if not pairs:
        raise Invalid("The two models have no row or task in common.", code="nothing_in_common")
    return pairs, unpaired


def _rows(before: EvaluatedModel, after: EvaluatedModel) -> tuple[list[ComparedPair], int]:
    old, new = _screened(before), _screened(after)
    rows = SplitRow.objects.in_bulk(list(old))
    if before.evaluation.split_id == after.evaluation.split_id:
        partner = {row_id: new[row_id] for row_id in old if row_id in new}
    else:
        partner = _same_texts(old, new)
    pairs = [_pair(rows[row_id], old[row_id], found) for row_id, found in partner.items()]
    pairs.sort(key=lambda pair: (pair.number, pair.row))
    return pairs, len(old) + len(new) - 2 * len(pairs)


def _screened(model: EvaluatedModel) -> dict[int, ComparedResult]:
    """By row."""
    rows = ScreenedAnswer.objects.filter(by=model).order_by("row_id")
    found = {}
    for pk, row_id, mark, failed, latency, length, *flags in rows.values_list(
        "pk", "row_id", "mark", "failed", "latency_ms", "length", *FLAGS
    ):
        values = {name: float(flag) for name, flag in zip(FLAGS, flags, strict=True)}
        values |= {"lat": latency / 1000, "len": float(length)}
        found[row_id] = ComparedResult(pk, mark, AnswerMark(mark).label, values, failed)
    return found


def _same_texts(old: Mapping[int, ComparedResult], new: Mapping[int, ComparedResult]) -> dict[int, ComparedResult]:
    """Rows of two splits are the same if prompt and expected answer are equal; of equal ones the first is paired with
    the first, so that no result is counted twice."""
    texts = SplitRowText.objects.in_bulk([*old, *new])
    keys = {pk: (tuple(read_messages(text.messages)), text.expected) for pk, text in texts.items()}
    waiting: dict[object, deque[ComparedResult]] = defaultdict(deque)
    for row_id, result in new.items():
        waiting[keys[row_id]].append(result)
    return {row_id: same.popleft() for row_id in old if (same := waiting[keys[row_id]])}


def _pair(row: SplitRow, before: ComparedResult, after: ComparedResult) -> ComparedPair:
    return ComparedPair(before, after, row.number + 1, row.task, row.tier, row.source, row.preview, row.pk, row.repo)


def _episodes(before: EvaluatedModel, after: EvaluatedModel) -> tuple[list[ComparedPair], int]:
    """Episodes of two evaluations are paired if task and repeat are equal, and the server did not say that it played
    two different tasks."""
    old, new = _played(before), _played(after)
    told = before.evaluation.reported & after.evaluation.reported
    same_split = before.evaluation.split_id is not None and before.evaluation.split_id == after.evaluation.split_id
    shared = [place for place in old if place in new and _same_task(old[place], new[place], same_split)]
    pairs = [
        ComparedPair(
            _result(old[key, repeat], told),
            _result(new[key, repeat], told),
            number,
            key,
            old[key, repeat].tier,
            "",
            key,
        )
        for number, (key, repeat) in enumerate(shared, 1)
    ]
    return pairs, len(old) + len(new) - 2 * len(pairs)


def _played(model: EvaluatedModel) -> dict[tuple[str, int], Episode]:
    episodes = Episode.objects.filter(by=model).order_by("number", "pk")
    return {(episode.key, episode.repeat): episode for episode in episodes}


def _same_task(old: Episode, new: Episode, same_split: bool) -> bool:
    if same_split and old.played == new.played == TaskPlayed.CONFIRMED:
        return True
    return not (old.played_key and new.played_key) or old.played_key == new.played_key


def _result(episode: Episode, told: Collection[str]) -> ComparedResult:
    """`told` are the rewards and progress that the environment reports. An episode without them has earned nothing.
    One without a verdict makes no two models equivalent."""
    mark, label = ("completed", "completed") if episode.completed else ("missed", "not completed")
    label = label if episode.judged else "not judged"
    values = {name: float(getattr(episode, name)) for name in EPISODE_COUNTS}
    values |= {name: float(getattr(episode, name) or 0.0) for name in told}
    if "max_progress" in told:
        values["max_progress"] = max(values["max_progress"], values["completed"])
    values["completed_steps"] = values["completed"] * values["steps"]
    values["completed_without_hint"] = float(episode.completed and not episode.hinted)
    return ComparedResult(episode.pk, mark, label, values, failed=not episode.judged)


def tasks_of(pairs: Sequence[ComparedPair]) -> list[str]:
    """The group of each pair that is drawn together: its repository if there are ten of them, else its task."""
    tasks = [pair.task for pair in pairs]
    clusters = choose_clusters([pair.repo for pair in pairs], tasks)
    return [str(number) for number in clusters.numbers] if clusters.by == "repo" else tasks


def model_of(evaluation: Evaluation, name: str | None, *, fallback: str = "", path: str = "model") -> EvaluatedModel:
    """The named model, else the only one, else `fallback`. `Invalid` lists the models that exist."""
    models = {model.name: model for model in evaluation.models.select_related("evaluation").all()}
    wanted = name or (next(iter(models)) if len(models) == 1 else fallback)
    if wanted not in models:
        reason = f"has no model {wanted!r}" if wanted else f"has {len(models)} models, so name one in `{path}`"
        raise Invalid(
            f"Evaluation {evaluation.pk} {reason}; there are {', '.join(models)}.",
            errors=[FieldError(path, f"one of {', '.join(models)}")],
        )
    return models[wanted]


def models_to_compare(
    project: Project, before: str, after: str, *, model_before: str | None = None, model_after: str | None = None
) -> tuple[EvaluatedModel, EvaluatedModel]:
    """The two models by the ids of their evaluations, which can be the same evaluation."""
    rows = Evaluation.objects.of(project)
    one, other = find(rows, before, "evaluation"), find(rows, after, "evaluation")
    first = model_of(one, model_before, fallback=model_after or _shared(one, other), path="model_before")
    second = model_of(other, model_after, fallback=first.name if one.pk != other.pk else "", path="model_after")
    if first.pk == second.pk:
        raise Invalid.at("model_after", "A model cannot be compared with itself; name another one in `model_after`.")
    return first, second


def _shared(one: Evaluation, other: Evaluation) -> str:
    """The name of the only model that both have."""
    if one.pk == other.pk:
        return ""
    shared = {model.name for model in one.models.all()} & {model.name for model in other.models.all()}
    return shared.pop() if len(shared) == 1 else ""
