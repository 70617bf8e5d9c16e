"""Thousands of simulated runs: scenarios that the gate accepts, the coverage of its bound, and the flawed judges it
names.

`-s` prints the table of docs/measurements.md.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from judging.statistics.acceptance import acceptance
from judging.statistics.bounds import choose_clusters, lower_bounds
from judging.statistics.gate import GateSettings
from judging.statistics.judges.findings import Flaw, findings
from judging.statistics.judges.readings import panel_readings
from tests.judging.statistics.worlds import FLAWED, PANEL, World, on_controls

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
ROUNDS = {50: 300, 200: 200, 1000: 80}
# Moves a panel of sound judges to a true margin of 10 points (`test_the_pull_makes_a_margin_of_ten`).
TEN_POINTS = 0.173


def run(world: World, seed: int) -> tuple[bool, bool, bool]:
    """Whether the gate accepts, is undecided, and would accept without leaving anything out."""
    settings = GateSettings(resamples=1000, seed=seed, min_judges=2)
    result = acceptance(world.gated(world.judged), panel=PANEL, controls=on_controls(*PANEL), settings=settings)
    assert result.margin is not None and result.lcb is not None
    return result.accepted, bool(result.undecided_without), result.margin >= 2 and result.lcb > 0


def shares(duels: int, flaw: Flaw | None, pull: float, rounds: int) -> Sequence[float]:
    made = (World(np.random.default_rng([duels, seed]), duels, flaw, pull=pull) for seed in range(rounds))
    return [float(share) for share in np.mean([run(world, seed) for seed, world in enumerate(made)], axis=0)]


@pytest.mark.parametrize("duels", list(ROUNDS))
@pytest.mark.parametrize("flaw", [None, *FLAWED])
def test_a_flawed_judge_makes_no_false_acceptance(flaw: Flaw | None, duels: int) -> None:
    """No difference between the contestants; two sound judges and one flawed."""
    accepted, undecided, without = shares(duels, flaw, 0.0, ROUNDS[duels])
    power = shares(duels, flaw, TEN_POINTS, ROUNDS[duels] // 2)[0]
    name = flaw or "all sound"
    print(f"\n| {name} | {duels} | {without:.2f} | {accepted:.3f} | {undecided:.2f} | {power:.2f} |")
    assert accepted < 0.10


def two_collude(world: World) -> None:
    world.says["sound-b"] = world.shifted(1.2)
    world.says["judge-c"] = world.says["sound-b"].copy()


def bribed(world: World, *judges: str) -> NDArray[np.bool_]:
    """Three in ten of the challenger's answers have a passage that wins these judges."""
    paid = world.rng.random(world.n) < 0.3
    world.says |= {judge: world.shifted(3.0 * paid) for judge in judges}
    return paid


SPOILED = (
    *("two collude", "all bribed, flagged", "all bribed, shown by controls", "one bribed, nothing shows it"),
    "all bribed, no one shown by its controls",
)


@pytest.mark.parametrize("duels", list(ROUNDS))
@pytest.mark.parametrize("how", SPOILED)
def test_collusion_and_bribes_make_no_false_acceptance(how: str, duels: int) -> None:
    """No difference between the contestants."""
    decisions: Counter[str] = Counter()
    for seed in range(ROUNDS[duels]):
        world = World(np.random.default_rng([duels, seed, 2]), duels, None)
        controls, paid = on_controls(*PANEL), np.zeros(duels, dtype=bool)
        if how == "two collude":
            two_collude(world)
        else:
            paid = bribed(world, *(PANEL if how.startswith("all") else ("judge-c",)))
        if "controls" in how:
            count = 2 if "no one" in how else 6
            controls = {judge: replace(figures, bribes=8, bribed=count) for judge, figures in controls.items()}
        flags = paid if "flagged" in how else np.zeros(duels, dtype=bool)
        gated = [replace(duel, injection=bool(flags[row])) for row, duel in enumerate(world.gated(world.judged))]
        settings = GateSettings(resamples=1000, seed=seed, min_judges=2)
        result = acceptance(gated, panel=PANEL, controls=controls, settings=settings)
        decisions[result.decision] += 1
        decisions["before"] += bool(result.margin is not None and result.lcb is not None and result.lcb > 0)
    share = {decision: count / ROUNDS[duels] for decision, count in decisions.items()}
    print(f"\n| {how} | {duels} | {share}")
    assert share.get("accepted", 0.0) < 0.10


