"""Conversations inside of a row: in the request and the answer of a logged call, or under a name of its own."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, zip_longest
from typing import Any

from curation.imports.layouts.account import EMPTY, IGNORED
from curation.imports.layouts.messages.calls import decoded
from curation.imports.layouts.messages.frameworks import is_event, plain, unwrapped
from curation.imports.layouts.messages.notations import CLOSES, OPENS
from curation.imports.layouts.messages.read import ROLES
from curation.imports.layouts.rows.columns import HISTORIES, SAID, TASK, decoded_messages, is_message
from curation.imports.layouts.rows.mapping import CONVERSATIONS, LONGEST_PATH, AppliedMapping, RowMapping, take_at
from curation.imports.layouts.session import Json
from curation.imports.sources.rows import RowRefused

# Objects with a request: of batches of OpenAI and Anthropic, of proxies, of LangSmith, and of OpenAI's evaluations.
_REQUESTS = ("request", "params", "body", "inputs", "request_body", "sample", "modelInput", "input")
# A log of Bedrock has it one level deeper.
_DEEP = "input"
# Objects with the answer to it.
_ANSWERS = ("response", "result", "outputs", "output", "response_body", "modelOutput", "choices")
_QUESTIONS = ("messages", "contents", "input")
_WHOLE = (*CONVERSATIONS, "contents")
# Rows with one of these columns are known without a list of messages.
_OF_ROWS = frozenset(("prompt", "completion", "completions", "chosen", "rejected", "preferred_output", "king"))
# Where services have the message in an answer, and what they say of the call, by the names of messages.
_INNER = ("body", "message", "output", "outputBodyJson")
_CHOICES = {"choices": "message", "candidates": "content", "generations": "message"}
_FACTS = {
    "usage": "usage",
    "usageMetadata": "usage",
    "model": "model",
    "modelVersion": "model",
    "created": "created",
    "cost": "cost",
}
_DEEPEST = 4
_CHATML = re.compile(r"<\|im_start\|>\s*(\w+)[^\S\n]*\n(.*?)(?:<\|im_end\|>|\Z)", re.DOTALL)
_TEMPLATES = ("[INST]", "<|start_header_id|>", "<start_of_turn>", "<|user|>", "<|im_user|>")
_TEMPLATED = ("text", "input")
# Turns of Glaive's rows, after their words.
_GLAIVE = re.compile(
    r"(USER|ASSISTANT|FUNCTION RESPONSE): (.*?)(?=\n+(?:USER|ASSISTANT|FUNCTION RESPONSE): |\Z)", re.DOTALL
)
# What a step has beside its action.
_OF_ACTS = frozenset(("thought", "observation"))
# Columns with the text of an answer beside messages; others may be what was expected.
_TEXTS = ("completion", "response", "output")


def unfold(applied: AppliedMapping) -> None:
    """Move a conversation that is inside of a row to its column `messages`. Raises `RowRefused` for a row with several,
    and for an answer without its request."""
    row = applied.row
    _read_template(applied)
    answer = _answer_of(row)
    if any(row.get(name) not in EMPTY for name in _WHOLE):
        _complete(applied, answer)
        return
    if not _OF_ROWS.isdisjoint(row):
        return
    request = next((name for name in _REQUESTS if _has_question(row.get(name))), "")
    if request:
        _lift(applied, request, answer)
    elif deep := _question_inside(row.get(_DEEP)):
        row |= {f"{_DEEP}.{name}": value for name, value in row.pop(_DEEP).items()}
        _lift(applied, f"{_DEEP}.{deep}", answer)
    elif acted := next((name for name, value in row.items() if _acts_in(value)), ""):
        _act(applied, acted)
    elif isinstance(row.get("input"), str) and answer == "output":  # of the Responses API
        row["input"] = [{"role": "user", "content": row["input"]}]
    elif isinstance(row.get("input"), list) and answer == "output" and not is_message(row["output"]):
        row["output"] = answers_in(row["output"])
    elif answer and "role" not in row[answer] and not _asks([name for name in row if name != answer], *HISTORIES):
        said = answers_in(row[answer])
        if len(said) == 1:
            raise RowRefused(f"{answer} is an answer without its request: its messages are in another file")
        _move(applied, answer, said)
    else:
        _find(applied)


def _read_template(applied: AppliedMapping) -> None:
    """Read a text in ChatML, or in Glaive's form, as messages. Raises `RowRefused` for the text of another chat
    template."""
    row = applied.row
    for name in _TEMPLATED:
        text = row.get(name)
        if not isinstance(text, str):
            continue
        if found := _CHATML.findall(text):
            is_open = found[-1][1] == ""  # for the answer, which is in another column
            _move(applied, name, [{"role": role, "content": said} for role, said in found[: -1 if is_open else None]])
            return
        if name == "text" and any(mark in text for mark in _TEMPLATES):
            raise RowRefused("text is a conversation in the form of a chat template, of which only ChatML is read")
    if isinstance(chat := row.get("chat"), str) and (turns := _GLAIVE.findall(chat)):
        _move(applied, "chat", [_turn_of_glaive(word, said) for word, said in turns])
        row["system"] = str(row.get("system") or "").removeprefix("SYSTEM: ")


def _turn_of_glaive(word: str, said: str) -> Json:
    said = said.strip().removesuffix("<|endoftext|>").strip()
    before, mark, call = said.partition("<functioncall>")
    if word != "ASSISTANT" or not mark:
        return {"role": {"USER": "user", "ASSISTANT": "assistant"}.get(word, "tool"), "content": said}
    # Its arguments are JSON between single quotes.
    text = re.sub(r"(\"arguments\":\s*)'(.*)'", r"\1\2", call.strip(), flags=re.DOTALL)
    return {"role": "function_call", "content": f"{before.strip()}{OPENS}{text}{CLOSES}"}


def _complete(applied: AppliedMapping, answer: str) -> None:
    """Add the answer that a logged call has beside its messages."""
    row = applied.row
    name = answer or next((one for one in _TEXTS if isinstance(row.get(one), str) and row[one]), "")
    asked = row.get("messages") if name else None
    if not isinstance(asked, list) or not asked or not all(map(is_message, asked)) or _is_answer(asked[-1]):
        return
    given = row.pop(name)
    _account_for_answer(applied, name, given)
    said = given if answer else given.removesuffix("<|im_end|>")
    row["messages"] = [*asked, *(answers_in(said) if answer else [{"role": "assistant", "content": said}])]
    applied.account.count(name, "steps")


def _question_inside(value: Any) -> str:
    if not isinstance(value, Mapping) or _has_question(value):
        return ""
    return next((str(name) for name, inner in value.items() if _has_question(inner)), "")


def _has_question(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(value.get(name), list) for name in _QUESTIONS)


def _lift(applied: AppliedMapping, request: str, answer: str) -> None:
    """Make the fields of a request columns, with the answer after its messages."""
    row = applied.row
    _spread(applied, request, row.pop(request))
    answer = answer or _answer_of(row)
    question = next(name for name in _QUESTIONS if isinstance(row.get(name), list))
    asked = row.pop(question)
    if len(asked) == 1 and isinstance(asked[0], list):  # LangSmith has a list for each prompt of a batch
        [asked] = asked
    if answer:
        _account_for_answer(applied, answer, row[answer])
    said = answers_in(row.pop(answer)) if answer else []
    # A graph's output has the whole conversation.
    row["messages"] = said if len(said) > len(asked) else [*asked, *said]
    applied.names["messages"] = applied.names.pop(question)
    if answer:
        applied.account.count(answer, "steps")


def _spread(applied: AppliedMapping, path: str, inner: Mapping[str, Any]) -> None:
    """Make the fields of an object columns, by their paths where the row has such columns too."""
    for name, value in inner.items():
        known = f"{path}.{name}" if applied.row.get(name) not in EMPTY else name
        applied.row[known] = value
        applied.names[known] = f"{path}.{name}"


def _move(applied: AppliedMapping, path: str, messages: list[Any]) -> None:
    applied.row.pop(path)
    applied.row["messages"] = messages
    applied.names["messages"] = path


def _acts_in(value: Any) -> list[Json]:
    """Return steps of a thought, an action and an observation, as of R2E-Gym and ReAct, or of InterCode, which has a
    list for each of these; none of another value."""
    lists = {name: one for name, one in value.items() if isinstance(one, list)} if isinstance(value, Mapping) else {}
    if {"actions", "observations"} <= lists.keys():
        named = {"actions": "action", "observations": "observation"}
        names = [named.get(name, name) for name in lists]
        return [dict(zip(names, step, strict=True)) for step in zip_longest(*lists.values())]
    acts = value if isinstance(value, list) and all(isinstance(one, dict) for one in value) else []
    return acts if all("action" in one and not _OF_ACTS.isdisjoint(one) for one in acts) else []


def _act(applied: AppliedMapping, column: str) -> None:
    """Read steps of actions as messages, after the task of the row."""
    row = applied.row
    messages: list[Json] = []
    task = next((name for name in ("problem_statement", *TASK) if isinstance(row.get(name), str)), "")
    if task:
        messages.append({"role": "user", "content": row.pop(task)})
        applied.account.count(task, "user message")
    for act in _acts_in(row[column]):
        thought, action, given = str(act.get("thought") or ""), act["action"], act.get("action_input")
        rest = {key: one for key, one in act.items() if key not in (*_OF_ACTS, "action", "action_input")}
        if isinstance(action, str) and "<function=" in action:
            said: Json = {"role": "function_call", "content": f"{thought}\n{action}".strip()}
        else:
            called = {"name": action, "arguments": given} if given is not None else {"name": "act", "arguments": action}
            if isinstance(called["arguments"], str):
                called["arguments"] = {"input": called["arguments"]}
            said = {"role": "assistant", "content": thought, "tool_calls": [called] if action else []}
        messages.append(rest | said)
        if act.get("observation"):
            messages.append({"role": "tool", "content": act["observation"]})
    _move(applied, column, messages)


def _answer_of(row: Json) -> str:
    for name in _ANSWERS:
        if name in row and answers_in(row[name]):
            return name
    return ""


def answers_in(value: Any) -> list[Any]:
    """Return the messages in an answer of a service or a chain, with the usage and the model beside them."""
    if isinstance(value, list) and value and all(map(is_message, value)):
        return value
    if isinstance(value, list) and value and isinstance(value[0], Mapping) and "message" in value[0]:
        value = {"choices": value}
    if not isinstance(value, Mapping):
        return []
    value = _of_langchain(value)
    for name in _INNER:
        if isinstance(value.get(name), Mapping):
            return answers_in(value[name])
    facts = {known: value[name] for name, known in _FACTS.items() if value.get(name)}
    for name, inner in _CHOICES.items():
        if isinstance(choices := value.get(name), list) and choices and isinstance(choices[0], Mapping):
            message = choices[0].get(inner)
            return [{**unwrapped(message), **facts}] if isinstance(message, Mapping) else []
    for name in ("messages", "output"):
        if isinstance(found := value.get(name), list) and found and all(map(is_message, found)):
            return list(found)
    return [dict(value)] if value.get("role") in ("assistant", "model") else []


def _of_langchain(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a result of LangChain with the generations of its first prompt, and the facts of `llm_output` beside them;
    any other value as it is."""
    given, told = value.get("generations"), value.get("llm_output")
    if not isinstance(given, list):
        return value
    about = told if isinstance(told, Mapping) else {}
    rest = {f"llm_output.{name}": one for name, one in about.items() if name not in ("token_usage", "model_name")}
    facts = {"generations": given[0] if given and isinstance(given[0], list) else given, "llm_output": None}
    return {**value, **facts, **rest, "usage": about.get("token_usage"), "model": about.get("model_name")}


