"""The nouns that can be deleted, registered by each app, and the work on a project that must stop first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import QuerySet

from curation.projects.models import Deletion, Project


class Work(Protocol):
    """Something that works on a project in the background."""

    def in_progress(self, project_id: int) -> str:
        """Name the work in progress, or return ''."""

    def stop(self, project_id: int) -> bool:
        """Stop it; return False while something still works."""


@dataclass(frozen=True, slots=True)
class Erasable:
    """`rows` returns the rows to erase, in this order. `is_quiet` is False while something still works on them."""

    rows: Callable[[Deletion], Sequence[QuerySet[Any]]]
    is_quiet: Callable[[Deletion], bool]


def register_work(work: Work) -> None:
    _works.append(work)


def work_in_progress(project_id: int) -> str:
    return " ".join(found for work in _works if (found := work.in_progress(project_id)))


def register_erasable(noun: str, erasable: Erasable) -> None:
    _erasables[noun] = erasable


def erasable_of(deletion: Deletion) -> Erasable:
    return _erasables[deletion.noun]


def _is_quiet(deletion: Deletion) -> bool:
    stopped = [work.stop(deletion.project_id) for work in _works]  # each is told
    return all(stopped)


_works: list[Work] = []
PROJECT = "project"
_erasables: dict[str, Erasable] = {
    PROJECT: Erasable(lambda deletion: [Project.objects.filter(pk=deletion.target_id)], _is_quiet)
}
