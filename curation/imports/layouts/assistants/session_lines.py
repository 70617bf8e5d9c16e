"""Files of lines in which each line is a message, has one, or says something about the session: those of Qwen Code,
Droid, Grok and others. Of OSWorld each line is a step: an answer, its action, and the screen after it."""

import re
from collections.abc import Sequence

from curation.imports.layouts.messages.frameworks import is_event, plain, unwrapped
from curation.imports.layouts.messages.items import ITEMS
from curation.imports.layouts.messages.read import ROLES
from curation.imports.layouts.rows.mapping import CONVERSATIONS
from curation.imports.layouts.session import Json
from curation.imports.sources.rows import Fault

_IDS = ("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "trace_id", "traj_id")
# Files of OSWorld: the steps of a run, and its reward.
STEPS, REWARD = "traj.jsonl", "result.txt"
_OF_STEPS = ("screenshot_file", "action_timestamp", "instruction")
_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)@(\d\d)(\d\d)(\d\d)\d*")
_OF_MESSAGES = frozenset(("role", "from", "type", "text", "value", "content", "model", "model_id", "timestamp", "name"))


def is_message(value: Json) -> bool:
    """Whether a line is a message, or has one, or is an item that a message consists of."""
    if is_event(value) or any(map(value.get, CONVERSATIONS)):
        return is_event(value)
    said, kind = unwrapped(value), value.get("type")
    if isinstance(kind, str) and kind in ITEMS and "role" not in said:
        return True
    if said.get("role") == "system" and not said.get("content", said.get("parts")):  # of Qwen's telemetry
        return False
    is_named = not {"role", "from"}.isdisjoint(said) or (isinstance(kind, str) and kind in ROLES)
    return is_named and not {"content", "value", "text", "parts", "tool_calls"}.isdisjoint(said)


def is_step(value: Json) -> bool:
    """Whether a line is a step of a run of OSWorld."""
    return {"step_num", "action", "screenshot_file"} <= value.keys()


def run_of(lines: Sequence[Json], task: str, reward: str) -> Json:
    """Return the steps of a run. Of several actions of one answer, the first has its text. A line without an action
    tells why the run ended."""
    steps: list[Json] = []
    for before, line in zip(({}, *lines), lines, strict=False):
        if not is_step(line):
            continue
        step = {name: value for name, value in line.items() if name not in _OF_STEPS}
        if isinstance(said := line.get("response"), str):
            step["thought"] = said if line["step_num"] != before.get("step_num") else ""
            del step["response"]
        step["observation"] = [{"type": "image", "image": line["screenshot_file"]}]
        step["timestamp"] = _STAMP.sub(r"\1-\2-\3T\4:\5:\6", str(line.get("action_timestamp")))
        steps.append(step)
    told: Json = {"task_id": task, "group": task, "reward": reward.strip()}
    told["instruction"] = next((line["instruction"] for line in lines if line.get("instruction")), "")
    told["exit_status"] = next((str(line["Error"]) for line in lines if line.get("Error")), "")
    return {name: value for name, value in told.items() if value} | {"steps": steps}


def has_role(value: Json) -> bool:
    """Whether an entry of a list is a message that names its role itself."""
    return is_event(value) or (is_message(value) and not {"role", "from"}.isdisjoint(value))


def is_session(head: Sequence[Json]) -> bool:
    """Whether a file of lines that begins with these is one session: the lines after the first one are messages, or
    those that are messages are of a person and of an agent."""
    messages = [plain(line) if is_event(line) else unwrapped(line) for line in head if is_message(line)]
    are_several = any(len({str(line[name]) for line in messages if name in line}) > 1 for name in _IDS)
    if len(messages) < 2 or are_several or any(any(map(line.get, CONVERSATIONS)) for line in head):
        return False
    words = [line.get("role", line.get("from")) for line in messages]
    known = {ROLES.get(str(word or line.get("type"))) for word, line in zip(words, messages, strict=True)}
    is_answered = "user" in known and not known.isdisjoint(("agent", "call"))
    return len(words) - words.count(None) >= len(head) - 1 or is_answered


def session_of(lines: Sequence[Json], faults: list[Fault]) -> Json:
    """Return the messages of a session, with the fields of a first line that is none, and those that all messages
    have, such as the session's id. Other lines are counted."""
    about = {} if is_message(lines[0]) else lines[0]
    messages = [line for line in lines if is_message(line)]
    texts = {name: value for name, value in messages[0].items() if name not in _OF_MESSAGES and isinstance(value, str)}
    shared = {name: value for name, value in texts.items() if all(line.get(name) == value for line in messages)}
    messages = [{name: value for name, value in line.items() if name not in shared} for line in messages]
    left = (line for line in lines[bool(about) :] if not is_message(line))
    faults.extend(
        (f"(lines: {str(line.get('type', line.get('role')))[:60]})", "ignored: it is no message") for line in left
    )
    about = shared | about
    if "working_dir" in about:  # of Goose
        return {**about, "extension_data": {}, "conversation": messages}
    return {**about, "messages": messages}
