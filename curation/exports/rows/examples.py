"""Examples: the training content of an approved turn or session, the same for all formats."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from curation.exports.formats.row import Preference, Source, TrainingExample
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.messages import (
    BadHistory,
    ExportedMessage,
    Tool,
    answer_message,
    are_plain,
    conversation,
    trained_turns,
)
from curation.exports.rows.queries import DuelTexts
from curation.exports.rows.session import Rival, SessionTexts, preference
from curation.exports.rows.skip_reasons import SkipReason, pair_reason
from curation.review.decisions.outcome import SampleOutcome
from curation.review.models import Pick
from curation.samples.texts import AnsweredSide
from curation.web.text.storable import read_column
from judging.messages import add_call_ids, calls_text, split_calls, tool_names, without_calls

_DRAW = Pick.DRAW.value
NO_VALUES: Mapping[int, float] = MappingProxyType({})


class RejectedAnswer(NamedTuple):
    sample_id: int
    text: str
    message: ExportedMessage


def rejected_answer(sample_id: int, texts: DuelTexts, outcome: SampleOutcome, recipe: Recipe) -> RejectedAnswer:
    """Raises `BadHistory`."""
    tools = cast(list[Tool], read_column(texts.tools)) if texts.tools != "[]" else []
    text = outcome.chosen_text
    return RejectedAnswer(sample_id, text, _Answers(texts, tools, recipe.reasoning == "keep").message(text))


def turn_example(
    texts: DuelTexts,
    outcome: SampleOutcome,
    recipe: Recipe,
    *,
    pairs: bool,
    rivals: Sequence[RejectedAnswer] = (),
    rejected: bool = False,
) -> TrainingExample:
    """Return the turn with its answer, which a person approved, or `rejected`, and with `pairs` its preferences.
    `rivals` are the rejected answers to its prompt. Raises `BadHistory`, or `orjson.JSONEncodeError`."""
    keep = recipe.reasoning == "keep"
    history = conversation(texts.history, reasoning=keep)
    tools = cast(list[Tool], read_column(texts.tools)) if texts.tools != "[]" else []
    answers = _Answers(texts, tools, keep)
    chosen = answers.message(outcome.chosen_text)
    messages = [*history, chosen]
    others: list[Preference | SkipReason] = []
    if pairs and not rejected:
        others = [
            found
            if isinstance(found, SkipReason)
            else pair_reason(outcome.chosen_text, found[1])
            or Preference(found[0], history, [chosen], [answers.message(found[1])])
            for found in _rejected(outcome, recipe.sources, alone=not rivals)
        ]
        others += [
            pair_reason(outcome.chosen_text, rival.text)
            or Preference("decisions", history, [chosen], [rival.message], against=str(rival.sample_id))
            for rival in rivals
        ]
    sides = [chosen, *(other.rejected[0] for other in others if isinstance(other, Preference))]
    plain = not tools and are_plain(history) and are_plain(sides)
    if not plain:
        add_call_ids(cast(list[dict[str, Any]], messages))
        for other in others:
            if isinstance(other, Preference):
                add_call_ids(cast(list[dict[str, Any]], [*history, *other.rejected]))
    if rejected:
        return TrainingExample("decisions", messages, [len(messages) - 1], (), tools, plain, rejected=True)
    marked = () if history is texts.history else trained_turns(texts.history)
    learned = (*marked, len(messages) - 1)
    return TrainingExample("duels", messages, learned, others, tools, plain)


def session_example(
    session: SessionTexts,
    rivals: Sequence[Rival],
    recipe: Recipe,
    *,
    rejected: bool = False,
    values: Mapping[int, float] = NO_VALUES,
) -> TrainingExample:
    """Return a session up to its last approved message. A person approved, or `rejected`, all of the agent's own steps
    that are not marked. `values` of steps label those that no person labelled. Raises `BadHistory`."""
    approved = session.approved()
    if not approved:
        raise BadHistory(SkipReason.NO_ANSWER)
    pairs: list[Preference | SkipReason] = []
    if recipe.wants_pairs() and not rejected:
        pairs = [preference(session, rival) for rival in rivals] or [SkipReason.NO_PAIR]
    tools = cast(list[Tool], session.recorded.tools)
    messages = session.messages[: approved[-1] + 1]
    sides = [session, *(rival.side for rival in rivals if isinstance(rival.side, SessionTexts))]
    plain = not tools and all(are_plain(side.messages) for side in sides)
    source: Source = "decisions" if rejected else "scenarios"
    labels, tokens = session.labels(values), session.tokens()
    return TrainingExample(source, messages, approved, pairs, tools, plain, rejected, labels, tokens=tokens)


def _rejected(
    outcome: SampleOutcome, sources: Sequence[Source], *, alone: bool
) -> Iterator[tuple[Source, str] | SkipReason]:
    """`alone`: the prompt has no rejected answer either."""
    if "duels" in sources:
        if outcome.pick == _DRAW:
            yield SkipReason.DRAW
        elif outcome.rejected_text is None:
            if alone:
                yield SkipReason.NO_OPPONENT
        else:
            yield "duels", outcome.rejected_text
    if "revisions" in sources and outcome.replaced_text is not None:
        yield "revisions", outcome.replaced_text


class _Answers:
    """The answers of a duel as messages. A person's revision is text: its calls are read from the lines below it, if
    there are tools or the answers called some."""

    def __init__(self, texts: DuelTexts, tools: Sequence[Tool], reasoning: bool) -> None:
        self._sides = [texts.challenger] if texts.king is None else [texts.challenger, texts.king]
        self._tools, self._reasoning = tools, reasoning

    def message(self, text: str) -> ExportedMessage:
        for side in self._sides:
            if side.text == text:
                return self._recorded(text, side)
        return self._revision(text)

    def _recorded(self, text: str, side: AnsweredSide) -> ExportedMessage:
        reasoning = side.reasoning if self._reasoning else ""
        if not side.tool_calls:
            return answer_message(text, (), reasoning)
        if not text.endswith(calls_text(side.tool_calls)):
            # People approve the text, so calls that it does not show never leave.
            raise BadHistory(SkipReason.NOT_AS_APPROVED)
        return answer_message(without_calls(text, side.tool_calls), side.tool_calls, reasoning)

    def _revision(self, text: str) -> ExportedMessage:
        names = tool_names(self._tools, [side.tool_calls for side in self._sides])
        if not names:
            return answer_message(text, [], "")
        content, calls = split_calls(text, names)
        return answer_message(content, calls, "")
