"""Conversations tried against a chat template in its own process."""

from collections.abc import Iterator
from typing import Any

import pytest

from judging.chat_template import template as module
from judging.chat_template.template import ChatTemplate, Failure, TemplateFault, TemplateRefused

PLAIN = """{%- for message in messages -%}
{%- if not loop.first and message.role == loop.previtem.role -%}
{{ raise_exception("two turns of one role") }}{%- endif -%}
<|{{ message.role }}|>
{%- if message.role == "assistant" -%}{% generation %}{{ message.content | trim }}
{%- for call in message.tool_calls or [] -%}<call>{{ call.function | tojson }}</call>{%- endfor -%}
{% endgeneration %}{%- else -%}{{ message.content }}{%- endif -%}
{%- endfor -%}"""
ASKED = {"role": "user", "content": "List it."}
SAID = {"role": "assistant", "content": " Here. "}
CALL = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": {"command": 'echo "ä"\n', "n": 5}}}
BASH = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}


@pytest.fixture(scope="module")
def plain() -> Iterator[ChatTemplate]:
    with ChatTemplate(PLAIN) as template:
        yield template


def test_a_row_that_renders_whole_has_no_failure(plain: ChatTemplate) -> None:
    called = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    assert plain.try_out([ASKED, SAID], [], [1]) is None
    assert plain.try_out([ASKED, called], [BASH], [1]) is None


def test_the_exception_of_the_template_is_named(plain: ChatTemplate) -> None:
    assert plain.try_out([ASKED, ASKED], [], []) == Failure(
        TemplateFault.RAISES, "TemplateError: two turns of one role"
    )


def test_a_tool_that_is_not_declared_is_named(plain: ChatTemplate) -> None:
    called = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    assert plain.try_out([ASKED, called], [], [1]) == Failure(TemplateFault.UNDECLARED, "called: bash")


@pytest.mark.parametrize(
    ("text", "messages", "tools"),
    [
        (
            "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}",
            [ASKED, {**SAID, "content": "a</think>b"}],
            [],
        ),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", [ASKED, {**SAID, "tool_calls": [CALL]}], [BASH]),
        ("{{ messages[0].content }}", [{**ASKED, "content": "Here."}, SAID, {**ASKED, "content": "x"}, SAID], []),
    ],
)
def test_trained_text_that_is_not_rendered_is_found(
    text: str, messages: list[dict[str, Any]], tools: list[Any]
) -> None:
    learned = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
    with ChatTemplate(text) as template:
        found = template.try_out(messages, tools, learned)
    assert found is not None and found.fault is TemplateFault.MISSING


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% set a = 'x' * 2000000000 %}{{ a }}",
    ],
)
def test_a_template_that_takes_too_much_is_stopped_and_the_next_row_is_tried(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST", 1.0)
    both = (
        "{% if messages[0].content == 'much' %}"
        + text
        + "{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}"
    )
    with ChatTemplate(both) as template:
        much = template.try_out([{**ASKED, "content": "much"}, SAID], [], [1])
        assert much is not None and much.fault is TemplateFault.RAISES
        assert template.try_out([ASKED, SAID], [], [1]) is None


@pytest.mark.parametrize(
    "text",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{% for m in messages %}{{ m.nothing.more }}{% endfor %}",
    ],
)
def test_the_sandbox_refuses_what_is_unsafe(text: str) -> None:
    with ChatTemplate(text) as template:
        found = template.try_out([ASKED, SAID], [], [])
    assert found is not None and found.fault is TemplateFault.RAISES


def test_a_text_that_is_no_template_is_refused_with_its_line() -> None:
    with pytest.raises(TemplateRefused, match="line 2"):
        ChatTemplate("a\n{% for m in messages %}")
