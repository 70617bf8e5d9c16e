"""Copies: the same bundle in other words and another order is found, another task around the same provider is not."""

import json
import random
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curation import scenarios
from curation.dashboard import demo
from curation.llm.scripted.teacher import write_bundle
from curation.scenarios.copies import _KEPT, THRESHOLD, copy_signature
from curation.scenarios.models import ScenarioSignature
from judging.near_duplicates import near_matrix
from tests.factories import BUNDLE

Bundle = dict[str, Any]
FOLDERS = (Path(scenarios.__file__).parent / "shipped", Path(demo.__file__).parent / "files" / "scenarios")
BUNDLES: list[Bundle] = [
    json.loads(path.read_text(encoding="utf-8")) for folder in FOLDERS for path in sorted(folder.glob("*.json"))
]


def rewritten(bundle: Bundle, share: float, seed: int = 0) -> Bundle:
    """The bundle with its fixtures in another order, and a share of its names, paths and words replaced everywhere."""
    dice = random.Random(seed)
    texts = [bundle["reference_solution"], bundle["announcement"]["text"]]
    texts += [text for file in bundle["fixtures"] for text in (file["path"], file.get("content") or "")]
    # A letter after a backslash is an escape; short words are options and awk's.
    names = sorted({word for text in texts for word in re.findall(r"(?<![\\\w-])[a-z_]{4,}", text)} - _KEPT)
    others = {name: f"x{number}y" for number, name in enumerate(names) if dice.random() < share}

    def other(text: str) -> str:
        return re.sub(r"(?<![\\\w-])[a-z_]{4,}", lambda found: others.get(found[0], found[0]), text)

    fixtures = [
        {**file, "path": other(file["path"]), **({"content": other(file["content"])} if file.get("content") else {})}
        for file in bundle["fixtures"]
    ]
    dice.shuffle(fixtures)
    return {
        **bundle,
        "fixtures": fixtures,
        "announcement": {**bundle["announcement"], "text": other(bundle["announcement"]["text"])},
        "reference_solution": other(bundle["reference_solution"]),
    }


def likeness(first: Bundle, second: Bundle) -> float:
    return compared(copy_signature(first), copy_signature(second))


def compared(left: ScenarioSignature, right: ScenarioSignature) -> float:
    if left.exact == right.exact:
        return 1.0
    if not (left.near and right.near):
        return 0.0
    minima = near_matrix([bytes(left.near), bytes(right.near)])
    return float(np.mean(minima[0] == minima[1]))


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_other_names_and_another_order_are_the_same_scenario(share: float) -> None:
    alike = {bundle["name"]: likeness(bundle, rewritten(bundle, share)) for bundle in BUNDLES}
    assert {name: value for name, value in alike.items() if value < THRESHOLD} == {}


def test_the_shipped_scenarios_are_all_different() -> None:
    signed = {bundle["name"]: copy_signature(bundle) for bundle in BUNDLES}
    alike = {(a, b): compared(signed[a], signed[b]) for a, b in combinations(signed, 2)}
    assert {pair: value for pair, value in alike.items() if value >= THRESHOLD} == {}


def test_the_scripted_teachers_tasks_differ_and_its_themes_do_not() -> None:
    def written(task: str, provider: str, lot: int) -> Bundle:
        order = {"task": task, "provider": provider, "announcement": "motd", "doc_depth": "help", "difficulty": "1"}
        return write_bundle(order, lot)

    assert likeness(written("archive", "spool", 1), written("archive", "spool", 2)) >= THRESHOLD
    assert likeness(written("archive", "spool", 1), written("archive", "fifo", 1)) < THRESHOLD
    assert likeness(written("archive", "spool", 1), written("log-analysis", "spool", 1)) < THRESHOLD


def test_a_short_bundle_is_a_copy_only_if_its_work_has_the_same_form() -> None:
    renamed = {**BUNDLE, "reference_solution": "todo > /dev/null\necho 'good night' > farewell.txt\nexit"}
    counted = {**BUNDLE, "reference_solution": "todo > /dev/null\nwc -l greeting.txt > count.txt\nexit"}
    assert likeness(BUNDLE, renamed) == 1.0
    assert likeness(BUNDLE, counted) < THRESHOLD
