"""Several attempts at each task: pass@1, pass@k and pass^k, with intervals whose clusters are the tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from judging.statistics.rates import Interval, wilson


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts at one task, and how many of them solved it."""

    solved: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Pass:
    """A mean over `tasks` of shares from 0 to 1, each for sets of `k` attempts, with its 95 % interval.

    `left_out` are tasks with fewer than `k` attempts, which say nothing about sets of `k`.
    """

    k: int
    value: float
    interval: Interval
    tasks: int
    left_out: int


def pass_at_k(task: Attempts, k: int) -> float:
    """Return the share of sets of `k` attempts of which one is solved, unbiased: 1 − C(n − c, k) / C(n, k).

    M. Chen et al., "Evaluating Large Language Models Trained on Code" (2021), equation 1. Needs `k` attempts.
    """
    return 1 - comb(task.attempts - task.solved, k) / comb(task.attempts, k)


def pass_hat_k(task: Attempts, k: int) -> float:
    """Return the share of sets of `k` attempts of which all are solved, unbiased: C(c, k) / C(n, k).

    S. Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains" (2024), where it is
    written pass^k. Needs `k` attempts.
    """
    return comb(task.solved, k) / comb(task.attempts, k)


def mean_pass_at(tasks: Sequence[Attempts], k: int) -> Pass | None:
    """Return pass@k over tasks, each with the same weight; None if no task has `k` attempts."""
    return _mean([pass_at_k(task, k) for task in tasks if task.attempts >= k], tasks, k)


def mean_pass_hat(tasks: Sequence[Attempts], k: int) -> Pass | None:
    """Return pass^k over tasks, each with the same weight; None if no task has `k` attempts."""
    return _mean([pass_hat_k(task, k) for task in tasks if task.attempts >= k], tasks, k)


def _mean(values: Sequence[float], tasks: Sequence[Attempts], k: int) -> Pass | None:
    if not values:
        return None
    attempts = sum(task.attempts for task in tasks if task.attempts >= k)
    interval = clustered_mean(values, attempts // k)
    return Pass(k, float(np.mean(values)), interval, len(values), len(tasks) - len(values))


def clustered_mean(values: Sequence[float], observations: int) -> Interval:
    """Return the 95 % interval of the mean of shares, one for each cluster, of so many observations in all.

    Wilson's interval of as many independent observations as have the variance of this mean: J. N. K. Rao and A. J.
    Scott, "A simple method for the analysis of clustered binary data", Biometrics 48 (1992). They are no fewer than
    the clusters, and no more than the observations, where the clusters happen to agree.
    """
    count, mean = len(values), float(np.mean(values))
    variance = float(np.var(values, ddof=1)) / count if count > 1 else 0.0
    most = max(count, observations)
    effective = most if variance == 0 else min(most, max(count, mean * (1 - mean) / variance))
    if mean in (0.0, 1.0):  # all clusters agree, and the attempts of one say little about another
        effective = count
    return wilson(mean * effective, effective)
