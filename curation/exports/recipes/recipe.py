"""Recipe: the samples, formats and splits of an export."""

import hashlib
import math
from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer, field_validator

from curation.exports.formats import FORMATS
from curation.exports.formats.row import Source
from curation.projects.models import Project
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Sample, SampleQuerySet
from curation.web.problems import FieldError, Invalid

T = TypeVar("T")
SPLITS = ("train", "val", "reserve")


class Recipe(BaseModel):
    """Validated when it comes in, from the form, a REST call or a run's parameters. Unknown keys are refused.

    - `formats`: one or more names of `curation.exports.formats`.
    - `filter`: a samples filter.
    - `splits`: shares that sum to 1. By default all rows are in `train`. Groups of `group_by` stay together.
    - `sources`: where preferences come from: `duels` (approved answer over its opponent), `revisions` (a person's
      revision over the answer it replaced), `scenarios` (an approved trajectory over another of its scenario).
    - `max_tokens`: longer rows are skipped, by the estimate of 4 characters a token.
    - `metadata`: rows also have `id, source, score, bucket, reviewers, run`.
    """

    model_config = ConfigDict(extra="forbid")

    formats: Annotated[list[str], Field(min_length=1)]
    filter: SampleFilter = SampleFilter.model_validate({})
    splits: dict[str, Annotated[float, Field(ge=0.0, le=1.0)]] = {"train": 1.0}
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    group_by: Literal["instance_id", "repo"] = "instance_id"
    metadata: bool = False
    sources: Annotated[list[Source], Field(min_length=1)] = ["duels", "scenarios"]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    gzip: bool = False

    @field_validator("formats")
    @classmethod
    def known_formats(cls, formats: list[str]) -> list[str]:
        for name in formats:
            if name not in FORMATS:
                raise ValueError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
        return _once(formats)

    @field_validator("splits")
    @classmethod
    def known_splits(cls, splits: dict[str, float]) -> dict[str, float]:
        unknown = [name for name in splits if name not in SPLITS]
        if unknown:
            raise ValueError(f"there is no split {unknown[0]!r}; there are {', '.join(SPLITS)}")
        if splits and not math.isclose(sum(splits.values()), 1.0, abs_tol=1e-6):
            raise ValueError(f"the shares sum to {sum(splits.values()):g}, not to 1")
        # In a fixed order, so that equal shares are stored alike.
        return {name: splits[name] for name in SPLITS if name in splits} or {"train": 1.0}

    @field_validator("sources")
    @classmethod
    def sources_once(cls, sources: list[Source]) -> list[Source]:
        return _once(sources)

    @field_serializer("filter")
    def shortest_filter(self, wanted: SampleFilter) -> dict[str, object]:
        """Store only what is set, each value in its shortest form, so that equal filters are stored alike."""
        given = wanted.model_dump(mode="json", exclude_defaults=True)
        return {name: _short(value) for name, value in given.items()}

    def only_split(self) -> str:
        """Return the split of all rows, or an empty string if rows are divided."""
        return next((name for name, share in self.splits.items() if share == 1.0), "")

    def has_pairs(self) -> bool:
        """Return whether one of the formats is made of preferences."""
        return any(FORMATS[name].pairs for name in self.formats)

    def wants_pairs(self) -> bool:
        """Return whether pairs of trajectories are a source, in a format that has them."""
        return "scenarios" in self.sources and self.has_pairs()

    def samples(self, project: Project) -> SampleQuerySet:
        """Return the project's samples that match the filter. Raises `NotFound` for a run of another project."""
        return self.filter.apply(Sample.objects.of(project))


def split_of(group: str, *, seed: int, shares: Mapping[str, float]) -> str:
    """Return the split of a group. A seeded hash of its name decides, so new rows never move existing ones.

    The hash, as a number in [0, 1), falls into one of the shares laid end to end; these sum to 1. With few or uneven
    groups the shares are met only roughly.
    """
    digest = hashlib.blake2b(f"{seed}\n{group}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    point = int.from_bytes(digest, "big") / 2**64
    edge = 0.0
    names = [name for name, share in shares.items() if share > 0]
    for name in names:
        edge += shares[name]
        if point < edge:
            return name
    return names[-1]


def read_recipe(document: Mapping[str, object]) -> Recipe:
    """Return the recipe in a document from outside. Raises `Invalid` with the path of each error."""
    try:
        return Recipe.model_validate(document)
    except ValidationError as error:
        raise Invalid.fields([_field_error(e["loc"], e["msg"]) for e in error.errors()]) from None


def _field_error(path: tuple[int | str, ...], message: str) -> FieldError:
    text = "unknown key" if message.startswith("Extra inputs") else message.removeprefix("Value error, ")
    return FieldError(".".join(["recipe", *map(str, path)]), text)


def _short(value: object) -> object:
    """Return an AND of ORs in its shortest form: `"a"`, `["a", "b"]`, or a list of lists."""
    if not isinstance(value, list) or len(value) != 1:
        return value
    group = value[0]
    return group[0] if len(group) == 1 and not set(group[0]) & set(",\\") else group


def _once(values: list[T]) -> list[T]:
    if len(set(values)) != len(values):
        raise ValueError("named twice")
    return values
