"""Clients of trainers play a served environment. Run as a script, with the trainers on the path:
`python clients.py CLIENT ADDRESS FOLDER` prints what the client saw as JSON. Models are scripted; all else is the
trainers' own code. `FOLDER` has the tokenizer and the configuration of a tiny model.
"""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from urllib.request import urlopen

from tests.exports.consumers.readers import EmptyModules

SOLVES = ("todo --help", "todo", "echo 'hello world' > greeting.txt", "exit")
Seen = dict[str, Any]


def trl(address: str, folder: str) -> Seen:
    """One step of GRPO with an environment for each rollout: the first of two does the work, the other one leaves."""
    from datasets import Dataset
    from openenv import GenericEnvClient
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    class ShellScenario:
        def __init__(self) -> None:
            self._client = GenericEnvClient(base_url=address).sync()
            self._reward = 0.0

        def reset(self, scenario: str, **_: Any) -> str:
            self._reward = 0.0
            return str(self._client.reset(name=scenario).observation["output"])

        def run(self, command: str) -> str:
            """Run a command in the shell.

            Args:
                command: One command, or `exit` when the work is done.
            """
            result = self._client.step({"command": command})
            self._reward = result.reward
            return str(result.observation["output"])

        def get_reward(self) -> float:
            rewards.append(self._reward)
            return self._reward

    class ScriptedModel(GRPOTrainer):
        def _generate_single_turn(self, prompt_ids: Any, *_: Any, **__: Any) -> Any:
            tokenizer, replies = self.processing_class, []
            for number, ids in enumerate(prompt_ids):
                said = tokenizer.decode(ids)
                turns = said.count("<tool_response>")
                if '"command": "exit"' in said:
                    reply = "Done."
                else:
                    command = SOLVES[turns] if turns or number % 2 == 0 else "exit"
                    call = {"name": "run", "arguments": {"command": command}}
                    reply = f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
                prompts.append(said)
                replies.append(tokenizer(f"{reply}<|im_end|>")["input_ids"])
            return replies, None

    rewards: list[float] = []
    prompts: list[str] = []
    with urlopen(f"{address}/metadata") as answered:  # noqa: S310 - the test's server
        names = json.load(answered)["scenarios"]
    rows = [{"prompt": [{"role": "user", "content": "Do the work.\n"}], "scenario": name} for name in names]
    options = GRPOConfig(
        output_dir="out",
        max_steps=1,
        logging_steps=1,
        num_generations=2,
        per_device_train_batch_size=2,
        max_completion_length=4096,
        gradient_checkpointing=False,
        report_to="none",
        use_cpu=True,
        bf16=False,
        save_strategy="no",
    )
    trainer = ScriptedModel(
        model=AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)),
        args=options,
        train_dataset=Dataset.from_list(rows),
        environment_factory=ShellScenario,
        processing_class=AutoTokenizer.from_pretrained(folder),
    )
    trainer.train()
    figures = next(row for row in trainer.state.log_history if "loss" in row)
    return {"rewards": rewards, "reward": figures["reward"], "grad_norm": figures["grad_norm"], "prompts": prompts}


def verifiers(address: str, _: str) -> Seen:
    """Its environment for OpenEnv plays a scenario by name and two by one seed, is refused an unknown one, and plays as
    many at once as it may."""
    # What only other models, tasks and sandboxes of its vendor need.
    sys.meta_path.insert(0, EmptyModules("anthropic", "math_verify", "prime_sandboxes"))
    from verifiers.v1.agent import Segment
    from verifiers.v1.tasksets.openenv import OpenEnvConfig, OpenEnvEnv, OpenEnvTask, OpenEnvTaskset
    from verifiers.v1.types import AssistantMessage

    class Player:
        """Says its replies, one a turn."""

        def __init__(self, *replies: str) -> None:
            self._replies = iter(replies)
            self.shown: list[Seen] = []
            self.rewards: Seen = {}
            self.trace = SimpleNamespace(record_reward=self.rewards.__setitem__)

        @asynccontextmanager
        async def interaction(self, task: OpenEnvTask) -> AsyncIterator["Player"]:
            yield self

        async def turn(self, message: str) -> Segment:
            self.shown.append(json.loads(message))
            return Segment(messages=[AssistantMessage(content=next(self._replies))])

    async def play(reset: Seen, *replies: str) -> Seen:
        (task,) = OpenEnvTaskset(OpenEnvConfig(id="openenv", base_url=address, resets=[reset])).load()
        player = Player(*replies)
        try:
            await OpenEnvEnv.run(None, task, SimpleNamespace(player=player))
        except RuntimeError as refused:
            return {"refused": str(refused)}
        return {"shown": player.shown, "rewards": player.rewards}

    async def play_all() -> Seen:
        said = [f"```sh\n{SOLVES[0]}\n```", json.dumps({"command": SOLVES[1]}), SOLVES[2], SOLVES[3]]
        return {
            "named": await play({"name": "wave"}, *said),
            "seeded": [await play({"seed": 3}, "exit") for _ in range(2)],
            "unknown": await play({"name": "draft"}, "exit"),
            "at_once": await asyncio.gather(*(play({"name": "greet"}, *said) for _ in range(4))),
        }

    return asyncio.run(play_all())


CLIENTS: dict[str, Callable[[str, str], Seen]] = {"trl": trl, "verifiers": verifiers}

if __name__ == "__main__":
    client, address, folder = sys.argv[1:]
    if not re.fullmatch(r"http://127\.0\.0\.1:\d+", address):
        sys.exit("The address is that of a test's server.")
    print(json.dumps(CLIENTS[client](address, folder)))
