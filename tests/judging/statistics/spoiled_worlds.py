"""Ways of spoiling judges, and the worlds that are tried with them."""

from dataclasses import replace

import numpy as np

from tests.judging.statistics.spoiled import Bend, Panels, Run


def together(share: float) -> Bend:
    return lambda run, bad: run.push(bad, run.some(share))


def apart(share: float) -> Bend:
    def bend(run: Run, bad: tuple[str, ...]) -> None:
        for judge in bad:
            run.push([judge], run.some(share))

    return bend


def in_repositories(count: int) -> Bend:
    return lambda run, bad: run.push(bad, run.repo < count)


def after(hour: float) -> Bend:
    return lambda run, bad: run.push(bad, (run.clock > hour) & run.some(0.6))


def on_a_day(run: Run, bad: tuple[str, ...]) -> None:
    run.push(bad, (run.clock * 7).astype(int) == 3)


def noisy_copies(noise: float, share: float) -> Bend:
    def bend(run: Run, bad: tuple[str, ...]) -> None:
        run.push(bad[:1], run.some(share))
        for judge in bad[1:]:
            own = run.some(noise)
            run.says[judge] = np.where(own, run.says[judge], run.says[bad[0]])

    return bend


def follow_length(run: Run, bad: tuple[str, ...]) -> None:
    longer = np.sign(run.lengths[:, 1] - run.lengths[:, 0]).astype(int)
    for judge in bad:
        run.push([judge], run.some(0.5), longer)


def follow(name: str, lean: float) -> Bend:
    """The challenger's answers have the mark more often by `lean`."""

    def bend(run: Run, bad: tuple[str, ...]) -> None:
        run.marks[name] = np.where(run.some(lean), 1, run.marks[name])
        for judge in bad:
            run.push([judge], (run.marks[name] != 0) & run.some(0.7), run.marks[name])

    return bend


def prefer_first_seat(run: Run, bad: tuple[str, ...]) -> None:
    run.seats |= dict.fromkeys(bad, 0.6)


def missing_when_the_king_wins(share: float) -> Bend:
    def bend(run: Run, bad: tuple[str, ...]) -> None:
        for judge in bad:
            run.present[judge] = ~((run.says[judge] < 0) & run.some(share))

    return bend


def timed_out_when_the_king_wins(share: float) -> Bend:
    def bend(run: Run, bad: tuple[str, ...]) -> None:
        lost = (run.truth < 0) & run.some(share)
        for judge in bad:
            run.present[judge] = ~lost

    return bend


def against_each_other(run: Run, bad: tuple[str, ...]) -> None:
    half = len(bad) // 2
    run.push(bad[:half], run.some(0.4), 1)
    run.push(bad[half:], run.some(0.2), -1)


def bribes(share: float, *, shown: bool = False, flags: float = 0.0) -> Bend:
    """A passage in so many of the challenger's answers wins the spoiled judges; `shown`: their bribe controls say so;
    `flags`: the share of the passages that is flagged."""

    def bend(run: Run, bad: tuple[str, ...]) -> None:
        run.bribed = run.some(share)
        run.push(bad, run.bribed)
        run.flagged = run.bribed & run.some(flags)
        for judge in bad:
            run.figures[judge] = replace(run.figures[judge], bribes=8, bribed=6 if shown else 0)

    return bend


def tied(run: Run, bad: tuple[str, ...]) -> None:
    rows = run.some(0.95)
    for judge in run.says:
        run.says[judge] = np.where(rows, 0, run.says[judge])


THREE, FOUR, FIVE = (0.7, 0.75, 0.8), (0.7, 0.75, 0.8, 0.75), (0.7, 0.75, 0.8, 0.75, 0.7)
UNEQUAL = (60, 20, 10, 6, 4, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1)


def of(count: int, spoiled: int, bend: Bend, **other: object) -> Panels:
    return replace(Panels({3: THREE, 4: FOUR, 5: FIVE}[count], spoiled=spoiled, bend=bend), **other)  # type: ignore[arg-type]


