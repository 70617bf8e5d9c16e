"""The training content of a session: a history with tools, an answer, and where there is one the answer that it was
preferred to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Literal

import orjson

from curation.imports.layouts.account import EMPTY, IGNORED, Account
from curation.imports.layouts.messages.calls import with_tools
from curation.imports.layouts.messages.write import messages_of, write_messages
from curation.imports.layouts.rows.mapping import RowMapping
from curation.imports.layouts.rows.read import DUELS, OWN, PROMPTS, TASKS, read_row, trained_positions
from curation.imports.layouts.session import AgentSession, Continuation, Json, SessionOutcome, Step, repo_of
from curation.imports.sources.rows import RowRefused
from curation.review.models import Action
from judging.messages import Message
from judging.panel.rubric import MOST_DIMENSIONS, in_order

Trained = Literal["marked", "all"]
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class TrainingContent:
    """The training content of one row. `reference` is the source's own turn, unless that is the answer. `label` is that
    of a KTO row. `tail` is the number of messages after the answer."""

    layout: str
    history: list[Message]
    answer: Message | None
    other: Message | None = None
    reference: Message | None = None
    label: bool | None = None
    tail: int = 0


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """A row as it is written. `decision` is the one that it carries, or empty; `reviewers` are the names in its
    metadata. `score` is 0–100 or None, and `reason` the sentence that came with it. `file` names its file in an
    archive, without its ending."""

    offset: int
    content: TrainingContent
    tools: list[Json]
    instance_id: str
    repo: str
    source: str
    decision: str
    reviewers: tuple[str, ...]
    score: float | None
    metrics: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    file: str = ""
    axes: dict[str, str] = field(default_factory=dict)
    account: Account = field(default_factory=Account)


def read_imported_row(
    offset: int,
    row: Mapping[str, Any],
    trained: Trained,
    file: str = "",
    mapping: RowMapping | None = None,
    tools: Sequence[Json] = (),
) -> ImportedRow:
    """Return the training content of the row, with `tools` if it has none. Raises `RowRefused` with the reason."""
    session, account = read_row(row, mapping)
    session = with_tools(session, tools, account)
    is_own = row.keys() >= OWN
    is_duel = session.layout == DUELS
    metadata = session.metadata
    scenario = str(metadata.get("scenario") or "") if is_own else ""
    # All messages of a session of ours were approved, and formats without marks do not say so.
    content = _content(session, "all" if scenario else trained)
    if not content.history:
        raise RowRefused("nothing comes before the answer")
    if content.tail:
        account.count("messages after the answer", IGNORED)
    if len(session.endings) > len({ending.side for ending in session.endings}):
        account.count("(other answers)", "ignored: a sample has the first answer of each side")
    reviewers = _names(metadata.get("reviewers", [])) if is_own else ()
    instance_id = session.origin.instance_id or scenario
    return ImportedRow(
        offset=offset,
        content=content,
        tools=session.tools,
        instance_id=instance_id,
        repo=session.origin.repo or repo_of(instance_id),
        source=str(metadata.get("source") or "")[:LONGEST_NAME] if is_own else "",
        decision=_decision(content, reviewers),
        reviewers=reviewers,
        score=read_score(metadata.get("score")) if is_own or is_duel else None,
        metrics=read_metrics(metadata) if is_duel else {},
        reason=read_reason(metadata) if is_duel else "",
        file=PurePosixPath(file).stem if is_duel else "",
        axes=_axes(session),
        account=account,
    )


def _axes(session: AgentSession) -> dict[str, str]:
    """Return the outcome, rewards, model, agent, task and metadata of a row, by which its sample is found."""
    verdict, agent = session.verdict, session.agent
    found: dict[str, object] = {
        "outcome": "" if verdict.outcome is SessionOutcome.UNKNOWN else verdict.outcome,
        **{f"reward.{name}": f"{value:g}" for name, value in verdict.rewards.items()},
        "exception": verdict.exception,
        "model": agent.get("model_name"),
        "agent": agent.get("name"),
        "task": session.origin.task,
        **session.metadata,
    }
    return {name[:LONGEST_NAME]: str(value)[:LONGEST_NAME] for name, value in found.items() if value not in EMPTY}


def _decision(content: TrainingContent, reviewers: tuple[str, ...]) -> str:
    """A reviewer's name, a label and a preference are decisions; an answer alone is none."""
    if content.label is False:
        return Action.REJECT.value
    return Action.APPROVE.value if reviewers or content.label or (content.other and not content.reference) else ""


