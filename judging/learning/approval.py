"""A model of people's decisions: the probability that they approve a sample, from the facts that are known of it.

Three candidates are compared by cross-validation over groups: decisions about one task are never on both sides. The one
with the lowest log loss is fitted on all decisions. Calibration, comparisons and doubts are about the probabilities
that it gives to decisions it was not fitted on.

All of it runs in one thread: the threads of OpenMP wait for each other, which takes minutes instead of a second on a
machine whose cores are busy.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from cleanlab.filter import find_label_issues
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from judging.statistics.rates import Interval, wilson

# By name, a number or a word. A fact that a sample does not have is missing.
Fact = float | str
Facts = Mapping[str, Fact]
# A fact of fewer samples teaches nothing; more columns than these are left out, the rarest first.
FEWEST, MOST_COLUMNS = 10, 120
MISSING = ""
Table = NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class FactColumns:
    """The facts that a model reads, in the order of its table: those with numbers, then those with words.

    `typical` is the value of each that stands for "nothing special": the median, or the commonest word.
    """

    numbers: tuple[str, ...]
    words: tuple[str, ...]
    typical: tuple[Fact, ...]

    @classmethod
    def of(cls, rows: Sequence[Facts]) -> "FactColumns":
        """Choose the columns. A fact with a word anywhere is one of words."""
        known = Counter(name for row in rows for name in row)
        chosen = [name for name, n in known.most_common(MOST_COLUMNS) if n >= FEWEST]
        worded = {name for row in rows for name, value in row.items() if isinstance(value, str)}
        numbers = tuple(sorted(name for name in chosen if name not in worded))
        words = tuple(sorted(name for name in chosen if name in worded))
        medians = [float(np.median([float(row[name]) for row in rows if name in row])) for name in numbers]
        common = [Counter(str(row.get(name, MISSING)) for row in rows).most_common(1)[0][0] for name in words]
        return cls(numbers, words, (*medians, *common))

    @property
    def names(self) -> tuple[str, ...]:
        return self.numbers + self.words

    def table(self, rows: Sequence[Facts]) -> Table:
        """Return the rows, of shape (rows, columns). A missing number is NaN, a missing word `MISSING`; so is a word
        that stands where the model knows numbers."""
        table = np.empty((len(rows), len(self.names)), dtype=object)
        for place, name in enumerate(self.numbers):
            table[:, place] = [value if isinstance(value := row.get(name), int | float) else np.nan for row in rows]
        for place, name in enumerate(self.words, start=len(self.numbers)):
            table[:, place] = [str(row.get(name, MISSING)) for row in rows]
        return table


FOLDS, BINS, REASONS = 5, 10, 5
# A rarer word is read as one of the rare ones.
RARE_WORD = 10
# A change of the log-odds that moves a probability of 50 % by about a point.
SLIGHT = 0.05
SCORE = "score"
Floats = NDArray[np.float64]


@contextmanager
def _one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


class TooFewGroups(ValueError):
    """One of the two answers comes from fewer than `FOLDS` tasks; the message says so."""


class Reason(NamedTuple):
    """`change` of the log-odds of an approval against the same sample with the typical value of the fact."""

    fact: str
    value: Fact | None
    change: float


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Decisions with about the same predicted approval, `predicted` on average; `approved` of `n`."""

    predicted: float
    approved: int
    n: int

    @property
    def interval(self) -> Interval:
        return wilson(self.approved, self.n)


class Importance(NamedTuple):
    """`change` is the mean absolute change of the log-odds by the fact, which `n` of the decisions have."""

    fact: str
    change: float
    n: int


@dataclass(frozen=True, slots=True)
class ApprovalFigures:
    """By decisions that the model was not fitted on. `losses` is the log loss of each candidate.

    An `auc` is the probability that an approved sample is placed above another one; `score_auc` is that of the score
    alone, among the `scored` decisions that have one, and `auc_where_scored` the model's among these. They are None
    where a side is empty.
    """

    losses: Mapping[str, float]
    auc: float
    brier: float
    scored: int
    score_auc: float | None
    auc_where_scored: float | None
    calibration: tuple[CalibrationBin, ...]
    importance: tuple[Importance, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """`method` names the candidate that was chosen. `held_out` are the probabilities of the decisions, each by a model
    that was fitted on others; `doubtful` are the indexes of those that confident learning finds wrong, worst first."""

    method: str
    columns: FactColumns
    figures: ApprovalFigures
    held_out: Floats
    doubtful: tuple[int, ...]
    _prepare: ColumnTransformer
    _classify: Any

    @_one_thread()
    def predict(self, rows: Sequence[Facts]) -> Floats:
        """Return the probability of an approval, 0 to 1, of each row."""
        return _probability(self._classify, self._prepare.transform(self.columns.table(rows)))

    @_one_thread()
    def explain(self, rows: Sequence[Facts]) -> list[list[Reason]]:
        """Return the facts of each row that move its probability most, at most `REASONS`, the strongest first."""
        changes = _changes(self._prepare, self._classify, self.columns, self.columns.table(rows))
        found = []
        for row, changed in zip(rows, changes, strict=True):
            strongest = np.argsort(-np.abs(changed), kind="stable")[:REASONS].tolist()
            names = [(self.columns.names[place], float(changed[place])) for place in strongest]
            found.append([Reason(name, row.get(name), change) for name, change in names if abs(change) >= SLIGHT])
        return found


@_one_thread()
def fit(rows: Sequence[Facts], approved: Sequence[bool], groups: Sequence[str], *, seed: int) -> Model:
    """Fit the model of decisions: the facts of each sample, whether it was approved, and the task that it is about.

    The same arguments give the same model. Raises `TooFewGroups`.
    """
    answers = np.array(approved, dtype=np.int64)
    for answer, words in ((1, "approve"), (0, "reject or change")):
        tasks = len({group for group, given in zip(groups, answers, strict=True) if given == answer})
        if tasks < FOLDS:
            raise TooFewGroups(
                f"The decisions that {words} are about {tasks} tasks. At least {FOLDS} are needed: the model is "
                "tested on other tasks than those that it learned from."
            )
    columns = FactColumns.of(rows)
    table, prepare = columns.table(rows), _prepared(columns)
    folds = list(StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed).split(table, answers, list(groups)))
    candidates = _candidates(seed)
    held_out = {
        name: cross_val_predict(make_pipeline(prepare, one), table, answers, cv=folds, method="predict_proba")
        for name, one in candidates.items()
    }
    losses = {name: float(log_loss(answers, given)) for name, given in held_out.items()}
    method = min(losses, key=lambda name: losses[name])
    fitted = make_pipeline(clone(prepare), candidates[method]).fit(table, answers)
    doubtful = find_label_issues(answers, held_out[method], return_indices_ranked_by="self_confidence", n_jobs=1)
    changes = _changes(fitted[0], fitted[1], columns, table)
    return Model(
        method,
        columns,
        _figures(losses, answers, held_out[method][:, 1], rows, columns, changes),
        held_out[method][:, 1],
        tuple(doubtful.tolist()),
        fitted[0],
        fitted[1],
    )


