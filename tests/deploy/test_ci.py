"""The passes of `.ci/run`: each test that is not slow runs in one of them."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTEST = re.compile(r"-m pytest (?P<options>(?:[^\n]*\\\n)*[^\n]*)")
# In no pass: `make soak` runs them.
SLOW = "slow"


@dataclass(frozen=True)
class Pass:
    """A call of pytest: the marks that it asks for, those that it leaves out, and the files that it ignores."""

    asked: frozenset[str]
    left_out: frozenset[str]
    ignored: tuple[Path, ...]

    def runs(self, file: Path, marks: frozenset[str]) -> bool:
        ignored = any(file.is_relative_to(path) for path in self.ignored)
        return self.asked <= marks and not marks & self.left_out and not ignored


def passes() -> Iterator[Pass]:
    _, after_soak = (ROOT / ".ci/run").read_text().split("    make soak\n")
    for call in PYTEST.finditer(after_soak):
        if "--collect-only" in call["options"]:
            continue
        (expression,) = re.findall(r'-m "([^"]*)"', call["options"])
        asked, _, left_out = expression.rpartition("not ")
        yield Pass(
            asked=frozenset(asked.replace(" and ", " ").split()),
            left_out=frozenset(left_out.strip("()").split(" or ")),
            ignored=tuple(ROOT / path for path in re.findall(r"--ignore (\S+)", call["options"])),
        )


def marks_in(tree: ast.AST) -> frozenset[str]:
    """The names of `pytest.mark.NAME` in a piece of code."""
    return frozenset(
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.value.attr == "mark"
    )


def marked(file: Path) -> Iterator[tuple[str, frozenset[str]]]:
    """The classes and functions of a file of tests, and the marks of each: the file's, its own and its cases'."""
    body = ast.parse(file.read_text()).body
    of_file = [node for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"]
    common = frozenset().union(*map(marks_in, of_file))
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or not node.name.lower().startswith("test"):
            continue
        own = frozenset().union(*map(marks_in, node.decorator_list))
        yield node.name, common | own
        inner = node.body if isinstance(node, ast.ClassDef) else []
        for method in inner:
            if isinstance(method, ast.FunctionDef) and method.name.startswith("test"):
                yield (
                    f"{node.name}.{method.name}",
                    common | own | frozenset().union(*map(marks_in, method.decorator_list)),
                )


def test_each_test_runs_in_a_pass() -> None:
    made = list(passes())
    assert len(made) == 2
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    lost = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in files
        for name, marks in marked(file)
        if SLOW not in marks and not any(one.runs(file, marks) for one in made)
    ]
    assert lost == []
