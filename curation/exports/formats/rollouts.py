"""Sessions with rewards, for reinforcement learning on rollouts that exist: approved and rejected ones of a scenario or
task are a group, whose rewards an algorithm such as GRPO compares."""

from collections.abc import Iterator

from curation.exports.formats.row import PLAIN_MESSAGE, Columns, DataRow, Format, TrainingExample, with_tools
from curation.exports.rows.messages import with_objects
from curation.exports.rows.skip_reasons import SkipReason


def _rows(example: TrainingExample) -> Iterator[DataRow | SkipReason]:
    if example.reward is None:
        yield SkipReason.NO_REWARD
        return
    source, messages, approved = example.conversation
    first = approved[0]
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
    yield DataRow(source, with_tools(content, example.tools), prompt, [completion], rejected=example.rejected)


_COLUMNS: Columns = {"reward": "float64", "group": "string", "tokens": ["json"]}
ROLLOUTS = Format(
    name="rollouts",
    about='`{"prompt": […], "completion": […], "reward": number, "group": text, "tools"?, "tokens"?}`: a session,'
    " approved or rejected, with its reward; sessions of one scenario or task have the same group; `tokens` has for"
    " each assistant message of the completion `prompt_token_ids`, `completion_token_ids` and `logprobs`, or null",
    trained="assistant messages of the completion, by the advantage of their reward in their group",
    pairs=False,
    rows=_rows,
    columns={"prompt": ["json"], "completion": ["json"], "tools": ["json"], **_COLUMNS},
    plain_columns={"prompt": [PLAIN_MESSAGE], "completion": [PLAIN_MESSAGE], **_COLUMNS},
    labelled=True,
)
FORMATS = (ROLLOUTS,)
