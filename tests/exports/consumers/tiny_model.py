"""A tokenizer of single bytes with Qwen's chat template, and a model of two tiny layers with random weights."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

TEMPLATE = "qwen2_5.jinja"
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def write_tokenizer(folder: Path) -> Path:
    """Write the tokenizer's files. Each byte is a token, so that any text is decoded as it was."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    spec = find_spec("trl")
    assert spec is not None and spec.origin is not None
    template = (Path(spec.origin).parent / "chat_templates" / TEMPLATE).read_text()
    names: dict[str, Any] = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "chat_template": template}
    # It passes no strict type checks.
    transformers = import_module("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, additional_special_tokens=SPECIAL, **names)
    tokenizer.save_pretrained(folder)
    (folder / "config.json").write_text(
        '{"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 16, "intermediate_size": 32,'
        ' "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 264}'
    )
    return folder
