"""verl's multi-turn reader, with the loss on approved messages alone.

verl's own reader learns from every assistant message. This one reads the `train` flag of each message, passes tools and
tool arguments as objects, and hides keys that a message does not have.
"""

import json
from typing import Any

import torch
from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset


class ApprovedTurnsDataset(MultiTurnSFTDataset):
    def _read_files_and_process(self) -> None:
        super()._read_files_and_process()
        if self.tools is not None:
            self.tools = [json.loads(tools) if isinstance(tools, str) else None for tools in self.tools]

    def _build_messages(self, example: dict[str, Any]) -> list[dict[str, Any]]:
        return [_without_empty_keys(message) for message in super()._build_messages(example)]

    def _process_single_message(self, index: int, message: dict[str, Any], *args: Any, **options: Any) -> Any:
        is_trained = message.pop("train", True)
        input_ids, loss_mask, *rest = super()._process_single_message(index, message, *args, **options)
        return input_ids, loss_mask if is_trained else torch.zeros_like(loss_mask), *rest


def _without_empty_keys(message: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in message.items() if value is not None}
    kept["tool_calls"] = [_with_object(call) for call in kept.pop("tool_calls", None) or []]
    return kept if kept["tool_calls"] else {key: value for key, value in kept.items() if key != "tool_calls"}


def _with_object(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    try:
        return {**call, "function": {**function, "arguments": json.loads(function["arguments"])}}
    except json.JSONDecodeError:
        return call
