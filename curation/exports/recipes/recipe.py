"""Recipe: the samples, formats and splits of an export. Projects save recipes by their names.

Rows are divided into splits by groups, so that no group is in two splits. Near duplicates are no concern here: only
one of them leaves.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple, get_args

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from pydantic import (
    Field,
    ValidationError,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from curation.exports.formats import FORMATS, TRAINERS
from curation.exports.formats.row import Source, Trainer
from curation.exports.models import SavedRecipe
from curation.exports.rows.rivals import has_approved_rival
from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.models import Decision
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Sample, SampleQuerySet, SampleStatus
from curation.web.problems import FieldError, Invalid, NotFound, fault_of
from curation.web.schemas import StrictModel

PLAIN = "plain"
LONGEST_TEMPLATE = 100_000
# The names that are offered; others are allowed.
SPLITS = ("train", "val", "test", "reserve")
_APPROVED, _REJECTED = SampleStatus.APPROVED.value, SampleStatus.REJECTED.value
_SPLIT_NAME = re.compile(r"[a-z][a-z0-9_]{0,19}")
Level = Literal["repo", "instance_id"]
# From the coarsest.
LEVELS: tuple[Level, ...] = get_args(Level)
Rate = Annotated[float, Field(ge=0.0, le=1.0)]
HeldOutName = Annotated[str, Field(pattern=r"^(split/\d{1,18}|export/\d{1,18}/[a-z][a-z0-9_]{0,19})$")]


class Recipe(StrictModel):
    """Validated when it comes in, from the form, a REST call or a run's parameters. Unknown keys are refused.

    - `trainer`: whose configuration is beside the files, a name of `curation.exports.formats.TRAINERS` or `plain`.
    - `formats`: one or more names of `curation.exports.formats`. By default those that the trainer is offered.
    - `filter`: a samples filter.
    - `splits`: shares that sum to 1, by name. By default all rows are in `train`. Groups of `group_by` stay together:
      `repo`, `instance_id` (of a trajectory its scenario), or by default the coarser one if the shares allow it.
    - `near_duplicates`: samples whose approved texts share at least this part of their sequences of three words are
      left out but for the best; null for exact duplicates only.
    - `held_out`: sets of held-out rows, `split/<id>` (an uploaded set) or `export/<id>/<split>` (of an earlier export).
      Samples that contain one of their rows are left out, or with `contaminated` `count` only counted.
    - `caps`: at most so many samples of each value of a field: `repo`, `instance_id`, `source`, `model` or an axis.
    - `sources`: where preferences and rows to avoid come from: `duels` (approved answer over its opponent), `revisions`
      (a person's revision over the answer it replaced), `scenarios` (an approved trajectory over another of its
      scenario), `decisions` (rejected samples: rows of their own in formats with labels, elsewhere an approved answer
      over the rejected ones to its prompt). With it, a filter for approved samples takes rejected ones as well.
    - `step_labels`: what labels the steps of `stepwise` rows: `people`, or `values`, the share of rollouts that a probe
      found to be solved after the step, where no person labelled it.
    - `solve_rate`: the difficulty of `rl-prompts` rows: the lowest and the highest share of rollouts that solve them.
      Those that all or none solve are left out in any case: equal rewards teach nothing.
    - `guarantees`: `leave_out` takes no samples that are approved under a guarantee, at which nobody looked.
    - `max_tokens`: longer rows are skipped, by the estimate of 4 characters a token.
    - `chat_template`: rows are tried against it: the name of a reference template, the text of a Jinja file, or
      `none`; by default the project's. Rows that fail are counted, or with `template_failures` `leave_out` left out.
    - `metadata`: rows also have `id, source, instance_id, scenario, repo, tier, task, documentation_read,
      provider_asked, score, bucket, reviewers, guarantee, run, outcome, reward, rewards, metadata`.
    - `reasoning`: `keep` leaves thinking text in `reasoning_content` of its message, `drop` leaves it out.
    - `gzip`, `parquet`: how data files are stored; by default as lines of JSON.
    """

    trainer: str = PLAIN
    formats: Annotated[list[str], Field(min_length=1)]
    filter: SampleFilter = SampleFilter.model_validate({})
    splits: dict[str, Annotated[float, Field(ge=0.0, le=1.0)]] = {"train": 1.0}
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    group_by: Literal["auto"] | Level = "auto"
    near_duplicates: Annotated[float, Field(ge=0.5, le=1.0)] | None = 0.85
    held_out: Annotated[list[HeldOutName], Field(max_length=20)] = []
    contaminated: Literal["leave_out", "count"] = "leave_out"
    caps: dict[Annotated[str, Field(min_length=1, max_length=60)], Annotated[int, Field(ge=1)]] = {}
    chat_template: Annotated[str, Field(max_length=LONGEST_TEMPLATE)] = ""
    template_failures: Literal["count", "leave_out"] = "count"
    metadata: bool = False
    sources: Annotated[list[Source], Field(min_length=1)] = ["duels", "scenarios", "decisions"]
    step_labels: Literal["people", "values"] = "people"
    solve_rate: tuple[Rate, Rate] = (0.0, 1.0)
    guarantees: Literal["include", "leave_out"] = "include"
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    reasoning: Literal["drop", "keep"] = "drop"
    gzip: bool = False
    parquet: bool = False

    @model_validator(mode="before")
    @classmethod
    def formats_of_trainer(cls, given: object) -> object:
        """Propose the trainer's formats if none are given."""
        if isinstance(given, Mapping) and not given.get("formats"):
            trainer = TRAINERS.get(str(given.get("trainer")))
            return {**given, "formats": list(trainer.offers or trainer.formats)} if trainer else given
        return given

    @field_validator("trainer")
    @classmethod
    def known_trainer(cls, name: str) -> str:
        if name != PLAIN and name not in TRAINERS:
            raise ValueError(f"there is no trainer {name!r}; there are {PLAIN}, {', '.join(TRAINERS)}")
        return name

    @field_validator("parquet")
    @classmethod
    def one_storage(cls, parquet: bool, info: ValidationInfo) -> bool:
        if parquet and info.data.get("gzip"):
            raise ValueError("Parquet files are compressed already: choose gzip or parquet")
        return parquet

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
        wrong = [name for name in splits if not _SPLIT_NAME.fullmatch(name)]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is not a valid name: use up to 20 small letters, digits and underscores")
        if splits and not math.isclose(sum(splits.values()), 1.0, abs_tol=1e-6):
            raise ValueError(f"the shares sum to {sum(splits.values()):g}, not to 1")
        # In a fixed order, so that equal shares are stored alike.
        names = [*(name for name in SPLITS if name in splits), *sorted(set(splits).difference(SPLITS))]
        return {name: splits[name] for name in names} or {"train": 1.0}

    @field_validator("solve_rate")
    @classmethod
    def low_then_high(cls, bounds: tuple[float, float]) -> tuple[float, float]:
        if bounds[0] > bounds[1]:
            raise ValueError("the lowest share comes first")
        return bounds

    @field_validator("sources", "held_out")
    @classmethod
    def no_duplicate_names(cls, names: list[str]) -> list[str]:
        return _once(names)

    @field_serializer("filter")
    def shortest_filter(self, wanted: SampleFilter) -> dict[str, object]:
        """Store only the conditions that are set, each value in its shortest form, so that equal filters are stored
        alike."""
        given = wanted.model_dump(mode="json", exclude_defaults=True)
        return {name: _short(value) for name, value in given.items()}

    def storage(self, name: str) -> str:
        """Return the ending of the data files of a format."""
        if self.parquet if (fixed := FORMATS[name].parquet) is None else fixed:
            return "parquet"
        return "jsonl.gz" if self.gzip else "jsonl"

    def trainers(self) -> list[Trainer]:
        """Return the trainers whose configuration is beside the files: the chosen one, and the owners of formats that
        it does not read. TRL's formats are read by many, so they have no other owner."""
        chosen = TRAINERS.get(self.trainer)
        found = [chosen] if chosen else []
        for name in self.formats:
            if chosen and name in chosen.formats:
                continue
            owner = next((one for one in TRAINERS.values() if name in one.formats and one.name != "trl"), None)
            if owner is not None and owner not in found:
                found.append(owner)
        return found

    def has_pairs(self) -> bool:
        """Return whether one of the formats is made of preferences."""
        return any(FORMATS[name].pairs for name in self.formats)

    def wants_pairs(self) -> bool:
        """Return whether pairs of trajectories are a source, in a format that has them."""
        return "scenarios" in self.sources and self.has_pairs()

    def has_labels(self) -> bool:
        """Return whether rejected samples are rows of one of the formats."""
        return "decisions" in self.sources and any(FORMATS[name].labelled for name in self.formats)

    def has_rivals(self) -> bool:
        """Return whether approved answers are preferred to rejected ones, in a format that has preferences."""
        forms = [FORMATS[name] for name in self.formats]
        return "decisions" in self.sources and any(form.pairs and not form.labelled for form in forms)

    def samples(self, project: Project) -> SampleQuerySet:
        """Return the project's samples that match the filter, but for those that a guarantee approves if these are left
        out. Raises `NotFound` for a run of another project.

        A filter for approved samples also takes the rejected ones that it would take by its other conditions: all if a
        format has labels, else those that answer the prompt of an approved one.
        """
        rows = self._matching(Sample.objects.of(project))
        if self.guarantees == "include":
            return rows
        unseen = Decision.objects.standing_approvals().filter(sample=OuterRef("pk"), guarantee__isnull=False)
        return rows.exclude(Exists(unseen))

    def _matching(self, samples: SampleQuerySet) -> SampleQuerySet:
        wanted = self.filter.status
        wider = tuple(
            (*group, _REJECTED) if _APPROVED in group and _REJECTED not in group else group for group in wanted
        )
        if wider == wanted or not (self.has_labels() or self.has_rivals()):
            return self.filter.apply(samples)
        found = self.filter.model_copy(update={"status": wider}).apply(samples)
        return found if self.has_labels() else found.filter(~Q(status=_REJECTED) | has_approved_rival())


