"""Harbor tasks as documents of scenarios."""

from typing import Any

from curation.scenarios.bundles.harbor import TaskPart
from tests.sandbox.harbor.tasks import task_files


def harbor_document(name: str = "greet", **files: str | None) -> dict[str, Any]:
    parts = [TaskPart.of(*file).model_dump(exclude_none=True) for file in sorted(task_files(name, **files).items())]
    return {"family": "harbor", "name": f"acme/{name}", "files": parts}
