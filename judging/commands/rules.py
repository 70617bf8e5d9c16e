"""Rules that people write about the figures of a model, such as `format = xtr - fmt >= 0.1 and xtr > 0.5`."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from judging.commands.screen import FLAGS

# A figure with `best_` before it is that of the model with the highest `exact`.
FIGURES = (*FLAGS, "lat", "len", "errors", "cut")
NAMES = frozenset([*FIGURES, *(f"best_{name}" for name in FIGURES)])
LONGEST = 200
_NUMBERS: Mapping[type[ast.operator], Callable[[float, float], float]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
)
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[float, float], bool]] = MappingProxyType(
    {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq}
)


def check_rule(line: str) -> None:
    """Raise ValueError with the error of a line `conclusion = condition`."""
    conclusions([line], dict.fromkeys(NAMES, 0.0))


def conclusions(lines: Sequence[str], figures: Mapping[str, float]) -> list[str]:
    """Return the conclusions whose conditions are true for these figures, in their order."""
    found = []
    for line in lines:
        conclusion, _, condition = (part.strip() for part in line.partition("="))
        if not conclusion or not condition:
            raise ValueError(f"{line!r} must have the form `conclusion = condition`")
        if applies(condition, figures):
            found.append(conclusion)
    return found


def applies(rule: str, figures: Mapping[str, float]) -> bool:
    """Return whether a rule is true for these figures: shares from 0 to 1, seconds, characters.

    A rule compares figures, numbers and their sums, differences and products, joined by `and`, `or` and `not`; `always`
    is always true. Raises ValueError for anything else, and for a figure that is not given.
    """
    if rule.strip() == "always":
        return True
    if len(rule) > LONGEST:
        raise ValueError(f"the rule has more than {LONGEST} characters")
    try:
        found = ast.parse(rule.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"{rule!r} is no comparison, such as `xtr - fmt >= 0.1`") from None
    return _truth(found, figures)


def _truth(node: ast.expr, figures: Mapping[str, float]) -> bool:
    if isinstance(node, ast.BoolOp):
        each = [_truth(part, figures) for part in node.values]
        return all(each) if isinstance(node.op, ast.And) else any(each)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _truth(node.operand, figures)
    if isinstance(node, ast.Compare):
        return all(list(_compared(node, figures)))
    raise ValueError(f"`{ast.unparse(node)}` is no comparison")


def _compared(node: ast.Compare, figures: Mapping[str, float]) -> Iterator[bool]:
    left = _number(node.left, figures)
    for sign, other in zip(node.ops, node.comparators, strict=True):
        right = _number(other, figures)
        if type(sign) not in _COMPARISONS:
            raise ValueError(f"`{ast.unparse(node)}` compares by another sign than <, <=, >, >= and ==")
        # Shares have two decimals: their differences are rounded as they are read.
        yield _COMPARISONS[type(sign)](round(left, 6), round(right, 6))
        left = right


def _number(node: ast.expr, figures: Mapping[str, float]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    if isinstance(node, ast.Name):
        if node.id not in figures:
            raise ValueError(f"there is no figure `{node.id}`; there are {', '.join(FIGURES)}, also with best_")
        return figures[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, figures)
    if isinstance(node, ast.BinOp) and type(node.op) in _NUMBERS:
        return _NUMBERS[type(node.op)](_number(node.left, figures), _number(node.right, figures))
    raise ValueError(f"`{ast.unparse(node)}` is no figure or number")
