"""Started in an environment with the wheel: import all of the site, print the wheel's imports that are not installed.

Imports inside functions are looked for, not run.
"""

import ast
import importlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path


def main(wheel: Path) -> None:
    import django

    sys.path.insert(0, str(wheel / "server"))
    django.setup()
    missing: dict[str, list[str]] = {}
    for path in sorted(wheel.rglob("*.py")):
        name = path.relative_to(wheel)
        # Some are copied beside an export and run where a trainer is installed; the others take the screenshots.
        if "scripts" in name.parts or name.parts[:2] == ("server", "docs"):
            continue
        modules = sorted(set(_imported(ast.parse(path.read_bytes()))))
        if name.parts[0] == "server" and len(name.parts) > 2:
            try:
                importlib.import_module(".".join(name.with_suffix("").parts[1:]).removesuffix(".__init__"))
            except ModuleNotFoundError as absent:
                if not any(module.split(".")[0] == absent.name for module in modules):
                    raise
        for module in modules:
            if not _is_installed(module):
                missing.setdefault(str(name), []).append(module)
    print(json.dumps(missing))


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        yield from _imported(node)


def _is_installed(module: str) -> bool:
    try:
        return module in sys.modules or importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


main(Path(sys.argv[1]))
