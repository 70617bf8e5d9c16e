"""Rows for reinforcement learning. With new rollouts: one prompt of each scenario or task, with its measured
difficulty. On rollouts that exist: sessions with rewards, approved and rejected ones. Those of a scenario or task are a
group, whose rewards an algorithm such as GRPO compares."""

from collections.abc import Iterator

from curation.exports.formats.row import PLAIN_MESSAGE, Column, Columns, DataRow, Format, TrainingExample, with_tools
from curation.exports.rows.messages import with_objects
from curation.exports.rows.skip_reasons import SkipReason

_TRAINED = "answers of its own to the prompt, by their rewards"


def _rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    if example.solved is None:
        yield SkipReason.NO_SOLVE_RATE
        return
    prompt = example.messages[: example.approved[0]]
    info = {"scenario": example.scenario, "solve_rate": example.solved.rate, "rollouts": example.solved.attempts}
    content = {"prompt": with_objects(prompt), "answer": "", "task": example.group, "info": info}
    row = with_tools(content, example.tools)
    yield DataRow(example.source, row, prompt, [[]], rejected=example.rejected)


def _verl_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    for row in _rows(example):
        if isinstance(row, SkipReason):
            yield row
        elif example.plain:
            content = {
                "data_source": "winnow",
                "prompt": row.content["prompt"],
                "ability": "agent",
                "reward_model": {"style": "rule", "ground_truth": example.group},
                "extra_info": row.content["info"],
            }
            yield row._replace(content=content)
        else:
            yield SkipReason.NO_TOOLS


_INFO: Column = {"scenario": "string", "solve_rate": "float64", "rollouts": "int64"}
_COLUMNS: Columns = {"answer": "string", "task": "string", "info": _INFO}
RL_PROMPTS = Format(
    name="rl-prompts",
    about='`{"prompt": […], "answer": "", "task": text, "info": {"scenario", "solve_rate", "rollouts"}, "tools"?}`: one'
    " row of each scenario or task that some rollouts solve and some do not; for TRL's GRPO, and for verifiers and with"
    " it prime-rl",
    trained=_TRAINED,
    pairs=False,
    rows=_rows,
    columns={"prompt": ["json"], "tools": ["json"], **_COLUMNS},
    plain_columns={"prompt": [PLAIN_MESSAGE], **_COLUMNS},
    chat=False,
    labelled=True,
    of_groups=True,
)
_VERL: Columns = {
    "data_source": "string",
    "prompt": [PLAIN_MESSAGE],
    "ability": "string",
    "reward_model": {"style": "string", "ground_truth": "string"},
    "extra_info": _INFO,
}
VERL_RL = Format(
    name="verl-rl",
    about="Parquet with `data_source`, `prompt`, `ability`, `reward_model` and `extra_info`: the prompts of"
    " `rl-prompts` as verl's trainers for reinforcement learning read them",
    trained=_TRAINED,
    pairs=False,
    rows=_verl_rows,
    columns=_VERL,
    parquet=True,
    chat=False,
    labelled=True,
    of_groups=True,
)


def _rollout_rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    if example.reward is None:
        yield SkipReason.NO_REWARD
        return
    messages, first = example.messages, example.approved[0]
    prompt, completion = messages[:first], messages[first:]
    content: dict[str, object] = {
        "prompt": with_objects(prompt),
        "completion": with_objects(completion),
        "reward": example.reward,
        "group": example.group,
    }
    if example.tokens:
        said = (index for index in range(first, len(messages)) if messages[index]["role"] == "assistant")
        content["tokens"] = [example.tokens.get(index) for index in said]
    yield DataRow(example.source, with_tools(content, example.tools), prompt, [completion], rejected=example.rejected)


_ROLLOUT_COLUMNS: Columns = {"reward": "float64", "group": "string", "tokens": ["json"]}
ROLLOUTS = Format(
    name="rollouts",
    about='`{"prompt": […], "completion": […], "reward": number, "group": text, "tools"?, "tokens"?}`: a session,'
    " approved or rejected, with its reward; sessions of one scenario or task have the same group; `tokens` has for"
    " each assistant message of the completion `prompt_token_ids`, `completion_token_ids` and `logprobs`, or null",
    trained="assistant messages of the completion, by the advantage of their reward in their group",
    pairs=False,
    rows=_rollout_rows,
    columns={"prompt": ["json"], "completion": ["json"], "tools": ["json"], **_ROLLOUT_COLUMNS},
    plain_columns={"prompt": [PLAIN_MESSAGE], "completion": [PLAIN_MESSAGE], **_ROLLOUT_COLUMNS},
    labelled=True,
)
FORMATS = (ROLLOUTS, RL_PROMPTS, VERL_RL)
