"""The rows that the filter reads, as plain columns: building model instances would cost more than everything else."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

from django.db.models import Case, Count, F, Q, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast

from curation.duels.models import Duel, Opponent
from curation.exports.models import SampleSignature
from curation.review.decisions.state import Sessions
from curation.samples.texts import AnsweredSide, reference_answer
from curation.trajectories.models import NEVER_NEGATIVE, Pair, Trajectory
from curation.trajectories.recorded import RecordedTexts
from curation.web.ids import IdList
from curation.web.text.storable import read_column
from judging.messages import Message, ToolCall
from judging.statistics.rates import Attempts

R = TypeVar("R", bound=tuple[object, ...])
# Texts are long, so only a few are in memory at once.
_AT_ONCE = 50


class DuelTexts(NamedTuple):
    """A duel's history, its tools as JSON, the hash of both, its answers and its source row. `king` is the reference
    where the duel has no king, and None where it has no opponent. `answers` are the ids of both answers, `calls` those
    of the calls that made them."""

    history: Sequence[Message]
    tools: str
    sha256: str
    challenger: AnsweredSide
    king: AnsweredSide | None
    source: str
    row_offset: int
    answers: tuple[int, int | None]
    calls: tuple[int | None, int | None]

    @property
    def conversation(self) -> str:
        return f"{self.source}#{self.row_offset}"


def read_duel_texts(sample_ids: Sequence[int], *, kings: bool) -> Iterator[DuelTexts | None]:
    """Yield the texts of each sample, or None for one without a duel. The ids ascend.

    `king` is only read with `kings`.
    """
    columns: list[str | Combinable] = [
        "sample_id",
        "prompt__text__session_id",
        "prompt__text__at",
        "prompt__source",
        "prompt__row_offset",
        *("challenger_id", "king_id", "challenger__call_id", "king__call_id"),
        *_side_columns("challenger"),
    ]
    if kings:
        reference = Case(
            When(king=None, opponent=Opponent.REFERENCE, then=Cast("prompt__text__reference", TextField()))
        )
        columns += [*_side_columns("king"), reference]
    duels = Duel.objects.filter(sample_id__in=IdList(sample_ids), prompt__text__isnull=False).order_by("sample_id")
    sessions = Sessions()
    rows = _one_per_id(duels.values_list(*columns).iterator(chunk_size=_AT_ONCE), sample_ids)
    while part := list(islice(rows, _AT_ONCE)):
        texts = sessions.read([row[1] for row in part if row is not None])
        for row in part:
            if row is None:
                yield None
                continue
            _, session, at, source, offset = row[:5]
            shared, challenger = texts[session], _side(*row[9:12])
            king = _king_or_reference(*row[12:]) if kings else None
            history, sha256 = shared.messages[:at], shared.prompt_sha256(at)
            yield DuelTexts(history, shared.tools, sha256, challenger, king, source, offset, row[5:7], row[7:9])


def _side_columns(side: str) -> list[str | Combinable]:
    return [f"{side}__text__text", f"{side}__text__thinking", Cast(f"{side}__text__tool_calls", TextField())]


def _side(text: str, thinking: str, calls: str) -> AnsweredSide:
    return AnsweredSide(text, thinking, () if calls == "[]" else cast(list[ToolCall], read_column(calls)))


def _king_or_reference(text: str | None, thinking: str, calls: str, reference: str | None) -> AnsweredSide | None:
    if reference is not None:
        return reference_answer(read_column(reference))
    return None if text is None else _side(text, thinking, calls)


def _text_columns(path: str) -> list[Combinable]:
    return [Cast(f"{path}text__{name}", TextField()) for name in RecordedTexts._fields]


def _recorded(*columns: str) -> RecordedTexts:
    return RecordedTexts(*map(_object, columns))


class ExportedRollout(NamedTuple):
    """A trajectory and the current state of its scenario. `axes` are the scenario's, `own_axes` those of the sandbox's
    record. An episode on a server has no scenario but an `environment` and an `own_task`; all axes are its own. An
    imported run has neither scenario nor environment. `metadata` is empty unless it was asked for. `digest` is that of
    the stored texts of `recorded`."""

    sample_id: int
    trajectory_id: int
    scenario_id: int | None
    outcome: str
    keep: bool
    terminal: str
    bundle_sha256: str
    scenario_status: str | None
    scenario_sha256: str | None
    own_task: str
    environment: str
    model: str
    agent: str
    source_id: str
    cost: Decimal | None
    reward: float | None
    axes: dict[str, object]
    own_axes: dict[str, object]
    rewards: dict[str, float]
    metadata: dict[str, object]
    recorded: RecordedTexts
    digest: bytes

    @property
    def is_imported(self) -> bool:
        return self.scenario_id is None and not self.environment

    @property
    def known_reward(self) -> float | None:
        """The reward of an imported run, if it has one; a rollout's and an episode's is whether it was kept."""
        return self.reward if self.is_imported else float(self.keep)

    @property
    def conversation(self) -> str:
        """The scenario or the task, whose trajectories are one group."""
        return conversation_of(self.scenario_id, self.own_task or f"of trajectory {self.trajectory_id}")

    @property
    def labels(self) -> dict[str, object]:
        return {**self.axes, **self.own_axes}

    @property
    def task(self) -> str:
        return str(self.labels.get("task", self.own_task))


def conversation_of(scenario_id: int | None, task: str) -> str:
    return f"task {task}" if scenario_id is None else f"scenario {scenario_id}"


def read_rollouts(sample_ids: Sequence[int], *, metadata: bool = False) -> Iterator[ExportedRollout | None]:
    """Yield the trajectory of each sample, or None if it was deleted. The ids ascend."""
    columns = [
        *("sample_id", "pk", "scenario_id", "outcome", "keep", "terminal", "bundle_sha256", "scenario__status"),
        *("scenario__bundle_sha256", "task", "environment", "model", "agent", "source_id", "cost", "reward"),
    ]
    objects = [Cast(name, TextField()) for name in ("scenario__axes", "axes", "rewards")]
    kept = Cast("text__metadata", TextField()) if metadata else Value("{}")
    found = Trajectory.objects.filter(sample_id__in=IdList(sample_ids), text__isnull=False).order_by("sample_id")
    rows = found.values_list(*columns, *objects, kept, *_text_columns("")).iterator(chunk_size=_AT_ONCE)
    return _one_per_id((_rollout(row) for row in rows), sample_ids)


def _rollout(row: tuple[Any, ...]) -> ExportedRollout:
    texts = row[-3:]
    digest = blake2b("\n".join(texts).encode(), digest_size=16).digest()
    return ExportedRollout._make((*row[:-7], *map(_object, row[-7:-3]), _recorded(*texts), digest))


def approved_sessions(sample_ids: Sequence[int]) -> dict[int, tuple[str, bytes]]:
    """Return the hash that an approval named, and the digest of the stored session that was found to have it."""
    found = SampleSignature.objects.filter(sample_id__in=IdList(sample_ids))
    return {
        pk: (sha256, bytes(stored)) for pk, sha256, stored in found.values_list("sample_id", "text_sha256", "stored")
    }


def _object(column: str | None) -> Any:
    """Read an object, which is empty in most rows."""
    return {} if column is None or column == "{}" else read_column(column)


def _one_per_id(rows: Iterator[R], ids: Sequence[int]) -> Iterator[R | None]:
    """Yield the row of each id, by its first column, or None. Rows and ids ascend."""
    row = next(rows, None)
    for pk in ids:
        if row is None or row[0] != pk:
            yield None
        else:
            yield row
            row = next(rows, None)


class RejectedSide(NamedTuple):
    """The rejected trajectory of a pair, by the sample of the chosen one."""

    sample_id: int
    pair_id: int
    strategy: str
    at: int
    outcome: str
    bundle_sha256: str
    sample_status: str | None
    recorded: RecordedTexts


def read_rejected_sides(pair_ids: Sequence[int]) -> Iterator[RejectedSide]:
    """Yield the rejected sides in the order of sample and pair. Deleted pairs are missing."""
    if not pair_ids:
        return iter(())
    columns = (
        "chosen__sample_id",
        "pk",
        "strategy",
        "at",
        "rejected__outcome",
        "rejected__bundle_sha256",
        "rejected__sample__status",
    )
    pairs = Pair.objects.filter(pk__in=IdList(pair_ids), rejected__text__isnull=False)
    found = pairs.order_by("chosen__sample_id", "pk").values_list(*columns, *_text_columns("rejected__"))
    rows = found.iterator(chunk_size=_AT_ONCE)
    return (RejectedSide._make((*row[:-3], _recorded(*row[-3:]))) for row in rows)


def solve_rates(project: int, sample_ids: Sequence[int], *, before: datetime) -> dict[str, Attempts]:
    """Return the rates of the groups of some samples, over all rollouts that ended before. Those of an earlier bundle
    of a scenario, and those that the machine ended, say nothing; imported runs count with a reward, solved from 1."""
    own = Trajectory.objects.filter(sample__in=IdList(sample_ids))
    ended = Trajectory.objects.filter(project=project, created_at__lt=before).exclude(outcome__in=NEVER_NEGATIVE)
    played = ended.filter(
        scenario__in=own.filter(scenario__isnull=False).values("scenario"), bundle_sha256=F("scenario__bundle_sha256")
    )
    imported = ended.filter(scenario=None, task__in=own.filter(scenario=None).exclude(task="").values("task"))
    solved = {"played": Count("pk"), "right": Count("pk", filter=Q(keep=True))}
    rewarded = {"played": Count("reward"), "right": Count("pk", filter=Q(reward__gte=1))}
    rows: list[Any] = [
        *played.order_by().values("scenario_id", "task").annotate(**solved),
        *imported.filter(environment="").order_by().values("scenario_id", "task").annotate(**rewarded),
        *imported.exclude(environment="").order_by().values("scenario_id", "task").annotate(**solved),
    ]
    found: dict[str, Attempts] = {}
    for row in rows:
        name = conversation_of(row["scenario_id"], row["task"])
        earlier = found.get(name, Attempts(0, 0))
        found[name] = Attempts(earlier.solved + row["right"], earlier.attempts + row["played"])
    return {name: one for name, one in found.items() if one.attempts}
