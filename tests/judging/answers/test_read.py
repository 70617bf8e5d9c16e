"""Thinking is kept apart, and an answer that cannot be judged says why."""

import hashlib
import json
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from curation.samples.texts import answer_sha256
from judging.answers.facts import Style, style_of
from judging.answers.read import FORMAT_REFUSALS, SplitReply, format_refusal, split_thinking

GOOD = "THOUGHT: I look.\n\n```bash\nls\n```"


@pytest.mark.parametrize(
    ("text", "answer", "thinking"),
    [
        (GOOD, GOOD, ""),
        (f"<think>hm\nyes</think>\n\n{GOOD}", GOOD, "hm\nyes"),
        (f"\n <THINK>hm</THINK>{GOOD}", GOOD, "hm"),
        (f"<thinking>hm</thinking>{GOOD}", GOOD, "hm"),
        ("<think>never closed ```bash\nls\n```", "", "never closed ```bash\nls\n```"),
        (f"the template opened it</think>\n{GOOD}", GOOD, "the template opened it"),
        (f"one</think>two</think>{GOOD}", GOOD, "one\ntwo"),
        (f"<think>one</think>\n<think>two</think>\n{GOOD}", GOOD, "one\ntwo"),
        (f"Well. <think>aside</think>{GOOD}", f"Well. {GOOD}", "aside"),
        ("<think></think>", "", ""),
        ("a mention of <think> that never ends", "a mention of <think> that never ends", ""),
        ("<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>ls<|END_RESPONSE|>", "ls", "a"),
        ("<|channel>thought\na<channel|>ls", "ls", "a"),
        ("<|inner_prefix|>a<|inner_suffix|>ls", "ls", "a"),
        ("<|START_THINKING|>I was cut", "", "I was cut"),
    ],
)
def test_thinking_is_cut_off(text: str, answer: str, thinking: str) -> None:
    assert split_thinking(text) == SplitReply(answer, thinking)


@pytest.mark.parametrize(
    "tag", ["thought", "Thoughts", "reasoning", "reflection", "analysis", "scratchpad", "inner_monologue"]
)
def test_thinking_that_a_model_was_told_to_mark_is_cut_off_too(tag: str) -> None:
    assert split_thinking(f"<{tag}>I look.</{tag}>\n\n{GOOD}") == SplitReply(GOOD, "I look.")
    assert split_thinking(f"<{tag}>I was cut") == SplitReply("", "I was cut")
    assert split_thinking(f"<think>a</think>\n<{tag}>b</{tag}>{GOOD}") == SplitReply(GOOD, "a\nb")
    assert split_thinking(f"<thinking>a <{tag}>b</{tag}> c</thinking>{GOOD}") == SplitReply(
        GOOD, f"a <{tag}>b</{tag}> c"
    )
    mention = f"THOUGHT: the field <{tag}>x</{tag}> has no end: </{tag}>\n\n```bash\necho '<{tag}>' > f.xml\n```"
    assert split_thinking(mention) == SplitReply(mention, "")


def test_tags_inside_a_block_belong_to_the_answer() -> None:
    text = "THOUGHT: clean the log.\n\n```bash\nsed -i 's/<think>.*<\\/think>//' log && echo '</think>'\n```"
    assert split_thinking(text) == SplitReply(text, "")