def read_recipe(document: Mapping[str, object]) -> Recipe:
    """Return the recipe in a document from outside. Raises `Invalid` with the path of each error."""
    try:
        return Recipe.model_validate(document)
    except ValidationError as error:
        raise recipe_errors(error) from None


def recipe_errors(error: ValidationError) -> Invalid:
    return Invalid.fields([_field_error(entry) for entry in error.errors()])


def _field_error(entry: ErrorDetails) -> FieldError:
    text = "unknown key" if entry["type"] == "extra_forbidden" else fault_of(entry)
    return FieldError(".".join(["recipe", *map(str, entry["loc"])]), text)


def _short(value: object) -> object:
    """Return an AND of ORs in its shortest form: `"a"`, `["a", "b"]`, or a list of lists."""
    if not isinstance(value, list) or len(value) != 1:
        return value
    group = value[0]
    return group[0] if len(group) == 1 and not set(group[0]) & set(",\\") else group


def _once(values: list[str]) -> list[str]:
    if len(set(values)) != len(values):
        raise ValueError("named twice")
    return values


def locked_recipe(project: Project, name: str) -> SavedRecipe | None:
    return SavedRecipe.objects.select_for_update().filter(project=project, name=name).first()


def save_recipe(*, access: Access, name: str, recipe: Recipe) -> tuple[SavedRecipe, bool]:
    """Save the recipe under its name, replacing an earlier one of that name. Return its row and whether it is new."""
    document = recipe.model_dump(mode="json")
    with transaction.atomic():
        row, created = SavedRecipe.objects.update_or_create(
            project=access.project, name=name, defaults={"document": document, "created_by": access.user}
        )
        access.record("recipe.create" if created else "recipe.update", name, {"recipe": document})
    return row, created


