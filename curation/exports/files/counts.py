"""The counts of an export or a preview. Manifest, card and pages show the same ones."""

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from curation.exports.formats import FORMATS
from curation.exports.formats.row import DataFile
from curation.exports.formats.trl import LabelBalanceOut
from curation.exports.models import ExportFile
from curation.exports.recipes.recipe import Recipe
from curation.exports.rows.chat_template import TemplateText
from curation.exports.rows.filter import FilteredSample
from curation.exports.rows.redaction import ACTIONS
from curation.exports.rows.skip_reasons import SkipReason
from curation.projects.settings.document import Balance
from curation.scenarios.models import Terminal
from curation.trajectories.rollout.balance import BLOCKED, EMPTY_QUEUE, BalanceOut
from curation.web.text.figures import counted, percent
from judging.scan.rules import BY_NAME

EXAMPLES = 20
BINS = 10
# A rule that removes a larger share of the approved samples is named in a warning.
LARGE = 0.1
UNAPPROVED = frozenset({SkipReason.REJECTED, SkipReason.NOT_APPROVED})
# Upper edges of the histogram of row lengths; longer rows are in a bin of their own.
TOKEN_EDGES = (512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768)


def ending_shares(balance: Mapping[str, object]) -> list[tuple[str, float]]:
    names = {"exit": "exit", "panic": "panic", "empty_queue": EMPTY_QUEUE, "blocked": BLOCKED}
    return [(name, float(str(balance[key]))) for key, name in names.items()]