@pytest.mark.parametrize(
    ("text", "finish_reason", "code"),
    [
        (GOOD, "stop", None),
        ("<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0", "stop", "tool_call_token"),
        ("  \n<tool_call>\n{}", "stop", "tool_call_token"),
        ('[TOOL_CALLS][{"name": "bash"}]', "stop", "tool_call_token"),
        ("<|tool_call|>{}", "tool_calls", "tool_call_token"),
        ("<｜tool▁calls▁begin｜>", "stop", "tool_call_token"),
        ("<|python_tag|>x", "stop", "tool_call_token"),
        ("<function_calls><invoke name='bash'>", "stop", "tool_call_token"),
        ("<function=bash>ls</function>", "stop", "tool_call_token"),
        ("<think>plan</think><tool_call>{}", "stop", "tool_call_token"),
        ("THOUGHT: grep for <tool_call> in the code.\n```bash\ngrep -rn '<tool_call>' .\n```", "stop", None),
        ("THOUGHT: I look.<|tool_calls_section_begin|><|tool_call_begin|>bash:0{}", "stop", "tool_call_token"),
        ("THOUGHT: I look.\n<｜tool▁calls▁begin｜>bash", "stop", "tool_call_token"),
        ('THOUGHT: I look.\n<tool_call>\n{"name": "bash"}\n</tool_call>', "stop", "tool_call_token"),
        ("I look.\n<tool_call>bash<arg_key>command</arg_key>", "stop", "tool_call_token"),
        ("I look. <function=bash>ls</function>", "stop", "tool_call_token"),
        ("I look.\n\n[TOOL_CALLS]bash{}", "stop", "tool_call_token"),
        ("I look.<|channel|>commentary to=functions.bash<|message|>{}<|call|>", "stop", "tool_call_token"),
        ('I look.\n<function_calls>\n<invoke name="bash">', "stop", "tool_call_token"),
        (f"{GOOD}\n<|tool_calls_section_begin|>", "stop", "tool_call_token"),
        ("THOUGHT: find the token.\n```bash\ngrep -rn '<|tool_call_begin|>' .\n```", "stop", None),
        ("THOUGHT: `<|tool_call_begin|>` is not escaped.\n```bash\nls\n```", "stop", None),
        ("THOUGHT: the parser of <tool_call> and [TOOL_CALLS] fails.\n```bash\nls\n```", "stop", None),
        ("I look.\n<｜DSML｜function_calls>\n<｜DSML｜invoke name='bash'>", "stop", "tool_call_token"),
        ("I look. [TOOL_CALLS]bash[CALL_ID]a1[ARGS]{}", "stop", "tool_call_token"),
        ("I look. <longcat_tool_call>bash\n<longcat_arg_key>command", "stop", "tool_call_token"),
        ('functools[{"name": "bash"}]', "stop", "tool_call_token"),
        ("ls<|im_end|>\n<|im_start|>user\nMore.", "stop", "turn_token"),
        ("<|start_header_id|>assistant<|end_header_id|>\n\nls", "stop", "turn_token"),
        ("Sure.<|end|><|start|>assistant<|channel|>final<|message|>ls", "stop", "turn_token"),
        ("ls [/INST] done", "stop", "turn_token"),
        ("THOUGHT: the prompt ends with `<|im_end|>`.\n```bash\nls\n```", "stop", None),
        ("<s>old</s>", "stop", None),
        ("", "stop", "empty"),
        (" \n\t", "stop", "empty"),
        ("<think>only thought</think>", "stop", "empty"),
        (GOOD, "length", "truncated"),
        ("<think>cut in the middle", "length", "truncated"),
        ("", "length", "truncated"),
        (GOOD, "content_filter", "refused"),
        ("", "refusal", "refused"),
        ("I'm sorry, but I can't help with that.", "stop", "refused"),
        ("I’m sorry, but I can’t assist with this request.", "stop", "refused"),
        ("I cannot assist with that request.", "stop", "refused"),
        ("As an AI language model, I am unable to help with this.", "stop", "refused"),
        ("Sorry, I won't do this.", "stop", "refused"),
        ("THOUGHT: I'm sorry, but I cannot continue.", "stop", "refused"),
        ("THOUGHT: I can't see the file yet, so I list it.", "stop", None),
        ("I'm sorry, I can't find it where I looked.\n```bash\nfind . -name '*.py'\n```", "stop", None),
    ],
)
def test_format_refusals(text: str, finish_reason: str, code: str | None) -> None:
    assert format_refusal(text, finish_reason=finish_reason) == code
    assert code is None or FORMAT_REFUSALS[code].endswith(".")


@given(st.text())
@example("half of a pair: \ud800")
@example('"quoted"\n\\ é \u2028')
def test_a_plain_answer_has_the_hash_of_the_canonical_form(text: str) -> None:
    canonical = json.dumps({"content": text}, sort_keys=True, separators=(",", ":"))
    assert answer_sha256(text) == hashlib.sha256(canonical.encode()).hexdigest()
    assert answer_sha256(text, reasoning="why") != answer_sha256(text)


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("THOUGHT: I look first.\n\n```bash\n# a comment\nls -la | grep '**x**'\n```", Style(0, 0)),
        ("## Plan\n- one\n- **two**\n1. `three`", Style(6, 0)),
        ("Thanks for the question! I am happy to help. Please run it.", Style(0, 3)),
        ("I unpleasantly glance at thankless code.", Style(0, 0)),
    ],
)
def test_markdown_outside_of_code_and_courtesies_are_counted(text: str, style: Style) -> None:
    assert style_of(text) == style


@pytest.mark.parametrize("blank", ["\n", "\r\n", " \n"])
def test_the_style_of_an_answer_of_blank_lines_takes_linear_time(blank: str) -> None:
    before = process_time()
    assert style_of(blank * 40_000 + "- a\n") == Style(1, 0)
    assert process_time() - before < 1
