"""The process that renders chat templates. It is a script of its own, started by `template.py`, so that a template that
never ends or takes all memory ends with it.

It reads lines of JSON: first the template's text, then a conversation on each line. It answers each with a line:
`error` is the exception of the template, `missing` the index of the first text that the rendered conversation lacks.
"""

import json
import resource
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_MEMORY = 512 * 1024 * 1024
LONGEST_ERROR = 300
# What the operations of a template raise. The process ends by anything else.
RAISED = (
    *(jinja2.TemplateError, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, NameError),
    *(RuntimeError, TypeError, ValueError),
)
# A tokenizer knows its own.
_SPECIAL_TOKENS = {"bos_token": "", "eos_token": "", "pad_token": "", "unk_token": ""}


class GenerationTag(Extension):
    """`{% generation %}` marks the words of an assistant, for masks of the loss. Here it changes nothing."""

    tags = {"generation"}

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def compiled(text: str) -> jinja2.Template:
    """Return the template with the names that transformers gives it. Raises `jinja2.TemplateError`."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
    return environment.from_string(text)


def _to_json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def missing(rendered: str, learned: Sequence[Sequence[Sequence[str]]]) -> int | None:
    """Return the index of the first message that is not there, in the order of the messages, or None. A message is a
    list of texts, in any order, and a text a list of the forms in which it may be written."""
    start = 0
    for index, texts in enumerate(learned):
        end = start
        for forms in texts:
            places = [(place, len(form)) for form in forms if (place := rendered.find(form, start)) >= 0]
            if not places:
                return index
            end = max(end, sum(min(places)))
        start = end
    return None


def _answer(template: jinja2.Template, asked: Mapping[str, Any]) -> dict[str, object]:
    try:
        rendered = template.render(
            messages=asked["messages"], tools=asked["tools"], add_generation_prompt=False, **_SPECIAL_TOKENS
        )
    except RAISED as error:
        return {"error": f"{type(error).__name__}: {error}"[:LONGEST_ERROR]}
    return {"missing": missing(rendered, asked["learned"])}


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    text = json.loads(sys.stdin.readline())
    try:
        template = compiled(text)
    except RAISED as error:
        line = f" in line {error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else ""
        print(json.dumps({"error": f"{type(error).__name__}{line}: {error}"[:LONGEST_ERROR]}), flush=True)
        return
    print(json.dumps({"error": None}), flush=True)
    for line in sys.stdin:
        print(json.dumps(_answer(template, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
