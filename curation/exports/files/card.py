"""`README.md` of an export: a dataset card that the Hugging Face hub and `datasets` read, and that a person can."""

import json
import re
from collections import defaultdict
from collections.abc import Sequence

from curation import __version__
from curation.exports.files.attempt import WrittenFile
from curation.exports.files.balance import ending_shares
from curation.exports.files.counts import BINS, Tally
from curation.exports.formats import FORMATS
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.skip_reasons import TOKENIZER, Reason
from curation.projects.models import Project

BAR = 40
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+!|~-])")


def card(project: Project, recipe: Recipe, tally: Tally, files: Sequence[WrittenFile]) -> str:
    """The card as Markdown with YAML front matter; `files` are the data files and lists that it stands beside."""
    sections = [
        _front_matter(project, tally, files),
        f"# {_plain(project.name)}",
        "Training data for agent models, judged by a panel of models and approved by people, exported by Winnow "
        f"{__version__}.",
        "## Files\n\n" + _files(files),
        "## Counts\n\n" + _counts(recipe, tally),
        "## Left out\n\n" + _left_out(tally),
        "## Scores of the exported samples\n\n" + _histogram(tally),
        *_terminals(project, tally),
        "## How it was made\n\n" + _making(recipe),
    ]
    return "\n\n".join(sections) + "\n"


def _front_matter(project: Project, tally: Tally, files: Sequence[WrittenFile]) -> str:
    """Strings are written as JSON, which is YAML too."""
    configs: dict[str, list[WrittenFile]] = defaultdict(list)
    for file in files:
        if file.format:
            configs[file.format + ("-tools" if ".tools." in file.name else "")].append(file)
    size = next((name for limit, name in SIZES if tally.exported < limit), "n>1M")
    lines = ["---", f"pretty_name: {json.dumps(project.name)}", "tags:", "- agent", "- winnow"]
    lines += ["size_categories:", f"- {size}"]
    if configs:
        lines.append("configs:")
    for name, parts in sorted(configs.items()):
        lines += [f"- config_name: {name}", "  data_files:"]
        for file in parts:
            lines += [f"  - split: {file.split}", f"    path: {file.name}"]
    return "\n".join([*lines, "---"])


def _files(files: Sequence[WrittenFile]) -> str:
    rows = [f"| `{f.name}` | {f.rows} | {f.bytes} | `{f.sha256}` |" for f in files]
    notes = [f"- `{name}`: {form.about}" for name, form in FORMATS.items() if any(f.format == name for f in files)]
    if any(".tools." in f.name for f in files):
        notes.append(
            "- `….tools.jsonl`: rows whose history calls tools. Each message has `tool_calls`, `tool_call_id` and"
            " `name` too, empty where they do not apply; arguments are a string of JSON."
        )
    notes += ["- `frozen.jsonl`: each sample that was looked at, as it stood, and the sha256 of its rows"]
    notes += ["- `excluded.jsonl`: what was left out, and why", "- `manifest.json`: all of this for programs"]
    return "\n".join(["| file | rows | bytes | sha256 |", "| --- | ---: | ---: | --- |", *rows, "", *notes])


def _counts(recipe: Recipe, tally: Tally) -> str:
    splits = list(recipe.splits)
    head = ["| format | " + " | ".join(splits) + " |", "| --- |" + " ---: |" * len(splits)]
    rows = [
        f"| {name} | " + " | ".join(str(tally.of(name, split)) for split in splits) + " |" for name in recipe.formats
    ]
    text = f"{tally.samples} samples matched the filter, {tally.exported} gave at least one row."
    empty = "A split without rows has no file." if any(" 0 " in row for row in rows) else ""
    return "\n".join([text, "", *head, *rows, *(["", empty] if empty else [])])


def _left_out(tally: Tally) -> str:
    rows = [f"| {r.value} | {tally.excluded[r]} | {r.label} |" for r in Reason if tally.excluded[r]]
    if not rows:
        return "Nothing."
    return "\n".join(["| reason | samples | |", "| --- | ---: | --- |", *rows])


def _histogram(tally: Tally) -> str:
    most = max(tally.histogram) or 1
    width = 100 // BINS
    lines = []
    for number, count in enumerate(tally.histogram):
        bar = "█" * max(round(BAR * count / most), 1 if count else 0)
        lines.append(f"{number * width:>3}–{(number + 1) * width:<3} {bar:<{BAR}} {count}".rstrip())
    if tally.unscored:
        lines.append(f"not scored: {tally.unscored}")
    return "\n".join(["```text", *lines, "```"])


def _terminals(project: Project, tally: Tally) -> list[str]:
    """A section only where trajectories are among the rows."""
    found = tally.endings.balance()
    if found is None:
        return []
    rows = [f"| {name} | {share:.1%} |" for name, share in ending_shares(found.as_json())]
    text = f"Shares of {found.kept} trajectories, by terminal and by tasks that hold nothing to do or no way on."
    table = "\n".join([text, "", "| | share |", "| --- | ---: |", *rows])
    warnings = [f"**Warning:** {words}" for words in found.warnings(project.settings.balance)]
    return ["## Terminals of the exported trajectories", table, *warnings]


def _making(recipe: Recipe) -> str:
    shares = ", ".join(f"{name} {share:g}" for name, share in recipe.splits.items())
    lines = [
        f"- Splits ({shares}) are drawn by a hash of seed {recipe.seed} and the row's `{recipe.group_by}`; rows of one"
        " group are never in two splits. Turns without one are grouped by the row of their source; the `instance_id` of"
        " a trajectory is its scenario.",
        f"- Preferences come from: {', '.join(recipe.sources)}.",
        "- Only answers and trajectories that a person approved are chosen. Thinking text of models is never part of a"
        " row, and of a trajectory only what the terminal showed and what was typed: no instructions, no prose.",
    ]
    if recipe.max_tokens is not None:
        lines.append(f"- Rows over {recipe.max_tokens} tokens are left out ({TOKENIZER}).")
    if recipe.metadata:
        lines.append("- `score` is 0 to 100, seen from the candidate's side; -1 means that it was never scored.")
    return "\n".join([*lines, "", "```json", json.dumps(recipe.model_dump(mode="json"), indent=2), "```"])


def _plain(text: str) -> str:
    """A name as text: none of its characters may act as Markdown."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
