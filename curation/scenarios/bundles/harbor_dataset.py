"""Admitted scenarios of both families as a Harbor data set: a folder per task, and `registry.json`."""

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import SpooledTemporaryFile
from typing import IO

from curation.projects.models import Project
from curation.scenarios.bundles.document import setup_of, stored_bundle
from curation.scenarios.bundles.files import IN_MEMORY, STAMP
from curation.scenarios.bundles.harbor import is_harbor, stored_task
from curation.scenarios.models import GateReport, Scenario, ScenarioQuerySet
from curation.web.problems import Invalid
from sandbox.harbor.export import IMAGE, NotExported, registry, task_of
from sandbox.harbor.task_folder import CONFIG, TaskFolder

TASKS, CHUNK = "tasks", 200
_IMAGE = re.compile(r"[A-Za-z0-9][\w./:@-]{0,254}")
_OTHER = re.compile(r"[^a-z0-9._-]+")


@dataclass(slots=True)
class HarborDataset:
    """`image` is the base of the machines of bundles: Debian or Ubuntu with Perl. Raises `Invalid` for a name that is
    none. Harbor fetches the tasks from the repository `git_url`. `skipped` has the scenarios that were left out with
    the reasons, once `files` has been read."""

    project: Project
    rows: ScenarioQuerySet
    image: str = IMAGE
    version: str = "1.0.0"
    git_url: str = ""
    skipped: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _IMAGE.fullmatch(self.image):
            raise Invalid.at("image", f"{self.image[:100]!r} is no name of an image.")

    def files(self) -> Iterator[tuple[str, bytes, int]]:
        """Yield the path, content and permissions of each file; `registry.json` and `skipped.json` are the last."""
        tasks: dict[str, str] = {}
        for row in self.rows.admitted().with_bundle().order_by("id").iterator(CHUNK):
            folder = PurePosixPath(TASKS, f"{row.pk}-{slug_of(row.name)}")
            try:
                task = self._task(row)
            except NotExported as refused:
                self.skipped[row.name] = str(refused)
                continue
            except Invalid as refused:
                self.skipped[row.name] = refused.detail
                continue
            tasks[task.name or folder.name] = str(folder)
            for path, file in sorted(task.files.items()):
                yield str(folder / path), file.data, file.mode
        about = f"Scenarios of {self.project.name}"
        listed = registry(slug_of(self.project.slug), self.version, about, tasks, self.git_url)
        yield "registry.json", _json(listed), 0o644
        yield "skipped.json", _json(self.skipped), 0o644

    def write(self, folder: Path) -> int:
        count = 0
        for name, data, mode in self.files():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(mode)
            count += path.name == CONFIG
        return count

    def archive(self) -> IO[bytes]:
        """A ZIP archive of the data set, open for reading; a large one is a temporary file."""
        found = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - the caller closes it
        with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, data, mode in self.files():
                entry = zipfile.ZipInfo(name, STAMP)
                entry.external_attr = mode << 16
                packed.writestr(entry, data, zipfile.ZIP_DEFLATED)
        found.seek(0)
        return found

    def _task(self, row: Scenario) -> TaskFolder:
        report = GateReport.objects.newest_of([row]).get(row.pk)
        provenance: dict[str, object] = {
            "project": self.project.slug,
            "scenario": row.name,
            "bundle_sha256": row.bundle_sha256,
            "version": row.version,
            "authored_by": row.authored_by,
            "axes": row.axes,
            "gated_at": report.created_at.isoformat() if report else "",
            "gated_by": report.backend if report else "",
        }
        document = row.text.bundle
        if is_harbor(document):
            task = stored_task(document)
            return task.changed({}, metadata={"winnow": {**provenance, "source": document.get("source", "")}})
        bundle = stored_bundle(document)
        return task_of(
            name=f"{row.pk}-{slug_of(row.name)}",
            title=row.title,
            setup=setup_of(bundle),
            reference=bundle.reference_solution,
            checker=bundle.checker,
            expected_terminal=bundle.expected_terminal,
            provenance={**provenance, "expected_terminal": bundle.expected_terminal},
            image=self.image,
        )


def slug_of(name: str) -> str:
    """A name that Harbor and file systems take."""
    return _OTHER.sub("-", name.lower()).strip("-.")[:80] or "scenario"


def _json(value: object) -> bytes:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode()
