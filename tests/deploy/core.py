"""An environment with the requirements of a wheel and nothing else, made from the packages that are installed here."""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def make_environment(folder: Path, wheels: Sequence[Path], extra: str = "") -> Path:
    """Install wheels in a new environment, with their requirements and those of an extra; return its programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    words = [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "--quiet", "--no-index"]
    subprocess.run([*words, "--no-deps", *map(str, wheels)], check=True)
    packages = next(folder.glob("lib/*/site-packages"))
    installed = [Distribution.at(path) for path in packages.glob("winnow_*.dist-info")]
    names = {one.name for one in installed}
    needed = [text for one in installed for text in one.requires or () if Requirement(text).name not in names]
    for found in closure(needed, extra):
        _link(found, packages)
    return folder / "bin"


def closure(requirements: Iterable[str], extra: str = "") -> list[Distribution]:
    """Return the installed packages that these need here, and that those need; some are of an extra."""
    found: dict[str, Distribution] = {}
    waiting, seen = [(Requirement(text), frozenset({"", extra})) for text in requirements], set()
    while waiting:
        requirement, extras = waiting.pop()
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name, wanted = canonicalize_name(requirement.name), frozenset({"", *requirement.extras})
        if (name, wanted) not in seen:
            seen.add((name, wanted))
            found[name] = distribution(name)
            waiting += [(Requirement(text), wanted) for text in found[name].requires or ()]
    return list(found.values())


def _link(package: Distribution, packages: Path) -> None:
    """Link its files, and the folders of byte code beside them, so that not each test compiles it again."""
    for file in package.files or ():
        path, source = packages / file, Path(str(package.locate_file(file)))
        if ".." in file.parts or "__pycache__" in file.parts or not source.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(source)
        compiled = path.with_name("__pycache__")
        if path.suffix == ".py" and not compiled.is_symlink() and source.with_name("__pycache__").exists():
            compiled.symlink_to(source.with_name("__pycache__"))
