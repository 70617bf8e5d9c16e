"""TRL's own data helpers read the files as its trainers do, turns and sessions alike; without a model or PyTorch."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from curation.exports.models import Export
from curation.projects.models import Project
from curation.trajectories.models import Outcome, Strategy
from tests.exports.exporting import content, export_of, make_approved, make_kept, make_pair
from tests.factories import CHALLENGER, KING, PROMPT, make_project, make_scenario, make_trajectory, make_user

pytestmark = pytest.mark.django_db(transaction=True)
RECIPE: dict[str, Any] = {"formats": ["sft-messages", "dpo"], "filter": {"status": "approved"}, "metadata": True}
# Roles must alternate, as many models' templates insist.
TEMPLATE = """{% for message in messages %}{% if not loop.first and message.role == loop.previtem.role %}
{{ raise_exception("two turns of one role") }}{% endif %}<|{{ message.role }}|>{{ message.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""
ORIENTATION = f"Work is announced by: todo\n{PROMPT}"


@pytest.fixture(scope="module")
def trl() -> Any:
    """Imported late: each process of the tests reads this module, and one runs it. It passes no strict type checks."""
    return import_module("trl.data_utils")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    """A tokenizer of one word with a chat template, without a download."""
    tokenizers, transformers = import_module("tokenizers"), import_module("transformers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, chat_template=TEMPLATE)


def exported(project: Project) -> Export:
    """A turn, a session with a pair at the first divergence and a pair of whole trajectories, a panic."""
    user, scenario = make_user(), make_scenario(project)
    make_approved(project, by=user)
    kept = make_kept(project, scenario, by=user)
    lost: dict[str, Any] = {"outcome": Outcome.NO_TERMINAL, "terminal": "", "commands": ("todo --help", "ls")}
    failed = make_trajectory(project, scenario, **lost, outputs=("usage: todo\n", ""))
    for strategy in Strategy.values:
        make_pair(kept, failed, strategy)
    make_kept(project, by=user, outcome=Outcome.CORRECT_PANIC, terminal="panic locked")
    return export_of(project, RECIPE)


def load(export: Export, name: str, folder: Path) -> Any:
    path = folder / name
    path.write_bytes(content(export, name))
    datasets = import_module("datasets")
    return datasets.load_dataset("json", data_files=str(path), cache_dir=str(folder / "cache"))["train"]


def test_sessions_become_the_text_that_sft_learns_from(tmp_path: Path, trl: Any, tokenizer: Any) -> None:
    loaded = load(exported(make_project()), "sft-messages.train.jsonl", tmp_path)
    assert all(trl.is_conversational(row) for row in loaded)
    texts = [trl.maybe_apply_chat_template(row, tokenizer)["text"] for row in loaded]
    assert f"<|assistant|>{CHALLENGER}<|end|>" in texts[0]
    assert texts[1].startswith(f"<|user|>{ORIENTATION}<|end|>\n<|assistant|>todo --help<|end|>")
    assert texts[1].endswith("<|assistant|>exit<|end|>\n")
    assert texts[2].endswith("<|assistant|>panic locked<|end|>\n")


def test_preferences_begin_where_the_prompt_ends_on_both_sides(tmp_path: Path, trl: Any, tokenizer: Any) -> None:
    loaded = load(exported(make_project()), "dpo.train.jsonl", tmp_path)
    assert all(trl.is_conversational(row) for row in loaded)
    assert trl.maybe_extract_prompt(loaded[0]) == loaded[0]  # the prompt is explicit
    turn, parted, whole = (trl.maybe_apply_chat_template(row, tokenizer) for row in loaded)
    assert (turn["chosen"], turn["rejected"]) == (f"{CHALLENGER}<|end|>\n", f"{KING}<|end|>\n")
    assert (parted["chosen"], parted["rejected"]) == ("todo<|end|>\n", "ls<|end|>\n")
    assert parted["prompt"].endswith(f"<|user|>usage: todo\n{PROMPT}<|end|>\n<|assistant|>")
    assert whole["prompt"] == f"<|user|>{ORIENTATION}<|end|>\n<|assistant|>"
    assert whole["chosen"].startswith("todo --help<|end|>") and whole["chosen"].endswith("<|assistant|>exit<|end|>\n")
    assert whole["rejected"].endswith("<|assistant|>ls<|end|>\n")


def test_preferences_can_be_taken_apart_for_kto(tmp_path: Path, trl: Any) -> None:
    loaded = load(exported(make_project()), "dpo.train.jsonl", tmp_path)
    apart = trl.unpair_preference_dataset(loaded.select_columns(["prompt", "chosen", "rejected"]))
    assert apart["label"] == [True] * 3 + [False] * 3
    assert apart[2]["completion"][-1] == {"role": "assistant", "content": "exit"}
