"""The counts of an export, kept while its samples pass by. Preview, manifest, card and page show the same ones."""

from collections import Counter
from dataclasses import dataclass, field

from curation.exports.files.balance import Endings
from curation.exports.rows.filter import Sifted
from curation.exports.rows.skip_reasons import Reason
from curation.projects.settings.document import Balance

EXAMPLES = 20
BINS = 10


@dataclass(slots=True)
class Tally:
    """`excluded` counts samples per reason, in one format or in all; `histogram` has 10 bins of 10 points.

    `trajectories` were looked into, `pairs` are rows that come from a stored pair of them.
    """

    samples: int = 0
    exported: int = 0
    unscored: int = 0
    bytes: int = 0
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    histogram: list[int] = field(default_factory=lambda: [0] * BINS)
    revisions: int = 0
    trajectories: int = 0
    pairs: int = 0
    endings: Endings = field(default_factory=Endings)

    def add(self, sifted: Sifted) -> None:
        self.samples += 1
        for line in sifted.lines:
            self.rows[line.format, line.split] += 1
            self.bytes += len(line.data)
            self.pairs += line.pair != ""
        self.trajectories += sifted.rollout is not None
        if sifted.lines:
            self._exported(sifted)
        for left in sifted.left_out:
            self.excluded[left.reason.value] += 1
            named = self.examples.setdefault(left.reason.value, [])
            if len(named) < EXAMPLES:
                named.append(str(sifted.sample.sample_id))

    def _exported(self, sifted: Sifted) -> None:
        frozen = sifted.sample
        self.exported += 1
        if sifted.rollout is not None:
            self.endings.add(sifted.rollout.terminal, sifted.rollout.task)
        self.revisions += frozen.revision_id is not None
        if frozen.score is None:
            self.unscored += 1
        else:
            self.histogram[min(int(frozen.score * BINS / 100), BINS - 1)] += 1

    def of(self, name: str, split: str) -> int:
        """Rows in a format and split."""
        return self.rows[name, split]

    def rows_by_split(self, formats: list[str], splits: list[str]) -> dict[str, dict[str, int]]:
        """Every format and split of a recipe is there, also with 0 rows."""
        return {name: {split: self.of(name, split) for split in splits} for name in formats}

    def reasons(self) -> dict[str, int]:
        """Samples by reason, in the order of the checks."""
        return {reason.value: self.excluded[reason] for reason in Reason if self.excluded[reason]}

    def counts(self, formats: list[str], splits: list[str], band: Balance) -> dict[str, object]:
        """The counts of a finished export; what lies outside `band` is a warning."""
        balance = self.endings.balance()
        return {
            "samples": self.samples,
            "exported": self.exported,
            "rows": self.rows_by_split(formats, splits),
            "excluded": self.reasons(),
            "balance": balance.as_json() if balance else None,
            "warnings": balance.warnings(band) if balance else [],
        }
