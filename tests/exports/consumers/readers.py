"""Real trainers read an export with the configuration beside it. Run as a script, with the trainers on the path:
`python readers.py READER FOLDER TOKENIZER` prints each row's loss as JSON.

Dependencies of a trainer for sound, pictures, clusters or graphics cards are replaced by empty modules.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

IGNORED = -100
Row = dict[str, str]


class _Empty(types.ModuleType):
    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class EmptyModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, *names: str) -> None:
        self._names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        wanted = any(name == one or name.startswith(f"{one}.") for one in self._names)
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if wanted else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def settings_of(name: str) -> dict[str, Any]:
    import yaml

    found: dict[str, Any] = yaml.safe_load(Path(name).read_text())
    return found


def learned(tokenizer: Any, input_ids: Sequence[int], labels: Sequence[int]) -> Row:
    """Return the text of a row, and the part of it that is in the loss."""
    kept = [int(label) for label in labels if int(label) != IGNORED]
    return {"text": tokenizer.decode([int(one) for one in input_ids]), "loss": tokenizer.decode(kept)}


def llamafactory(tokenizer_folder: str) -> dict[str, list[Row]]:
    """Its own arguments, loader, converters and processors."""
    os.environ["DISABLE_VERSION_CHECK"] = "1"
    sys.meta_path.insert(0, EmptyModules("torchaudio"))
    from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import get_train_args
    from transformers import AutoTokenizer

    found = {}
    for name in ("llamafactory-sft", "llamafactory-dpo"):
        if not Path(f"{name}.yaml").exists():
            continue
        own = {"model_name_or_path": tokenizer_folder, "overwrite_cache": True, "report_to": "none", "use_cpu": True}
        model_args, data_args, training_args, _, _ = get_train_args(settings_of(f"{name}.yaml") | own)
        tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
        template = get_template_and_fix_tokenizer(tokenizer, data_args)
        stage = "rm" if name.endswith("dpo") else "sft"
        parts = get_dataset(template, model_args, data_args, training_args, stage, tokenizer=tokenizer)
        rows = parts["train_dataset"]
        side = "chosen_" if stage == "rm" else ""
        found[name] = [learned(tokenizer, row[f"{side}input_ids"], row[f"{side}labels"]) for row in rows]
    return found


def axolotl(tokenizer_folder: str) -> dict[str, list[Row]]:
    """Its own prompt strategies, on the folder loaded as it loads a folder."""
    from axolotl.prompt_strategies import load
    from axolotl.prompt_strategies.dpo import load as load_dpo
    from axolotl.utils.dict import DictDefault
    from datasets import load_dataset
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    found: dict[str, list[Row]] = {}
    for name in ("axolotl-chat", "axolotl-dpo"):
        if not Path(f"{name}.yaml").exists():
            continue
        config = DictDefault(settings_of(f"{name}.yaml"))
        given = config.datasets[0]
        rows = load_dataset(given.path, name=given.name, split=given.split)
        if name == "axolotl-dpo":
            transform, _ = load_dpo(given.type, config, dataset_idx=0)
            pairs = [transform(row, tokenizer=tokenizer) for row in rows]
            found[name] = [{"text": pair["prompt"], "loss": pair["chosen"]} for pair in pairs]
            continue
        strategy = load(given.type, tokenizer, config, given)
        read = [strategy.tokenize_prompt(row) for row in rows]
        found[name] = [learned(tokenizer, row["input_ids"], row["labels"]) for row in read]
    return found


def verl(tokenizer_folder: str) -> dict[str, list[Row]]:
    """Its own multi-turn reader, as the class beside the files adapts it."""
    sys.meta_path.insert(0, EmptyModules("ray", "verl.models.transformers.qwen2_vl"))
    from transformers import AutoTokenizer

    spec = importlib.util.spec_from_file_location("verl_dataset", "verl_dataset.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    config = {"pad_mode": "no_padding", "max_length": 100_000, "ignore_input_ids_mismatch": True}
    rows = module.ApprovedTurnsDataset("verl.train.parquet", tokenizer, config)
    found = []
    for number in range(len(rows)):
        row = rows[number]
        marks = zip(row["input_ids"].tolist(), row["loss_mask"].tolist(), strict=True)
        labels = [token if mark else IGNORED for token, mark in marks]
        found.append(learned(tokenizer, row["input_ids"].tolist(), labels))
    return {"verl": found}


def trl(model_folder: str) -> dict[str, list[Row]]:
    """Its own command for each configuration: one step of training on a tiny model, and the rows that it trained on."""
    import trl
    from transformers import AutoConfig, AutoModelForCausalLM
    from trl.scripts import dpo, kto, sft

    AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model_folder)).save_pretrained(model_folder)
    found: dict[str, list[Row]] = {}
    commands = {"sft": (sft, trl.SFTTrainer), "dpo": (dpo, trl.DPOTrainer), "kto": (kto, trl.KTOTrainer)}
    for name, (script, trainer_class) in commands.items():
        if not Path(f"trl-{name}.yaml").exists():
            continue
        made: list[Any] = []
        original = trainer_class.__init__

        def remember(self: Any, *args: Any, original: Any = original, made: list[Any] = made, **options: Any) -> None:
            original(self, *args, **options)
            made.append(self)

        trainer_class.__init__ = remember
        options = ["--model_name_or_path", model_folder, "--max_steps", "1", "--report_to", "none", "--use_cpu", "true"]
        options += ["--gradient_accumulation_steps", "2", "--bf16", "false", "--gradient_checkpointing", "false"]
        arguments = script.make_parser().parse_args_and_config(["--config", f"trl-{name}.yaml", *options])
        script.main(*arguments)
        (trainer,) = made
        assert trainer.state.global_step == 1
        rows = trainer.train_dataset
        if name == "sft":
            found[name] = [learned(trainer.processing_class, row["input_ids"], row["labels"]) for row in rows]
        else:
            found[name] = [{"text": "", "loss": ""} for _ in rows]
    return found


def grpo(model_folder: str) -> dict[str, list[Row]]:
    """One step of TRL's GRPO on the prompts, and what its reward function was given."""
    from datasets import load_dataset
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer

    seen: list[Row] = []

    def reward(completions: Any, task: Any, info: Any, **_: Any) -> list[float]:
        seen.extend({"text": name, "loss": one["scenario"]} for name, one in zip(task, info, strict=True))
        return [float(number % 2) for number, _ in enumerate(completions)]

    options = GRPOConfig(
        output_dir="out",
        max_steps=1,
        num_generations=2,
        per_device_train_batch_size=2,
        max_completion_length=8,
        gradient_checkpointing=False,
        report_to="none",
        use_cpu=True,
        bf16=False,
        save_strategy="no",
    )
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(model_folder)),
        args=options,
        train_dataset=load_dataset("json", data_files="rl-prompts.train.jsonl", split="train"),
        reward_funcs=reward,
        processing_class=AutoTokenizer.from_pretrained(model_folder),
    )
    trainer.train()
    assert trainer.state.global_step == 1
    return {"rl-prompts": seen}


