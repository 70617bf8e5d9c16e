"""Archive and delete single rows of a project, such as a run or a split.

Each app registers the rows that block a deletion, the rows that are deleted with it, and the data kept in the audit
log. Rules are asked from the top app to the lowest, as the apps are loaded; in this order rows are also erased.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from curation.projects.access import Access
from curation.projects.audit import record
from curation.projects.models import Deletion, Project, Removable
from curation.projects.removal.carry_out import send
from curation.projects.removal.nouns import Erasable, register_erasable
from curation.web.problems import Conflict, NotFound


@dataclass(frozen=True, slots=True)
class Rest:
    """Rows that keep a row from being deleted: `text` has their noun and count, `url` shows them."""

    text: str
    url: str


F = TypeVar("F", bound=Callable[..., Any])
Rests = Callable[[Any], Iterable[Rest]]
Made = Callable[[Any], Iterable[QuerySet[Any]]]
About = Callable[[Any], dict[str, object]]
_rests: dict[type[Model], list[Rests]] = {}
_made: dict[type[Model], list[Made]] = {}
_about: dict[type[Model], list[About]] = {}


def rests_on(model: type[Model]) -> Callable[[F], F]:
    """Register a function that yields the blockers of a row of `model`."""
    return _adds_to(_rests.setdefault(model, []))


def goes_with(model: type[Model]) -> Callable[[F], F]:
    """Register a function that yields the rows that are erased with a row of `model`.

    They must not include rows that referenced it after the deletion was requested.
    """
    return _adds_to(_made.setdefault(model, []))


def describes(model: type[Model]) -> Callable[[F], F]:
    """Register a function that returns the audit log's data about a deleted row of `model`."""
    return _adds_to(_about.setdefault(model, []))


def _adds_to(functions: list[Any]) -> Callable[[F], F]:
    def register(function: F) -> F:
        functions.append(function)
        return function

    return register


def register_removable(noun: str, model: type[Model], is_quiet: Callable[[Any], bool]) -> None:
    def rows(deletion: Deletion) -> Sequence[QuerySet[Any]]:
        own = model._base_manager.filter(pk=deletion.target_id)
        row = own.first()
        return [] if row is None else [*(part for made in _made.get(model, ()) for part in made(row)), own]

    def quiet(deletion: Deletion) -> bool:
        row = model._base_manager.filter(pk=deletion.target_id).first()
        return row is None or is_quiet(row)

    register_erasable(noun, Erasable(rows, quiet))


def what_rests_on(row: Model) -> list[Rest]:
    return [rest for rests in _rests.get(type(row), ()) for rest in rests(row)]


def archive_row(*, access: Access, row: Removable, label: str, archived: bool) -> None:
    """Hide the row from lists, or show it again. Raises `Conflict` if it is so already."""
    noun = label.split()[0]
    with transaction.atomic():
        rows = type(row)._base_manager.filter(pk=row.pk, archived_at__isnull=archived)
        if rows.update(archived_at=timezone.now() if archived else None) != 1:
            raise Conflict(f"The {label} is {'already' if archived else 'not'} archived.", code="wrong_state")
        action = f"{noun}.archive" if archived else f"{noun}.unarchive"
        record(actor=access.user, project=access.project, action=action, subject=label)
    row.refresh_from_db()


def delete_row(
    *, project: Project, actor: User | None, row: Removable, noun: str, label: str, because: str = ""
) -> Deletion:
    """Begin to delete the row and its dependent rows; it reads as deleted from now on. Without an `actor` the system
    does it, and `because` is the reason in the audit log.

    Raises `Conflict` with every blocker, in words and with links.
    """
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        if rests := what_rests_on(row):
            raise Conflict(
                f"The {label} cannot be deleted. " + " ".join(rest.text for rest in rests),
                code="in_use",
                current={"rests": [asdict(rest) for rest in rests]},
            )
        rows = type(row)._base_manager.filter(pk=row.pk, deleting_at=None)
        if rows.update(deleting_at=timezone.now()) != 1:
            raise Conflict(f"The {label} is being deleted.", code="wrong_state")
        about: dict[str, object] = {"id": str(row.pk)}
        for describe in _about.get(type(row), ()):
            about |= describe(row)
        deletion = Deletion.objects.create(
            noun=noun,
            target_id=row.pk,
            project_id=project.pk,
            label=label,
            requested_by=actor,
            cost=Decimal(str(about.get("cost") or 0)),
            cost_unknown_calls=int(str(about.get("cost_unknown_calls") or 0)),
        )
        data = {**about, "deletion": str(deletion.pk), **({"because": because} if because else {})}
        record(actor=actor, project=project, action=f"{label.split()[0]}.delete", subject=label, data=data)
        transaction.on_commit(lambda: send(deletion.pk))
    return deletion


@dataclass(frozen=True, slots=True)
class RowPages:
    """A noun whose rows have a page. `find` returns the row and its label; `archive` takes it and the wanted state,
    `delete` begins the deletion."""

    page: str
    list_page: str
    find: Callable[[Access, str], tuple[Removable, str]]
    archive: Callable[[Access, Any, str, bool], object]
    delete: Callable[[Access, Any, str], Deletion]


_pages: dict[str, RowPages] = {}


def register_pages(noun: str, pages: RowPages) -> None:
    _pages[noun] = pages


def pages_of(noun: str) -> RowPages:
    found = _pages.get(noun)
    if found is None:
        raise NotFound(f"Rows of the kind {noun!r} cannot be archived or deleted.")
    return found