def _account_for_answer(applied: AppliedMapping, path: str, value: Any) -> None:
    """Account for the fields of a service's answer that are in no message: other choices, and all about the call."""
    while isinstance(value, Mapping) and (
        name := next((one for one in _INNER if isinstance(value.get(one), Mapping)), "")
    ):
        path, value = f"{path}.{name}", value[name]
    value = _of_langchain(value) if isinstance(value, Mapping) else value
    choices = next((name for name in _CHOICES if isinstance(value, Mapping) and isinstance(value.get(name), list)), "")
    if not choices:
        return
    if len(value[choices]) > 1:
        applied.account.count(f"{path}.{choices}", "ignored: the first answer of a call is read")
    for place, given, known in (
        (path, value, (choices, *_FACTS)),
        (f"{path}.{choices}[]", value[choices][0], (_CHOICES[choices], "index")),
    ):
        for name, inner in given.items() if isinstance(given, Mapping) else ():
            if name not in known and inner not in EMPTY:
                applied.account.count(f"{place}.{name}", IGNORED)


def rows_in(document: Mapping[str, Any]) -> list[Json]:
    """Return the rows of a document that has no conversation of its own, but one list of objects with conversations, or
    one by each of its names. Rows of a list have the document's other fields too."""
    lists = {name: value for name, value in document.items() if isinstance(value, list) and value}
    found = {name: value for name, value in lists.items() if all(isinstance(one, dict) for one in value)}
    names = [name for name, value in found.items() if any(_is_row(one) for one in value[:3])]
    if len(document) > 1 and all(isinstance(one, dict) and _is_row(one) for one in document.values()):
        return [{"id": name, **one} for name, one in document.items()]
    if len(names) != 1 or any(map(is_message, document[names[0]])):
        return []
    around = {name: value for name, value in document.items() if name != names[0]}
    return [
        around | {name: value for name, value in one.items() if value not in EMPTY or name not in around}
        for one in document[names[0]]
    ]


