"""Upload the files of a format beside this script and start a fine-tuning job on them.

Usage: OPENAI_API_KEY=… python openai_finetune.py openai-sft|openai-preference [model]
"""

import gzip
import sys
from pathlib import Path

from openai import OpenAI

FOLDER = Path(__file__).resolve().parent
MODEL = "gpt-4.1-mini-2025-04-14"


def upload(client: OpenAI, format: str, split: str) -> str | None:
    """Return the id of the uploaded file, or None if the split has no file."""
    plain = FOLDER / f"{format}.{split}.jsonl"
    packed = plain.with_name(f"{plain.name}.gz")
    if not plain.exists() and not packed.exists():
        return None
    data = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
    return client.files.create(file=(plain.name, data), purpose="fine-tune").id


def main(format: str, model: str = MODEL) -> None:
    client = OpenAI()
    train, val = upload(client, format, "train"), upload(client, format, "val")
    if train is None:
        sys.exit(f"There is no {format}.train.jsonl beside this script. Export this format as JSONL.")
    optional = {} if val is None else {"validation_file": val}
    method = "dpo" if format == "openai-preference" else "supervised"
    job = client.fine_tuning.jobs.create(model=model, training_file=train, method={"type": method}, **optional)
    print(f"job {job.id}: {job.status}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:3])
