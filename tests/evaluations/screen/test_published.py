"""The published figures, from the recorded answers served by a stub endpoint."""

import json
from typing import Any

import pytest

from curation.evaluations.screen.figures import Row, number, overall
from tests.evaluations.evaluating import at_server, evaluate, make_split, published, says
from tests.factories import make_project
from tests.model_server import ModelServer
from tests.parts import shared_data

pytestmark = pytest.mark.django_db(transaction=True)
SENT = 27
# The rows that the published report prints; its seconds are of another machine.
PRINTED = (
    "qwen2.5-coder-3b-instruct             27    0   85%   100%     41%   70%   63%  3.1s   86",
    "smollm2-1.7b-instruct                 27    0   63%    63%      7%   63%   37%  2.1s   87",
    "smollm-360m-instruct                  27    0    0%    63%      0%   26%    7%  1.7s  402",
    "smollm2-360m-instruct                 27    0   52%    52%      0%   48%   33%  1.0s  137",
    "deepseek-r1-distill-qwen-1.5b         27    0    0%     0%      0%    0%    0%  4.1s    0",
)
RECORDED = {
    "n": "n",
    "errors": "errors",
    "fmt": "format_ok_pct",
    "xtr": "format_after_extract_pct",
    "exact": "exact_match_pct",
    "svc": "service_match_pct",
    "op_token": "operation_match_pct",
}


def test_recorded_answers_give_their_recorded_figures(server: ModelServer) -> None:
    recorded = recordings()
    rows = published("val")
    project = make_project()
    split = make_split(project, rows)
    sent = [rows[number] for number in first_of_each(rows)]
    for name, model in recorded.items():
        assert [call["task_id"] for call in model["calls"]] == [row["task_id"] for row in sent]
        says(server, name, sent, [call["completion"] for call in model["calls"]])
        at_server(project, server, name)

    evaluation = evaluate(project, split, list(recorded), max_per_combo=3)

    figures = overall(evaluation)
    assert [row["model"] for row in figures] == [line.split()[0] for line in PRINTED]
    assert all(server.counts(name).answered == SENT for name in recorded)
    for row, line in zip(figures, PRINTED, strict=True):
        aggregate = recorded[str(row["model"])]["aggregate"]
        assert {name: row[name] for name in RECORDED} == {name: aggregate[key] for name, key in RECORDED.items()}
        # Recorded with one decimal.
        assert float(str(row["len"])) == pytest.approx(aggregate["avg_len_chars"], abs=0.051)
        # Only the seconds differ from the printed row: they are the recording's.
        assert printed({**row, "lat": aggregate["avg_latency_s"]}) == line


def printed(row: Row) -> str:
    """The row as the published report prints it: shares as whole percent, seconds with one decimal, characters cut."""
    shares = zip(("fmt", "xtr", "exact", "svc", "op_token"), (6, 7, 8, 6, 6), strict=True)
    cells = "".join(f"{round(100 * number(row, name))}%".rjust(width) for name, width in shares)
    lat = f"{number(row, 'lat'):.1f}s"
    return f"{row['model']!s:<36}{row['n']!s:>4}{row['errors']!s:>5}{cells}{lat:>6}{int(number(row, 'len')):>5}"


def recordings() -> dict[str, Any]:
    models: dict[str, Any] = json.loads(shared_data("aws_cli", "recorded_completions.json").read_text())["models"]
    return models


def first_of_each(rows: list[dict[str, Any]], most: int = 3) -> list[int]:
    """Places of the first rows of each difficulty and source, counted here by other means than the product's."""
    seen: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        seen.setdefault((row["difficulty"], row["source"]), []).append(place)
    return sorted(place for places in seen.values() for place in places[:most])