def _is_row(value: Json) -> bool:
    is_conversation = any(isinstance(value.get(name), list) for name in (*CONVERSATIONS, "traj"))
    return is_conversation or bool(_acts_in(value.get("turn_history")))


def _find(applied: AppliedMapping) -> None:
    """Find the one list of messages in a row, as a person would map it."""
    asks = _asks(applied.row)
    paths = [
        path
        for path, found in _lists(applied.row, "", 0)
        if any(map(_is_answer, found)) and len(path) <= LONGEST_PATH and not (asks and path.lower() in HISTORIES)
    ]
    if len(paths) > 1:
        raise RowRefused(f"there are several lists of messages: {', '.join(paths[:6])}. Map one of them")
    if paths:
        found = RowMapping(messages=paths[0]).apply(applied.row)
        applied.row.clear()
        applied.row.update(found.row)
        applied.names.update(found.names)
        around = paths[0].rpartition(".")[0]
        if around and isinstance(inner := take_at(applied.row, around), Mapping):
            _spread(applied, around, inner)


def lists_in(row: Mapping[str, Any]) -> list[str]:
    """Return the paths of up to three lists in a row that may be its messages, though nobody known answers in them."""
    return [path for path, _ in islice(_lists(row, "", 0), 3) if len(path) <= LONGEST_PATH]