def _candidates(seed: int) -> dict[str, Any]:
    return {
        "logistic regression, C 0.1": LogisticRegression(C=0.1, max_iter=2_000),
        "logistic regression, C 1": LogisticRegression(C=1.0, max_iter=2_000),
        "gradient boosting": HistGradientBoostingClassifier(
            max_iter=80, max_leaf_nodes=8, min_samples_leaf=10, l2_regularization=1.0, random_state=seed
        ),
    }


def _prepared(columns: FactColumns) -> ColumnTransformer:
    """Each column by a transformer of its own, so that its outputs are known."""

    def of(name: str) -> Pipeline | OneHotEncoder:
        if name in columns.numbers:
            filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
            return make_pipeline(filled, StandardScaler())
        return OneHotEncoder(min_frequency=RARE_WORD, handle_unknown="infrequent_if_exist", sparse_output=False)

    parts = [(f"{place}", of(name), [place]) for place, name in enumerate(columns.names)]
    return ColumnTransformer(parts, sparse_threshold=0.0)


def _changes(prepare: ColumnTransformer, classify: Any, columns: FactColumns, table: Table) -> Floats:
    """Return the change of each row's log-odds by each of its facts, of shape (rows, columns)."""
    typical = np.array([columns.typical], dtype=object)
    inputs, usual = prepare.transform(table), prepare.transform(typical)[0]
    base = _log_odds(_probability(classify, inputs))
    changes = np.zeros(table.shape)
    for place in range(table.shape[1]):
        outputs = prepare.output_indices_[f"{place}"]
        replaced = inputs.copy()
        replaced[:, outputs] = usual[outputs]
        changes[:, place] = base - _log_odds(_probability(classify, replaced))
    return changes


def _probability(classify: Any, inputs: Floats) -> Floats:
    found: Floats = classify.predict_proba(inputs)[:, 1]
    return found


def _log_odds(probability: Floats) -> Floats:
    inside = np.clip(probability, 1e-6, 1 - 1e-6)
    return np.log(inside / (1 - inside))


def _figures(
    losses: Mapping[str, float],
    answers: NDArray[np.int64],
    held_out: Floats,
    rows: Sequence[Facts],
    columns: FactColumns,
    changes: Floats,
) -> ApprovalFigures:
    scores = np.array([row.get(SCORE, np.nan) for row in rows], dtype=np.float64)
    scored = ~np.isnan(scores)
    return ApprovalFigures(
        losses=losses,
        auc=float(roc_auc_score(answers, held_out)),
        brier=float(brier_score_loss(answers, held_out)),
        scored=int(scored.sum()),
        score_auc=_auc(answers[scored], scores[scored]),
        auc_where_scored=_auc(answers[scored], held_out[scored]),
        calibration=_calibration(answers, held_out),
        importance=_importance(rows, columns, changes),
    )


def _auc(answers: NDArray[np.int64], ordered_by: Floats) -> float | None:
    return float(roc_auc_score(answers, ordered_by)) if 0 < answers.sum() < len(answers) else None


def _calibration(answers: NDArray[np.int64], held_out: Floats) -> tuple[CalibrationBin, ...]:
    parts = np.array_split(np.argsort(held_out, kind="stable"), min(BINS, len(answers)))
    return tuple(CalibrationBin(float(held_out[part].mean()), int(answers[part].sum()), len(part)) for part in parts)


def _importance(rows: Sequence[Facts], columns: FactColumns, changes: Floats) -> tuple[Importance, ...]:
    mean = np.abs(changes).mean(axis=0)
    found = [
        Importance(name, float(mean[place]), sum(name in row for row in rows))
        for place, name in enumerate(columns.names)
    ]
    return tuple(sorted((one for one in found if one.change >= SLIGHT / 5), key=lambda one: -one.change))