def accepted_by_two(duels: int, repos: int, pull: float, rounds: int, *, always: bool) -> float:
    """The share of runs that two judges accept; `always`: one of them prefers the challenger in every duel."""
    count = 0
    for seed in range(rounds):
        world = World(np.random.default_rng([duels, repos, seed]), duels, None, pull=pull, repos=repos)
        if always:
            world.says["judge-c"] = np.tile(np.array([2, 1]).reshape(1, 2, 1), (duels, 1, 5))
        panel = ("sound-a", "judge-c")
        settings = GateSettings(resamples=500, seed=seed)
        result = acceptance(world.gated_by(*panel), panel=panel, controls=on_controls(*panel), settings=settings)
        count += result.accepted
    return count / rounds


@pytest.mark.parametrize(("duels", "repos"), [(100, 3), (100, 5), (100, 12), (200, 25), (400, 40)])
def test_two_judges_make_no_false_acceptance_with_few_repositories(duels: int, repos: int) -> None:
    """Either both are sound, or one of them prefers the challenger for any answers."""
    flawed, sound = (accepted_by_two(duels, repos, 0.0, 200, always=always) for always in (True, False))
    power = accepted_by_two(duels, repos, 2 * TEN_POINTS, 100, always=False)
    print(f"\n| {duels} | {repos} | {flawed:.3f} | {sound:.3f} | {power:.2f} |")
    assert max(flawed, sound) <= 0.07
    assert power > (0.7 if repos >= 25 else 0.1)


@pytest.mark.parametrize("duels", list(ROUNDS))
def test_flawed_judges_are_named_and_sound_ones_are_not(duels: int) -> None:
    rounds = ROUNDS[duels] // 4
    named: Counter[Flaw] = Counter()
    accused = 0
    for flaw in FLAWED:
        for seed in range(rounds):
            world = World(np.random.default_rng([duels, seed, 1]), duels, flaw)
            found = findings(panel_readings(world.judged, panel=PANEL, families=world.families))
            named[flaw] += any(each.flaw == flaw and each.judge == "judge-c" for each in found)
            accused += any(each.flaw and each.judge != "judge-c" and each.flaw != Flaw.COPY for each in found)
    print(f"\n{duels} duels: sound judges named in {accused / rounds / len(FLAWED):.3f} of the runs, flawed ones in")
    print(", ".join(f"{flaw} {count / rounds:.2f}" for flaw, count in named.items()))
    assert accused / rounds / len(FLAWED) < 0.05
    if duels >= 200:
        # Only a third of the duels is in the repository, and a quarter in the hours.
        assert min(named[flaw] for flaw in FLAWED if flaw not in (Flaw.REPOSITORY, Flaw.HOURS)) >= 0.95 * rounds


@pytest.mark.parametrize("clusters", [10, 50, 200])
@pytest.mark.parametrize("sizes", ["equal", "geometric"])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_bound_covers_as_often_as_it_says(clusters: int, sizes: str, share: float) -> None:
    """`share` of the variance is of repositories; the true margin is below the bound in 3 to 7 of 100 runs."""
    rng = np.random.default_rng([clusters, len(sizes), int(10 * share)])
    rounds, covered, by_turn = 2000, 0, 0
    for seed in range(rounds):
        per_cluster = np.full(clusters, 5) if sizes == "equal" else rng.geometric(0.2, clusters)
        repo = np.repeat(np.arange(clusters), per_cluster)
        latent = rng.normal(0, share**0.5, clusters)[repo] + rng.normal(0, (1 - share) ** 0.5, len(repo))
        # Scores of three judges on five dimensions are steps; the truth is 0 by symmetry.
        margins = np.clip(np.round(latent * 8), -15, 15)[:, None] / 15 * 100
        names = [f"r{number}" for number in repo]
        found = choose_clusters(names, [f"i{row}" for row in range(len(repo))])
        draw = {"quantile": 0.05, "resamples": 1000, "seed": seed}
        covered += lower_bounds(margins, found, **draw)[0] <= 0  # type: ignore[arg-type]
        error = float(margins.std()) / len(repo) ** 0.5
        by_turn += float(margins.mean()) - 1.645 * error <= 0
    what = f"{clusters} {sizes} clusters, {share:.0%} of repositories"
    print(f"\n{what}: {covered / rounds:.3f}; by turn {by_turn / rounds:.3f}")
    assert 0.93 <= covered / rounds <= 0.97


def test_the_pull_makes_a_margin_of_ten() -> None:
    scores = []
    for seed in range(60):
        world = World(np.random.default_rng([7, seed]), 1000, None, pull=TEN_POINTS)
        scores += [duel.score.score for duel in world.judged if duel.score.score is not None]
    assert 2 * float(np.mean(scores)) - 100 == pytest.approx(10, abs=1.5)
