"""The scripted teacher: assembles a scenario for the requested combination from written parts (`teacher.toml`).

It reads nothing but the combination in its instructions. About one scenario in three lacks its checker at first, for
refusal and repair to be used.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from judging.messages import content_of

WRITTEN = Path(__file__).with_name("teacher.toml")
TASKS = Path(__file__).with_name("teacher_tasks.toml")
AXES = ("task", "provider", "announcement", "doc_depth", "difficulty")
WRONG_ONE_IN = 3
DIGEST = 6
Messages = Sequence[Mapping[str, object]]
Words = Mapping[str, str]


@cache
def written_parts() -> Mapping[str, Any]:
    """The tables: themes, announcements, documentation, providers, noise; tasks."""
    parts = tomllib.loads(WRITTEN.read_text(encoding="utf-8"))
    return {**parts, "task": tomllib.loads(TASKS.read_text(encoding="utf-8"))}


def teacher_reply(messages: Messages, sample_index: int, attempt: int) -> str:
    """A bundle as JSON; the same request gets the same one."""
    prompts = [m for m in messages if m.get("role") != "assistant"]
    # Later messages may quote a bundle to repair; the combination was in the first one.
    orders = sorted(prompts, key=lambda m: m.get("role") != "user")
    request = next((content_of(m) for m in orders if wanted(content_of(m))), "")
    combination = _known(wanted(request))
    lot = blake2b(f"{sample_index}\0{request}".encode("utf-8", "surrogatepass"), digest_size=DIGEST)
    bundle = write_bundle(combination, int.from_bytes(lot.digest()))
    first = attempt == 1 and len(prompts) == len(messages)
    if first and lot.digest()[0] % WRONG_ONE_IN == 0:
        del bundle["checker"]
    return json.dumps(bundle, indent=1)


def wanted(text: str) -> dict[str, str]:
    """The combination in a text, as `axis: value`, `axis = value` or JSON; the last value of each axis counts."""
    found = {}
    for axis in AXES:
        named = re.findall(rf"(?<![\w-])[`\"'*]*{axis}[`\"'*]*\s*[:=]\s*[`\"'*]*([A-Za-z0-9-]+)", text)
        known = [value for value in named if value in _values(axis)]
        if known:
            found[axis] = known[-1]
    return found


def write_bundle(combination: Words, lot: int) -> dict[str, Any]:
    """The bundle of a combination; `lot` chooses the theme and makes the name unique."""
    parts = written_parts()
    theme = parts["themes"][lot % len(parts["themes"])]
    task, provider = parts["task"][combination["task"]], parts["provider"][combination["provider"]]
    doc = parts["doc"][combination["doc_depth"]]
    noise = parts["noise"][: int(combination["difficulty"]) - 1]
    words = {key.upper(): value for key, value in theme.items()} | {"BASE": f"/srv/{theme['place']}"}
    words |= {"USAGE": provider["usage"].strip("\n"), "TEXT": task["text"]}
    program = provider["program"].lstrip("\n").replace("@DOC@\n", doc["cases"].lstrip("\n"))
    files = [("/usr/local/bin/@TOOL@", program, "755")]
    files += [(doc["page"], doc["text"].lstrip("\n"), "644")] if "page" in doc else []
    files += [(provider["order"], "@TEXT@\n", "644")] if task["text"] else []
    files += [(f"@BASE@/{name}", text, "644") for name, text in task["files"].items()]
    files += [(f"@BASE@/{item['name']}", item["text"], "644") for item in noise]
    given = combination["task"] not in ("empty-queue", "blocked")
    terminal = task.get("terminal", "exit")
    solution = [doc["read"], provider["fetch"], task["solve"], provider["give"] if given else "", terminal]
    bundle = {
        "name": "-".join([combination["task"], combination["provider"], theme["place"], f"{lot % 0xFFFF:04x}"]),
        "title": task["title"],
        "axes": {**combination, "difficulty": int(combination["difficulty"])},
        "fixtures": [{"path": path, "mode": mode, "content": text} for path, text, mode in files],
        "env": {},
        "announcement": {
            "kind": combination["announcement"],
            "text": parts["announcement"][combination["announcement"]],
        },
        "provider": {"name": "@TOOL@", "doc": doc["read"]},
        "reference_solution": "\n".join(line for line in solution if line) + "\n",
        "checker": _checker(task, noise, given, provider["fetch"].split(";")[0]),
        "expected_terminal": terminal.split()[0],
    }
    filled: dict[str, Any] = _fill(bundle, words)
    return filled


def _checker(task: Mapping[str, Any], noise: Sequence[Words], given: bool, fetch: str) -> str:
    """The task's own check, after the common ones: the provider was asked and got its answer."""
    lines = [f'asked {fetch} || {{ echo "the provider was not asked"; exit 1; }}']
    if given:
        lines.append('[ -e /var/@TOOL@/given ] || { echo "nothing was given back"; exit 1; }')
    for item in noise:
        lines.append(
            f'[ "$(cat @BASE@/{item["name"]})" = "{item["text"].rstrip()}" ]'
            f' || {{ echo "{item["name"]} was changed"; exit 1; }}'
        )
    return "\n".join([*lines, str(task["check"])])


def _fill(value: Any, words: Words) -> Any:
    """Fill in the words of every text, twice: a word can contain another."""
    if isinstance(value, str):
        for _ in range(2):
            value = re.sub(r"@([A-Z]+)@", lambda found: words[found[1]], value)
        return value
    if isinstance(value, dict):
        return {key: _fill(inner, words) for key, inner in value.items()}
    if isinstance(value, list):
        return [_fill(inner, words) for inner in value]
    return value


def _values(axis: str) -> Sequence[str]:
    table = {"doc_depth": "doc"}.get(axis, axis)
    return [str(number) for number in range(1, 6)] if axis == "difficulty" else list(written_parts()[table])


def _known(combination: Words) -> Words:
    """The combination, with the first value for each axis that is missing or unknown."""
    return {axis: combination.get(axis, _values(axis)[0]) for axis in AXES}
