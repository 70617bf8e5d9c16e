"""`README.md` of an export: a dataset card for people, the Hugging Face hub and `datasets`."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from curation.exports.files.counts import BINS, ExportCounts, ending_shares
from curation.exports.files.manifest import origin_sentences
from curation.exports.formats import FORMATS
from curation.exports.formats.row import Column, Columns
from curation.exports.hygiene.held_out import paraphrase_coverage, short_rows_note
from curation.exports.models import Export, ExportFile
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.images import FOLDER, is_image
from curation.exports.rows.skip_reasons import SkipReason
from curation.projects.models import Project
from curation.web.text.figures import counted, percent
from judging.contamination.levels import Level
from judging.messages import TOKENIZER

BAR = 40
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_REASONING = {
    "drop": "Models' thinking text is never part of a row.",
    "keep": "Models' thinking text is in `reasoning_content`, in formats that have such a field; nobody reviewed it.",
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+!|~-])")


def card(
    export: Export, recipe: Recipe, counts: ExportCounts, files: Sequence[ExportFile], columns: Mapping[str, Columns]
) -> str:
    """Return the card as Markdown with YAML front matter. `files` are the data files and the lists beside them;
    `columns` are those of each format."""
    project = export.project
    sections = [
        _front_matter(project, recipe, counts, files, columns),
        f"# {_plain(project.name)}",
        origin_sentences(export, counts),
        "## Files\n\n" + _files(files),
        "## Training\n\n" + _training(recipe, counts, files),
        *_labels(recipe, counts),
        "## Counts\n\n" + _counts(recipe, counts),
        "## Skipped\n\n" + _skip_reasons(counts),
        *_contamination(counts),
        "## Scores of the exported samples\n\n" + _histogram(counts),
        *_terminals(project, counts),
        "## How it was made\n\n" + _making(recipe, counts),
    ]
    return "\n\n".join(sections) + "\n"


def _front_matter(
    project: Project, recipe: Recipe, counts: ExportCounts, files: Sequence[ExportFile], columns: Mapping[str, Columns]
) -> str:
    """Return the front matter. Strings are JSON, which is YAML too.

    The first format is the default configuration. `datasets` reads all files of a folder with one reader, so formats
    that are stored in another way have no configuration.
    """
    configs: dict[str, list[ExportFile]] = defaultdict(list)
    for file in files:
        if file.format:
            configs[file.format].append(file)
    names = [name for name in recipe.formats if name in configs and FORMATS[name].columns]
    names = [name for name in names if recipe.storage(name) == recipe.storage(names[0])]
    size = next((name for limit, name in SIZES if counts.exported < limit), "n>1M")
    lines = ["---", f"pretty_name: {json.dumps(project.name)}", "tags:", "- agent", "- winnow"]
    lines += ["size_categories:", f"- {size}"]
    if license := project.settings.export.license:
        lines.append(f"license: {json.dumps(license)}")
    if names:
        lines.append("configs:")
    for name in names:
        lines += [f"- config_name: {name}", *(["  default: true"] if name == names[0] else []), "  data_files:"]
        for file in configs[name]:
            lines += [f"  - split: {file.split}", f"    path: {file.name}"]
    if names:
        # Without it a reader would take the columns from the first rows of a file.
        lines.append("dataset_info:")
    for name in names:
        lines += [f"- config_name: {name}", "  features:", *_features(columns[name], "  ")]
    return "\n".join([*lines, "---"])


def _features(columns: Columns, indent: str) -> list[str]:
    lines = []
    for name, column in columns.items():
        lines.append(f"{indent}- name: {name}")
        lines += _type("dtype", column, f"{indent}  ")
    return lines


def _type(key: str, column: Column, indent: str) -> list[str]:
    if isinstance(column, str):
        return [f"{indent}{key}: {column}"]
    if isinstance(column, list):
        return _type("list", column[0], indent)
    return [f"{indent}{'struct' if key == 'dtype' else key}:", *_features(column, indent)]


def _files(files: Sequence[ExportFile]) -> str:
    images = [f for f in files if is_image(f.name)]
    rows = [f"| `{f.name}` | {f.rows} | {f.bytes} | `{f.sha256}` |" for f in files if f not in images]
    notes = [f"- `{name}`: {form.about}" for name, form in FORMATS.items() if any(f.format == name for f in files)]
    if images:
        size = sum(f.bytes for f in images)
        notes.append(
            f"- `{FOLDER}/`: {counted(len(images), 'image')} of {size:,} bytes, which the column `images` names"
        )
    notes += ["- `frozen.jsonl`: each sample at the time of the export, and the sha256 of its rows"]
    notes += ["- `excluded.jsonl`: skipped samples, and why", "- `manifest.json`: all of this for programs"]
    return "\n".join(["| file | rows | bytes | sha256 |", "| --- | ---: | ---: | --- |", *rows, "", *notes])


def _training(recipe: Recipe, counts: ExportCounts, files: Sequence[ExportFile]) -> str:
    """Return the parts of a row of each format that a trainer trains on, and the commands that start the trainer."""
    data = counts.data_files(files)
    lines = [f"- `{name}`: {FORMATS[name].trained}." for name in recipe.formats]
    for trainer in recipe.trainers():
        if commands := trainer.commands(data):
            lines += ["", f"With {trainer.title}, in this folder (put your model in the configuration):"]
            lines += ["", "```sh", *commands, "```"]
    return "\n".join(lines)


def _labels(recipe: Recipe, counts: ExportCounts) -> list[str]:
    """Return the section about the labels of KTO, or nothing without them."""
    rows = [
        f"| {name} | {found.desirable} | {found.undesirable} | {_range(found.desirable_weight)} |"
        f" {_range(found.undesirable_weight)} |"
        for name, found in counts.label_balances(recipe).items()
    ]
    if not rows:
        return []
    text = "TRL recommends one of these two weights for the rows of the training split, with 1 for the other."
    head = ["| format | desirable | undesirable | `desirable_weight` | or `undesirable_weight` |"]
    return ["## Labels", text, "\n".join([*head, "| --- | ---: | ---: | ---: | ---: |", *rows])]


def _range(weights: Sequence[float]) -> str:
    return f"{weights[0]:g} to {weights[1]:g}"


def _counts(recipe: Recipe, counts: ExportCounts) -> str:
    splits = list(recipe.splits)
    head = ["| format | " + " | ".join(splits) + " |", "| --- |" + " ---: |" * len(splits)]
    rows = [
        f"| {name} | " + " | ".join(str(counts.rows[name, split]) for split in splits) + " |" for name in recipe.formats
    ]
    text = f"{counted(counts.samples, 'sample')} matched the filter, {counts.exported:,} gave at least one row."
    empty = "A split without rows has no file." if any(" 0 " in row for row in rows) else ""
    return "\n".join([text, "", *head, *rows, *(["", empty] if empty else [])])


def _skip_reasons(counts: ExportCounts) -> str:
    rows = [f"| {r.value} | {counts.skipped[r]} | {r.label} |" for r in SkipReason if counts.skipped[r]]
    if not rows:
        return "Nothing."
    table = "\n".join(["| reason | samples | |", "| --- | ---: | --- |", *rows])
    return "\n\n".join([table, *(f"**Warning:** {text}" for text in counts.large_removals())])


def _contamination(counts: ExportCounts) -> list[str]:
    """Return the section about held-out sets, or nothing if the recipe names none."""
    found: Any = counts.plan.get("contamination")
    if found is None:
        return []
    done = "Such samples are left out." if found["left_out"] else "Such samples are still exported."
    number = f"{counted(found['samples'], 'sample')} {'contains' if found['samples'] == 1 else 'contain'}"
    sets = [f"| {_plain(one['label'])} | {one['rows']} | `{one['sha256']}` |" for one in found["held_out"]]
    levels = [f"- {level.sentence}: {found['levels'][level.value]}" for level in Level if level in found["levels"]]
    table = "\n".join(["| held-out set | rows | sha256 of the rows |", "| --- | ---: | --- |", *sets])
    short = short_rows_note(sum(one.get("whole_only", 0) for one in found["held_out"]))
    said = [f"{number} a held-out row.", done, short, paraphrase_coverage(found["embedded"], found["not_embedded"])]
    return ["## Contamination", " ".join(filter(None, said)), table, "\n".join(levels)]


def _histogram(counts: ExportCounts) -> str:
    most = max(counts.histogram) or 1
    width = 100 // BINS
    lines = []
    for number, count in enumerate(counts.histogram):
        bar = "█" * max(round(BAR * count / most), 1 if count else 0)
        lines.append(f"{number * width:>3}–{(number + 1) * width:<3} {bar:<{BAR}} {count}".rstrip())
    if counts.unscored:
        lines.append(f"not scored: {counts.unscored}")
    return "\n".join(["```text", *lines, "```"])


def _terminals(project: Project, counts: ExportCounts) -> list[str]:
    """Return the section about trajectories, or nothing without them."""
    balance = counts.balance()
    if balance is None:
        return []
    rows = [f"| {name} | {percent(share, 1)} |" for name, share in ending_shares(balance.as_json())]
    kept = counted(balance.kept, "trajectory")
    text = f"Shares of {kept}, by terminal and by tasks with nothing to do or no way forward."
    table = "\n".join([text, "", "| | share |", "| --- | ---: |", *rows])
    warnings = [f"**Warning:** {text}" for text in balance.warnings(project.settings.balance)]
    return ["## Terminals of the exported trajectories", table, *warnings]


def _making(recipe: Recipe, counts: ExportCounts) -> str:
    shares = ", ".join(f"{name} {share:g}" for name, share in recipe.splits.items())
    lines = [
        f"- Splits ({shares}) are drawn by a hash of seed {recipe.seed} and the row's `{counts.plan['group_by']}`. Rows"
        " of one group are never in two splits. Turns without one are grouped by the row of their source. The"
        " `instance_id` of a trajectory is its scenario.",
        f"- Preferences and rows to avoid come from: {', '.join(recipe.sources)}.",
        "- Only answers and trajectories are chosen that a person approved, or a guarantee where the counts name one. "
        f"{_REASONING[recipe.reasoning]} Of a trajectory, a row has the terminal's output and the typed input: no "
        "instructions, no prose.",
    ]
    if recipe.max_tokens is not None:
        lines.append(f"- Rows over {recipe.max_tokens} tokens are skipped ({TOKENIZER}).")
    if recipe.metadata:
        lines.append("- `score` is 0 to 100, from the challenger's side; -1 means that it was never scored.")
        lines.append(
            "- Columns `label_…` answer the project's own questions: the answer of the person who approved the sample,"
            " else the newest. Empty or -1: nobody answered. A span counts code points of the text as recorded, or of"
            " its `revision`, before anything is masked."
        )
    return "\n".join([*lines, "", "```json", json.dumps(recipe.model_dump(mode="json"), indent=2), "```"])


def _plain(text: str) -> str:
    """Return a name with its Markdown characters escaped."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))
