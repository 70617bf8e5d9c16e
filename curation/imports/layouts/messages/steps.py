"""Build the steps of a session from its messages, one after the other, and split the reasoning off the
text of an answer."""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from curation.imports.layouts.messages.content import ToolResult
from curation.imports.layouts.session import Json, Step
from judging.answers.read import ENDS_THINKING, ENDS_TOLD, OPENS_THINKING, OPENS_TOLD

_OPENING, _ENDING = re.compile(OPENS_THINKING), re.compile(ENDS_THINKING)
_BLOCKS = tuple(
    re.compile(rf"\s*{opening}(?P<text>.*?)(?:{ending}\s*|\Z)", re.DOTALL)
    for opening, ending in ((OPENS_THINKING, ENDS_THINKING), (OPENS_TOLD, ENDS_TOLD))
)


def may_think(text: str) -> bool:
    """Whether the text may have thinking in it: a quick look, right where it says no."""
    return "think" in text or "THINK" in text or text.lstrip()[:1] == "<"


def split_thinking(text: str) -> tuple[str, str]:
    """Return the answer and its reasoning: `<think>` blocks at the beginning, or all before a lone `</think>`.

    A block without an end is reasoning that was cut off.
    """
    thoughts: list[str] = []
    if not may_think(text):
        return text, ""
    at = 0
    while found := next(filter(None, (block.match(text, at) for block in _BLOCKS)), None):
        thoughts.append(found["text"].strip())
        at = found.end()
    text = text[at:]
    if not thoughts and (end := _ENDING.search(text)) and not _OPENING.search(text[: end.start()]):
        # Templates that open the block themselves leave its end alone in the answer.
        thoughts, text = [text[: end.start()].strip()], text[end.end() :].lstrip()
    return text, "\n\n".join(filter(None, thoughts))


# The order of what an agent says in one step. Items of formats that have one for each of these are joined by it.
REASONING, MESSAGE, CALL = range(3)


@dataclass(slots=True)
class Steps:
    """The steps so far. `learned` has the source's training marks by position.

    Calls without an id get one: `call_1` is the first call of the session. The result of a tool becomes an observation
    of the step that called it, also with others between the two.
    """

    steps: list[Step] = field(default_factory=list)
    learned: dict[int, bool] = field(default_factory=dict)
    _callers: dict[str, Step] = field(default_factory=dict)
    # The first of a dict takes ever longer to find once many before it are gone.
    _waiting: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _calls: int = 0
    _rank: int = MESSAGE

    def add(self, source: str, message: str | list[Json], *, extra: Json | None = None) -> Step:
        """Add a step. Its position is the number of steps before it."""
        step: Step = {"step_id": len(self.steps) + 1, "source": source, "message": message}
        if extra:
            step["extra"] = extra
        self.steps.append(step)
        return step

    def add_agent(
        self,
        message: str | list[Json],
        *,
        reasoning: str = "",
        calls: Sequence[Json] = (),
        mark: bool | None = None,
        extra: Json | None = None,
    ) -> None:
        """Add a whole message of the agent. It continues a step that has nothing but reasoning."""
        step = self._open(mark)
        if step is None or self._rank != REASONING:
            step = self.add("agent", message, extra=extra)
        else:
            step |= {"message": message} | ({"extra": extra} if extra else {})
        self._set(step, MESSAGE, reasoning, calls, mark)

    def add_part(self, rank: int, text: str = "", calls: Sequence[Json] = (), mark: bool | None = None) -> None:
        """Add what an agent said as an item of its own: to its open step if it may follow what this has, else as a new
        one. A step is open until a tool has answered it or somebody else speaks."""
        step = self._open(mark)
        if step is None or rank < self._rank or (rank == self._rank == MESSAGE):
            step = self.add("agent", "")
        if rank == MESSAGE:
            step["message"] = text
        self._set(step, rank, text if rank == REASONING else "", calls, mark)

    def _set(self, step: Step, rank: int, reasoning: str, calls: Sequence[Json], mark: bool | None) -> None:
        if reasoning:
            before = step.get("reasoning_content")
            step["reasoning_content"] = f"{before}\n\n{reasoning}" if before else reasoning
        if calls:
            self.add_calls(step, calls)
        if mark is not None:
            self.learned[len(self.steps) - 1] = mark
        self._rank = CALL if calls else rank

    def add_calls(self, step: Step, calls: Sequence[Json]) -> None:
        """Add calls to an agent's step. An id that an earlier call has is taken over by the later one."""
        for call in calls:
            self._calls += 1
            call["tool_call_id"] = identifier = call["tool_call_id"] or self._free_id()
            self._callers[identifier] = step
            self._waiting[identifier] = None
            step.setdefault("tool_calls", []).append(call)
        if len(self.steps) > 1 and self.steps[-1] is step and self.steps[-2]["source"] == "system":
            self._take_results(step, self.steps[-2])

    def _take_results(self, step: Step, before: Step) -> None:
        """Take the results of calls that a log has before these, if the step before has nothing else."""
        results = (before.get("observation") or {"results": []})["results"]
        answered = [result.get("source_call_id") for result in results]
        if answered and not before["message"] and {*answered} <= {call["tool_call_id"] for call in step["tool_calls"]}:
            step |= {"step_id": before["step_id"], "observation": {"results": results}}
            del self.steps[-2]
            for identifier in answered:
                self._waiting.pop(str(identifier), None)

    def add_result(self, result: ToolResult) -> None:
        """Add what a tool returned to the step that called it. Without such a step, it belongs to the agent's last one
        if this has no calls, and else to a step of the system."""
        identifier = result.call_id
        step = self._callers.get(identifier)
        if step is None and not identifier and self._waiting:
            identifier = next(iter(self._waiting))
            step = self._callers[identifier]
        self._waiting.pop(identifier, None)
        if step is None:
            last = self.steps[-1] if self.steps else None
            if last is None or last["source"] == "user" or "tool_calls" in last:
                last = self.add("system", "")
            step = last
        observed: Json = {"source_call_id": identifier} if identifier else {}
        observed["content"] = result.content
        if result.extra:
            observed["extra"] = result.extra
        step.setdefault("observation", {"results": []})["results"].append(observed)

    @property
    def is_waiting(self) -> bool:
        """Whether a call has no result yet."""
        return bool(self._waiting)

    def has_call(self, identifier: object) -> bool:
        return isinstance(identifier, str) and identifier in self._callers

    def _open(self, mark: bool | None) -> Step | None:
        last = self.steps[-1] if self.steps else None
        if last is None or last["source"] != "agent" or "observation" in last or isinstance(last["message"], list):
            return None
        # Messages with different marks stay apart: only one of them is trained on.
        is_same = self._rank == REASONING or self.learned.get(len(self.steps) - 1) == mark
        return last if is_same else None

    def _free_id(self) -> str:
        while (identifier := f"call_{self._calls}") in self._callers:
            self._calls += 1
        return identifier