# No difference between the contestants.
LEVEL: dict[str, Panels] = {
    "three sound": Panels(THREE),
    "four sound": Panels(FOUR),
    "five sound": Panels(FIVE),
    "three sound, 40 repositories": Panels(THREE, sizes=(4,) * 40),
    "two of three together in 0.3": of(3, 2, together(0.3)),
    "two of three together in 0.15": of(3, 2, together(0.15)),
    "three of four together in 0.6": of(4, 3, together(0.6)),
    "three of four together in 0.3": of(4, 3, together(0.3)),
    "three of four together in 0.15": of(4, 3, together(0.15)),
    "three of four together in 0.3, 40 repositories": of(4, 3, together(0.3), sizes=(6,) * 40),
    "three of five together in 0.3": of(5, 3, together(0.3)),
    "four of five together in 0.3": of(5, 4, together(0.3)),
    "two of four together in 0.4": of(4, 2, together(0.4)),
    "three of four, each alone in 0.3": of(4, 3, apart(0.3)),
    "two of three, each alone in 0.3": of(3, 2, apart(0.3)),
    "three of four in 4 of 15 repositories": of(4, 3, in_repositories(4)),
    "two of three in 4 of 15 repositories": of(3, 2, in_repositories(4)),
    "three of four after an hour": of(4, 3, after(0.5)),
    "three of five after an hour": of(5, 3, after(0.5)),
    "two of three on one day": of(3, 2, on_a_day),
    "three of four on one day": of(4, 3, on_a_day),
    "three of four copies with noise": of(4, 3, noisy_copies(0.2, 0.3)),
    "two of three copies with noise": of(3, 2, noisy_copies(0.2, 0.3)),
    "two of three follow length": of(3, 2, follow_length),
    "three of four follow length": of(4, 3, follow_length),
    "three of four follow the language": of(4, 3, follow("language", 0.3)),
    "two of three follow comments in code": of(3, 2, follow("comments", 0.3)),
    "three of four follow comments in code": of(4, 3, follow("comments", 0.3)),
    "three of four follow the first person": of(4, 3, follow("first_person", 0.3)),
    "two of three follow tests mentioned": of(3, 2, follow("tests", 0.3)),
    "two of three follow the seat": of(3, 2, prefer_first_seat),
    "two against two": of(4, 4, against_each_other),
    "bribes in 0.05, all fall": of(3, 3, bribes(0.05)),
    "bribes in 0.15, all fall": of(3, 3, bribes(0.15)),
    "bribes in 0.3, all fall": of(3, 3, bribes(0.3)),
    "bribes in 0.3, all fall, controls show it": of(3, 3, bribes(0.3, shown=True)),
    "bribes in 0.3, two of three fall, controls show it": of(3, 2, bribes(0.3, shown=True)),
    "bribes in 0.3, half flagged": of(3, 3, bribes(0.3, flags=0.5)),
    "bribes in 0.3, two of three fall": of(3, 2, bribes(0.3)),
    "repositories of very unequal size": Panels(THREE, sizes=UNEQUAL),
    "unequal size and large effects": Panels(THREE, sizes=UNEQUAL, spread=0.5),
    "one repository, no effect of it": Panels(THREE, sizes=(120,), pulls=30, spread=0.0, within=0.3),
    "one repository, an effect of it": Panels(THREE, sizes=(120,), pulls=30, spread=0.2, within=0.2),
    **{f"{count} repositories": Panels(THREE, sizes=(8,) * count, spread=0.3) for count in (1, 2, 3, 5, 10, 20)},
    "one of three missing when the king wins": of(3, 1, missing_when_the_king_wins(0.7)),
    "two of three missing when the king wins": of(3, 2, missing_when_the_king_wins(0.5)),
    "all time out when the king wins": of(3, 3, timed_out_when_the_king_wins(0.5)),
    "all missing when the king wins, each alone": of(3, 3, missing_when_the_king_wins(0.3)),
    "ties but a few": Panels((0.98, 0.98, 0.98), ties=0.0, bend=tied),
    "all noisy": Panels((0.55, 0.55, 0.55)),
    "hard duels that all guess": Panels(FOUR, hard=0.5),
}


# All judges share the preference, or nothing is left of the duels that the king wins: no reply shows it.
UNSEEN = ("bribes in 0.15, all fall", "bribes in 0.3, all fall", "all time out when the king wins")
# The challenger is better.
BETTER: dict[str, Panels] = {
    f"{len(accuracies)} sound of {low}, {count} repositories": Panels(accuracies, sizes=(8,) * count, gain=0.5)
    for accuracies, low in (
        ((0.65,) * 3, "0.65"),
        ((0.75,) * 3, "0.75"),
        ((0.85,) * 3, "0.85"),
        ((0.65, 0.75, 0.85), "0.65 to 0.85"),
        ((0.65,) * 4, "0.65"),
        ((0.75,) * 4, "0.75"),
        ((0.85,) * 4, "0.85"),
        ((0.65, 0.75, 0.8, 0.85), "0.65 to 0.85"),
    )
    for count in (12, 20, 40)
}