def delete_recipe(*, access: Access, name: str) -> None:
    """Delete a saved recipe. Exports made from it keep their own copy. Raises `NotFound`."""
    with transaction.atomic():
        deleted, _ = SavedRecipe.objects.filter(project=access.project, name=name).delete()
        if not deleted:
            raise NotFound(f"There is no saved recipe {name!r}.")
        access.record("recipe.delete", name)


def recipe_named(project: Project, name: str) -> SavedRecipe:
    """Return the saved recipe. Raises `NotFound`."""
    saved = SavedRecipe.objects.filter(project=project, name=name).first()
    if saved is None:
        raise NotFound(f"There is no saved recipe {name!r}.")
    return saved


def resolve_recipe(project: Project, given: Recipe | str) -> Recipe:
    """Return the recipe itself, or the saved one of that name. Raises `Invalid`."""
    if isinstance(given, Recipe):
        return given
    saved = SavedRecipe.objects.filter(project=project, name=given).first()
    if saved is None:
        raise Invalid.at("recipe", f"there is no saved recipe {given!r} in this project")
    return Recipe.model_validate(saved.document)


# A level is too coarse if the share of a split is further than this from the wanted one.
TOLERANCE = 0.1


class GroupKey(NamedTuple):
    """The keys by which a row can be grouped. A scenario's name is the `instance_id` of its trajectories;
    `conversation` is the row of the source, for rows that have neither."""

    repo: str
    instance_id: str
    conversation: str

    def at(self, level: Level) -> str:
        """Return the key at a level, or the next finer one that is not empty."""
        if level == "repo" and self.repo:
            return f"repo {self.repo}"
        return f"instance {self.instance_id}" if self.instance_id else f"row {self.conversation}"


@dataclass(frozen=True, slots=True)
class Splitting:
    """How rows are divided: by which level, into how many groups, and the share of rows that each split gets."""

    level: Level
    groups: int = 0
    shares: Mapping[str, float] = field(default_factory=dict)


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


def choose_splitting(keys: Sequence[GroupKey], *, seed: int, wanted: Mapping[str, float]) -> Splitting:
    """Return the coarsest splitting whose shares are within `TOLERANCE` of the wanted ones and leave no split empty, or
    else the one that comes nearest."""
    best: tuple[float, Splitting] | None = None
    for level in LEVELS:
        found = splitting_at(level, keys, seed=seed, wanted=wanted)
        missed = max(abs(found.shares.get(name, 0.0) - share) for name, share in wanted.items())
        empty = any(share > 0 and not found.shares.get(name) for name, share in wanted.items())
        if missed <= TOLERANCE and not empty:
            return found
        if best is None or missed + empty < best[0]:
            best = missed + empty, found
    assert best is not None  # noqa: S101 - there are levels
    return best[1]


def splitting_at(level: Level, keys: Sequence[GroupKey], *, seed: int, wanted: Mapping[str, float]) -> Splitting:
    """Return how the rows are divided at one level."""
    sizes: Counter[str] = Counter()
    for key, size in Counter(keys).items():
        sizes[key.at(level)] += size
    rows: Counter[str] = Counter()
    for group, size in sizes.items():
        rows[split_of(group, seed=seed, shares=wanted)] += size
    return Splitting(level, len(sizes), {name: rows[name] / len(keys) for name in wanted} if keys else {})