def prm(model_folder: str) -> dict[str, list[Row]]:
    """One step of the last process reward trainer of TRL on the labelled steps. `loss` is the text in front of each
    label, with the label."""
    import math

    from datasets import load_dataset
    from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer
    from trl.experimental.prm import PRMConfig, PRMTrainer

    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    options = PRMConfig(
        output_dir="out",
        max_steps=1,
        max_length=None,
        gradient_checkpointing=False,
        report_to="none",
        use_cpu=True,
        bf16=False,
        save_strategy="no",
    )
    trainer = PRMTrainer(
        model=AutoModelForTokenClassification.from_config(AutoConfig.from_pretrained(model_folder, num_labels=2)),
        args=options,
        train_dataset=load_dataset("json", data_files="stepwise.train.jsonl", split="train"),
        processing_class=tokenizer,
    )
    trained = trainer.train()
    assert trainer.state.global_step == 1 and math.isfinite(trained.training_loss)
    found = []
    for row in trainer.train_dataset:
        parts, begin = [], 0
        for end, label in enumerate(row["labels"], start=1):
            if label != IGNORED:
                parts.append(f"{tokenizer.decode(row['input_ids'][begin:end])}{label}")
                begin = end
        found.append({"text": tokenizer.decode(row["input_ids"]), "loss": "|".join(parts)})
    return {"stepwise": found}


READERS: dict[str, Callable[[str], dict[str, list[Row]]]] = {
    "llamafactory": llamafactory,
    "axolotl": axolotl,
    "verl": verl,
    "trl": trl,
    "grpo": grpo,
    "prm": prm,
}

if __name__ == "__main__":
    reader, folder, model = sys.argv[1:4]
    os.chdir(folder)
    Path("read.json").write_text(json.dumps(READERS[reader](model)))
