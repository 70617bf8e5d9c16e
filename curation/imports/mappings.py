"""Saved mappings: their fields and REST calls. The page of an import saves one too."""

from typing import Annotated

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from pydantic import Field, StringConstraints

from curation.imports.layouts.rows.mapping import RowMapping
from curation.imports.models import SavedMapping
from curation.projects.access import Access
from curation.projects.models import Scope
from curation.projects.resource import Resource
from curation.web.problems import Conflict, FieldError
from curation.web.schemas import Out

MOST_MAPPINGS = 200


class MappingIn(RowMapping):
    """A mapping, and the name by which imports choose it: `"options": {"mapping": "our runs"}`."""

    name: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=r"^[^/\\?#%\x00-\x1f]+$")
    ] = Field(examples=["our runs"])


class MappingOut(MappingIn, Out):
    pass


class Mappings(Resource[SavedMapping]):
    model, noun, plural, tag = SavedMapping, "mapping", "mappings", "imports"
    path, row_path, key = "/mappings", "/projects/{slug}/mappings/{name}", "name"
    body, out, logged = MappingIn, MappingOut, ("name",)
    changes = Scope.RUN
    about = {"delete": "Imports that were launched with it keep it."}

    def rows(self, access: Access) -> QuerySet[SavedMapping]:
        return SavedMapping.objects.filter(project=access.project)

    def create(self, access: Access, body: MappingIn) -> SavedMapping:
        """Raises `Conflict` for a name that is taken, and over the limit."""
        if self.rows(access).count() >= MOST_MAPPINGS:
            raise Conflict(f"A project has at most {MOST_MAPPINGS} mappings; delete one.", code="too_many_mappings")
        return super().create(access, body)

    def write(self, access: Access, row: SavedMapping, body: MappingIn) -> None:
        for name, value in body.model_dump(mode="json").items():
            setattr(row, name, value)

    def _save(self, access: Access, row: SavedMapping, body: MappingIn, change: str) -> SavedMapping:
        try:
            with transaction.atomic():
                return super()._save(access, row, body, change)
        except IntegrityError:
            raise Conflict(
                f"There is a mapping {body.name!r}.", code="name_taken", errors=[FieldError("name", "is taken")]
            ) from None

    def save(self, access: Access, body: MappingIn) -> SavedMapping:
        """Save it under its name, in place of one that has it."""
        row = self.rows(access).filter(name=body.name).first()
        return self.create(access, body) if row is None else self.update(access, row, body)


mappings = Mappings()
router = mappings.router()