def _content(session: AgentSession, trained: Trained) -> TrainingContent:
    if session.layout in (TASKS, PROMPTS):
        raise RowRefused("a task or a text without messages is no sample: map its columns to `prompt` and `completion`")
    sides = {ending.side: ending for ending in reversed(session.endings)}
    history = write_messages(session.steps)
    if session.layout == DUELS:
        if "source" not in sides:
            raise RowRefused("assistant, the source's own turn, is empty")
        if "king" not in sides and "challenger" not in sides:
            raise RowRefused("king and challenger are both empty")
        challenger, king, source = (_side(sides.get(side)) for side in ("challenger", "king", "source"))
        return TrainingContent(session.layout, history, challenger, king, source)
    if sides:
        chosen, rejected = (_side(sides.get(side)) for side in ("chosen", "rejected"))
        if chosen is None:
            raise RowRefused("a rejected answer without a chosen one is no sample")
        if chosen == rejected:
            raise RowRefused("chosen and rejected are the same")
        return TrainingContent(session.layout, history, chosen, rejected)
    return _conversation(session, trained)


def _conversation(session: AgentSession, trained: Trained) -> TrainingContent:
    """Return the last answer that is trained on. What comes after it is context of the session, not of the sample."""
    if not session.agent_steps():
        raise RowRefused("the row has no answer of an assistant")
    learned = trained_positions(session, unmarked=trained == "all")
    if not learned:
        raise RowRefused("no answer of the row is trained on")
    last = learned[-1]
    history = write_messages(session.steps[:last], dict.fromkeys(learned, True))
    answer = _answer(session.steps[last], "the row")
    tail = write_messages(session.steps[last:])[1:]
    return TrainingContent(session.layout, history, answer, label=session.label, tail=len(tail))


def _side(ending: Continuation | None) -> Message | None:
    if ending is None:
        return None
    if len(ending.steps) != 1:
        raise RowRefused(f"{ending.side} has {len(ending.steps)} messages: a sample has one answer on a side")
    if ending.steps[0]["source"] != "agent":
        raise RowRefused(f"{ending.side} does not end with an assistant message")
    return _answer(ending.steps[0], ending.side)


def _answer(step: Step, path: str) -> Message:
    if not step["message"] and "tool_calls" not in step:
        raise RowRefused(f"{path} ends with an empty answer")
    return messages_of(step)[0]


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) and len(name) <= LONGEST_NAME for name in value):
        raise RowRefused("reviewers is not a list of names")
    return tuple(value)


def read_score(value: object) -> float | None:
    """Return a score; exports write -1 for a missing one."""
    if value is None or value == -1:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise RowRefused("score is not a number from 0 to 100")
    return float(value)


def read_reason(row: Mapping[str, Any]) -> str:
    """Return the judges' reason as text; some files have one for each judge."""
    given = row.get("reason") or ""
    return given if isinstance(given, str) else orjson.dumps(given).decode()


def read_metrics(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores of the dimensions that judges score, 0–100."""
    value = row.get("metrics")
    given = value if isinstance(value, dict) else {}
    names = in_order(str(name)[:LONGEST_NAME] for name in given)[:MOST_DIMENSIONS]
    return {name: score for name in names if (score := read_score(given.get(name))) is not None}
