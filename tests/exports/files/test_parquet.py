"""The writer of Parquet: every value is read back as it was, in the order of the lines, in flat memory."""

import io
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.exports.files.parquet import write_parquet
from curation.exports.formats.row import Column, Columns

ROOT = Path(__file__).resolve().parents[3]
COLUMNS: Columns = {
    "text": "string",
    "flag": "bool",
    "number": "int64",
    "score": "float64",
    "value": "json",
    "values": ["json"],
    "names": ["string"],
    "messages": [{"role": "string", "content": "string", "input": "json", "calls": [{"id": "string", "of": "json"}]}],
    'it\'s a "name"': {"x": "json", "y": "float64"},
}
PARTS = [
    "a",
    "\0",
    "\ud7ff",
    "\uffff",
    "\U0001f600",
    "\U0010ffff",
    "e\u0301",
    "\u2028",
    "\r",
    "\n",
    "\x1b",
    '"',
    "\\",
    "{",
]
NUMBERS = [0, 1, 2**63 - 1, -(2**63), 2**53 + 1]
SCORES = [0.1, -0.0, 3.0, 1e16, 1e22, 5e-324, 1.7976931348623157e308, 0.30000000000000004]


def made(rows: Iterable[dict[str, Any]], columns: Columns = COLUMNS) -> bytes:
    target, longest = io.BytesIO(), 0
    with tempfile.TemporaryFile() as lines:
        for row in rows:
            line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
            longest = max(longest, len(line))
            lines.write(line)
        write_parquet(lines, target, columns, longest)
    return target.getvalue()


def read(data: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(data))


def test_every_value_is_read_back_as_it_was() -> None:
    rng = random.Random(5)
    rows = [{name: _random(column, rng) for name, column in COLUMNS.items() if rng.random() < 0.9} for _ in range(3000)]

    found = read(made(rows)).to_pylist()

    for row, written in zip(rows, found, strict=True):
        assert repr(_parsed(written, dict(COLUMNS))) == repr(_filled(row, dict(COLUMNS)))


def test_json_is_text_that_the_metadata_name_and_no_rows_have_the_same_columns() -> None:
    some, none = read(made([{"value": [1]}])), read(made([]))

    assert (some.num_rows, none.num_rows) == (1, 0)
    assert some.schema.equals(none.schema, check_metadata=True)
    assert some.schema.field("value").type == pa.string()
    features = json.loads(some.schema.metadata[b"huggingface"])["info"]["features"]
    assert features["value"] == {"_type": "Json"}
    assert features["names"] == {"feature": {"dtype": "string", "_type": "Value"}, "_type": "List"}


def test_the_same_lines_give_the_same_bytes() -> None:
    rows = [{"text": f"{number % 97} " * 200, "number": number} for number in range(20_000)]

    data = made(rows)

    assert data == made(rows)
    assert read(data)["number"].to_pylist() == list(range(20_000))
    groups = pq.ParquetFile(io.BytesIO(data)).metadata
    assert groups.num_row_groups > 1
    assert max(groups.row_group(number).total_byte_size for number in range(groups.num_row_groups)) < 16 * 1024 * 1024


def test_long_rows_between_short_ones_are_written_in_flat_memory(tmp_path: Path) -> None:
    """160 MB of rows, 24 of them of 5 MB, in a process that counts what writing adds to its own memory."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import random, tempfile\n"
        "from pathlib import Path\n"
        "from curation.exports.files.parquet import write_parquet\n"
        "def peak(): return int(next(line for line in Path('/proc/self/status').read_text().splitlines()"
        " if line.startswith('VmHWM')).split()[1]) / 1024\n"
        "with tempfile.TemporaryFile() as lines, tempfile.TemporaryFile() as target:\n"
        "    noise = [random.Random(n).randbytes(2_500_000).hex() for n in range(2)]\n"
        "    for n in range(10_024):\n"
        "        size = 5_000_000 if 5_000 <= n < 5_024 else 4_000\n"
        '        lines.write(b\'{"text":"%d %s"}\\n\' % (n, noise[n % 2][:size].encode()))\n'
        "    before = peak()\n"
        "    write_parquet(lines, target, {'text': 'string'}, 5_000_100)\n"
        "    print(peak() - before)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 150


@pytest.mark.parametrize("value", [2**63, ["x"]])
def test_a_value_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(Exception, match="JSON transform error"):
        made([{"number": value}])


def _random(column: Column, rng: random.Random) -> Any:
    if rng.random() < 0.15:
        return None
    if isinstance(column, list):
        return [_random(column[0], rng) for _ in range(rng.randrange(4))]
    if isinstance(column, dict):
        return {name: _random(part, rng) for name, part in column.items() if rng.random() < 0.8}
    text = "".join(rng.choices(PARTS, k=rng.randrange(6)))
    scalars = {"string": text, "bool": True, "int64": rng.choice(NUMBERS), "float64": rng.choice(SCORES)}
    if column != "json":
        return scalars[column]
    simple = rng.choice([*scalars.values(), None, False, "", [], {}, 2**64 - 1])
    return rng.choice([simple, [simple, {text: simple}], {text: [simple], "": None}])


def _filled(value: Any, column: Column) -> Any:
    """The value as Parquet keeps it: a missing key is None."""
    if value is None or isinstance(column, str):
        return value
    if isinstance(column, list):
        return [_filled(part, column[0]) for part in value]
    return {name: _filled(value.get(name), part) for name, part in column.items()}


def _parsed(value: Any, column: Column) -> Any:
    if value is None or isinstance(column, str):
        return json.loads(value) if column == "json" and value is not None else value
    if isinstance(column, list):
        return [_parsed(part, column[0]) for part in value]
    return {name: _parsed(value[name], part) for name, part in column.items()}