def has_entries(value: Any) -> bool:
    """Whether a value has a list of several objects or lists, at any depth or in JSON text."""
    value = decoded(value)
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    is_list = isinstance(value, list) and sum(isinstance(one, dict | list) for one in value) > 1
    return is_list or any(map(has_entries, inner))


def _asks(row: Iterable[str], *more: str) -> bool:
    """Whether a column has the question: an answer or a history beside it is no whole conversation."""
    return not {name.lower() for name in row}.isdisjoint((*TASK, *SAID, *more))


def _is_answer(message: Mapping[str, Any]) -> bool:
    message = plain(message) if is_event(message) else message
    inner = message.get("content")
    said = inner if isinstance(inner, Mapping) and "role" in inner else message
    word = next((said[name] for name in ("role", "from", "sender", "type") if said.get(name)), None)
    return isinstance(word, str) and ROLES.get(word.lower()) in ("agent", "call")


def _lists(row: Mapping[str, Any], path: str, depth: int) -> Iterator[tuple[str, list[Any]]]:
    for name, value in row.items():
        found = decoded_messages(value)
        place = f"{path}{name}"
        if isinstance(found, list) and len(found) > 1 and all(map(_has_content, found)):
            yield place, found
        elif isinstance(inner := decoded(found), dict) and depth < _DEEPEST:
            yield from _lists(inner, f"{place}.", depth + 1)


def _has_content(value: Any) -> bool:
    return is_message(value) and not {"content", "value", "parts", "tool_calls"}.isdisjoint(value)