@dataclass(slots=True)
class ExportCounts:
    """`rows` are by format and split. `skipped` counts samples by reason, in one format or in all, and `examples` names
    some of them. `histogram` has 10 bins of 10 points. `trajectories` are the ones read, `pairs` the rows from a stored
    pair of them. `longest` is the longest row in tokens, by the estimate; `tokens` counts rows by `TOKEN_EDGES`.
    `approved` are samples approved by a person; `removed` counts those of them without any row, by reason. `scan`
    counts findings by rule and action. `plan` has the key by which rows are grouped and the held-out sets compared.
    `reviewers` counts exported samples by reviewer, `unseen` rows by the guarantee under which they are approved,
    `rejected` those of samples that people rejected, `avoided` the rows that are to be avoided. `used` are the samples
    whose rejected answer is part of another sample's row. `tried` counts the rows that the chat template `template` was
    tried on, `failed` those that fail by reason, and `failures` names the first of them. `with_images` are the formats
    whose rows have the column `images`. `rewards` are those of the sessions of each scenario or task."""

    samples: int = 0
    approved: int = 0
    removed: Counter[SkipReason] = field(default_factory=Counter)
    exported: int = 0
    unscored: int = 0
    bytes: int = 0
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    histogram: list[int] = field(default_factory=lambda: [0] * BINS)
    revisions: int = 0
    longest: int = 0
    tokens: Counter[int] = field(default_factory=Counter)
    trajectories: int = 0
    pairs: int = 0
    scan: Counter[tuple[str, str]] = field(default_factory=Counter)
    terminals: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)
    plan: Mapping[str, object] = field(default_factory=dict)
    reviewers: Counter[str] = field(default_factory=Counter)
    avoided: Counter[tuple[str, str]] = field(default_factory=Counter)
    used: set[int] = field(default_factory=set)
    template: TemplateText | None = None
    tried: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, str]] = field(default_factory=list)
    unseen: Counter[int] = field(default_factory=Counter)
    rejected: int = 0
    with_images: set[str] = field(default_factory=set)
    rewards: dict[str, set[float | None]] = field(default_factory=lambda: defaultdict(set))

    @property
    def approved_rows(self) -> int:
        """The rows of samples that people approved."""
        return sum(self.rows.values()) - self.unseen.total() - self.rejected

    def add(self, filtered: FilteredSample) -> None:
        self.samples += 1
        if filtered.scan:
            self.scan.update(filtered.scan)
        for line in filtered.lines:
            self.rows[line.format, line.split] += 1
            if line.rejected:
                self.avoided[line.format, line.split] += 1
            if line.images is not None:
                self.with_images.add(line.format)
            if line.against:
                self.used.add(int(line.against))
            self.bytes += len(line.data)
            self.pairs += line.pair != ""
            self.longest = max(self.longest, line.tokens)
            self.tokens[bisect.bisect_left(TOKEN_EDGES, line.tokens)] += 1
        self.trajectories += filtered.rollout is not None
        is_approved = not filtered.sample.is_rejected and UNAPPROVED.isdisjoint(filtered.skipped)
        if filtered.lines:
            self._add_exported(filtered)
        elif is_approved:
            self.removed.update(filtered.skipped.keys())
        self.approved += is_approved
        if filtered.tried:
            self._add_tried(filtered)
        for reason in filtered.skipped:
            self.skipped[reason.value] += 1
            examples = self.examples.setdefault(reason.value, [])
            if len(examples) < EXAMPLES:
                examples.append(str(filtered.sample.sample_id))

    def _add_tried(self, filtered: FilteredSample) -> None:
        self.tried += len(filtered.tried)
        for name, failure in filtered.tried:
            if failure is None:
                continue
            self.failed[failure.fault.value] += 1
            if len(self.failures) < EXAMPLES:
                named = {"sample": str(filtered.sample.sample_id), "format": name}
                self.failures.append({**named, "reason": failure.fault.value, "detail": failure.detail})

    def _add_exported(self, filtered: FilteredSample) -> None:
        sample = filtered.sample
        self.exported += 1
        for reviewer in {*filtered.reviewers}:
            self.reviewers[reviewer] += 1
        if sample.is_rejected:
            self.rejected += len(filtered.lines)
        if filtered.approval is not None and filtered.approval.guarantee_id is not None:
            self.unseen[filtered.approval.guarantee_id] += len(filtered.lines)
        if filtered.rollout is not None:
            self.rewards[filtered.rollout.conversation].add(filtered.rollout.known_reward)
        if filtered.rollout is not None and filtered.rollout.terminal:
            self.terminals[filtered.rollout.terminal] += 1
            self.tasks[filtered.rollout.task] += 1
        self.revisions += sample.revision_id is not None
        if sample.score is None:
            self.unscored += 1
        else:
            self.histogram[min(int(sample.score * BINS / 100), BINS - 1)] += 1

    def balance(self) -> BalanceOut | None:
        """Return how the exported trajectories end, each counted once, for any number of rows. A model that sees one
        ending too often learns to end that way without looking."""
        total = self.terminals.total()
        if not total:
            return None
        return BalanceOut.of(
            kept=total,
            exit=self.terminals[Terminal.EXIT],
            panic=self.terminals[Terminal.PANIC],
            empty_queue=self.tasks[EMPTY_QUEUE],
            blocked=self.tasks[BLOCKED],
        )

    def as_json(self, recipe: Recipe, band: Balance) -> dict[str, object]:
        """Return the counts as exports store them. `warnings` name large removals, missing rows and shares outside
        `band`."""
        balance = self.balance()
        return {
            "samples": self.samples,
            "exported": self.exported,
            "rows": {name: {split: self.rows[name, split] for split in recipe.splits} for name in recipe.formats},
            "excluded": {reason.value: self.skipped[reason] for reason in SkipReason if self.skipped[reason]},
            "scan": self.scan_by_rule(),
            "groups": {name: self.plan[name] for name in ("group_by", "groups") if name in self.plan},
            "contamination": self.plan.get("contamination"),
            "balance": balance.as_json() if balance else None,
            "labels": {name: found.model_dump() for name, found in self.label_balances(recipe).items()},
            "template": self._template(recipe),
            "tokens": {"edges": list(TOKEN_EDGES), "rows": [self.tokens[bin] for bin in range(len(TOKEN_EDGES) + 1)]},
            "warnings": [
                *self.large_removals(),
                *self._missing_rows(recipe),
                *self._missing_labels(recipe),
                *self._equal_rewards(recipe),
                *self._template_failures(recipe),
                *(balance.warnings(band) if balance else []),
            ],
        }

    def large_removals(self) -> Iterator[str]:
        """Yield a warning for each reason that removes more than a tenth of the approved samples."""
        for reason in SkipReason:
            if (taken := self.removed[reason]) > LARGE * self.approved:
                share = f"{taken:,} of {counted(self.approved, 'approved sample')} ({percent(taken / self.approved)})"
                yield f"{share} {'is' if taken == 1 else 'are'} left out as {reason.value}. {reason.label}"

    def _missing_rows(self, recipe: Recipe) -> Iterator[str]:
        """Yield a warning for each format, and each split with a share, that gets no rows."""
        if not self.rows:
            return
        for name in recipe.formats:
            if not any(self.rows[name, split] for split in recipe.splits):
                yield f"{name} gets no rows."
        for split, share in recipe.splits.items():
            if share and not any(self.rows[name, split] for name in recipe.formats):
                yield f"The split {split} gets no rows: there are too few groups for its share."

    def label_balances(self, recipe: Recipe) -> dict[str, LabelBalanceOut]:
        """Return the balance of the first split of each format with labels that has rows."""
        found = {}
        for name in recipe.formats:
            split = next((split for split in recipe.splits if self.rows[name, split]), None)
            if split is not None and "label" in FORMATS[name].columns:
                avoided = self.avoided[name, split]
                found[name] = LabelBalanceOut(desirable=self.rows[name, split] - avoided, undesirable=avoided)
        return found

    def _missing_labels(self, recipe: Recipe) -> Iterator[str]:
        for name, found in self.label_balances(recipe).items():
            if not found.desirable or not found.undesirable:
                missing = "to avoid: reject samples, or take the opponents of duels" if found.desirable else "to learn"
                yield f"{name} has no rows {missing}. KTO needs both."

    def _equal_rewards(self, recipe: Recipe) -> Iterator[str]:
        """Yield a warning if the rewards of some groups do not differ."""
        equal = sum(len(found) == 1 for found in self.rewards.values())
        if "rollouts" in recipe.formats and equal:
            which = f"{equal:,} of {counted(len(self.rewards), 'group')} {'has' if equal == 1 else 'have'}"
            yield f"{which} equal rewards alone, from which an algorithm that compares them learns nothing."

    def _template(self, recipe: Recipe) -> dict[str, object] | None:
        if self.template is None:
            return None
        return {
            "name": self.template.name,
            "sha256": self.template.sha256,
            "tried": self.tried,
            "failed": dict(sorted(self.failed.items())),
            "left_out": recipe.template_failures == "leave_out",
            "examples": self.failures,
        }

    def _template_failures(self, recipe: Recipe) -> Iterator[str]:
        if self.template is None or not self.failed:
            return
        rows = f"{self.failed.total():,} of {counted(self.tried, 'tried row')}"
        done = "are left out" if recipe.template_failures == "leave_out" else "are exported all the same"
        reasons = " ".join(str(reason.label) for reason in SkipReason if self.failed[reason.value])
        yield f"{rows} fail in the chat template ({self.template.name}) and {done}. {reasons}"

    def data_files(self, files: Sequence[ExportFile]) -> list[DataFile]:
        """Return the data files as trainers' configurations name them."""
        return [
            DataFile(
                file.name,
                file.format,
                file.split,
                file.rows,
                self.avoided[file.format, file.split],
                file.format in self.with_images,
            )
            for file in files
            if file.format
        ]

    def scan_by_rule(self) -> dict[str, dict[str, int]]:
        """Return the findings by rule: how many were masked, were cleared by a person, or kept a row out."""
        return {
            rule: {action: self.scan[rule, action] for action in ACTIONS}
            for rule in BY_NAME
            if any(self.scan[rule, action] for action in ACTIONS)
        }
