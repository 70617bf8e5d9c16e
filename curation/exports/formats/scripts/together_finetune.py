"""Upload the files of a format beside this script and start a fine-tuning job on them.

Usage: TOGETHER_API_KEY=… python together_finetune.py openai-sft|openai-preference [model]
"""

import gzip
import shutil
import sys
from pathlib import Path

from together import Together

FOLDER = Path(__file__).resolve().parent
MODEL = "Qwen/Qwen2.5-7B-Instruct"


def upload(client: Together, format: str, split: str) -> str | None:
    """Return the id of the uploaded file, or None if the split has no file. A compressed file is unpacked first."""
    plain = FOLDER / f"{format}.{split}.jsonl"
    packed = plain.with_name(f"{plain.name}.gz")
    if packed.exists() and not plain.exists():
        with gzip.open(packed) as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target)
    return client.files.upload(plain).id if plain.exists() else None


def main(format: str, model: str = MODEL) -> None:
    client = Together()
    train, val = upload(client, format, "train"), upload(client, format, "val")
    if train is None:
        sys.exit(f"There is no {format}.train.jsonl beside this script. Export this format as JSONL.")
    optional = {} if val is None else {"validation_file": val, "n_evals": 1}
    method = "dpo" if format == "openai-preference" else "sft"
    # False: only assistant messages are in the loss, and of these only the ones of weight 1.
    job = client.fine_tuning.create(
        model=model, training_file=train, training_method=method, train_on_inputs=False, **optional
    )
    print(f"job {job.id}: {job.status}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:3])
