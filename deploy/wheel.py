"""How the wheel is built: the command line, and the whole site in its folder `server`.

The site's top folders have names such as `config`, which an installed package must not claim for itself.
"""

import shutil
from pathlib import Path

from setuptools.command.build_py import build_py

SERVER = "winnow/server"
SITE = ("config", "curation", "judging", "sandbox", "templates", "static", "docs", "manage.py", "gunicorn.conf.py")
# What a source archive needs besides, to build the same wheel.
BUILD = (
    *("deploy/wheel.py", "requirements/agents.in", "requirements/base.in", "requirements/client.in"),
    *("requirements/live.in", "requirements/mcp.in", "requirements/oidc.in", "requirements/postgres.in"),
    *("requirements/predict.in", "requirements/s3.in", "requirements/telemetry.in", "requirements/train.in"),
)


def site_files() -> list[Path]:
    found = [path for name in SITE for path in (Path(name), *Path(name).rglob("*")) if path.is_file()]
    return sorted(path for path in found if "__pycache__" not in path.parts and path.suffix not in {".pyc", ".pyo"})


class BuildSite(build_py):
    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        # An earlier build may have files that are deleted since.
        shutil.rmtree(Path(self.build_lib, SERVER), ignore_errors=True)
        for source, target in self._copies().items():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), *map(str, self._copies().values())]

    def get_source_files(self) -> list[str]:
        return [*super().get_source_files(), *map(str, site_files()), *BUILD]

    def _copies(self) -> dict[Path, Path]:
        return {source: Path(self.build_lib, SERVER, source) for source in site_files()}
