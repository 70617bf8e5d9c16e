"""The branch of a tree that a person saw last, in sessions that keep what was taken back."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from curation.imports.sources.rows import RowRefused

N = TypeVar("N")


def branch_to(nodes: Mapping[str, N], last: object, parent_of: Callable[[N], object]) -> list[str]:
    """Return the names of the nodes from the root to the last one. Raises `RowRefused` for a circle."""
    above: dict[str, None] = {}
    while isinstance(last, str) and last in nodes:
        if last in above:
            raise RowRefused(f"the messages are no tree: {last[:60]} is above itself")
        above[last] = None
        last = parent_of(nodes[last])
    return [*reversed(above)]
