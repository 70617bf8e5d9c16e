"""Which judges a verdict can rest on: those of whom it is known that they tell a better answer from a worse one."""

from collections.abc import Mapping, Sequence

from judging.panel.rubric import DIMENSIONS
from judging.panel.scoring import DuelScore
from judging.statistics.controls import ControlFigures

# A judge that parsed in fewer of the duels, or contradicts itself in more of its readings, says little.
MIN_PARSED = 0.5
MAX_FLIPS = 0.9
# A verdict needs as many informative judges.
ENOUGH_INFORMATIVE = 2


def not_informative(
    duels: Sequence[DuelScore], panel: Sequence[str], controls: Mapping[str, ControlFigures]
) -> dict[str, str]:
    """Return why each judge that is not informative is none, such as "parsed in 3 of 10 duels".

    `controls` are by judge; of one without figures nothing is known.
    """
    parsed, flips = dict.fromkeys(panel, 0), dict.fromkeys(panel, 0)
    for duel in duels:
        for said in duel.judges:
            parsed[said.judge] += 1
            flips[said.judge] += len(said.flips)
    found = {}
    for judge in panel:
        read = parsed[judge] * len(DIMENSIONS)
        if not read or parsed[judge] < MIN_PARSED * len(duels):
            found[judge] = f"parsed in {parsed[judge]} of {len(duels)} duels"
        # By dimension: at least one of five flips in nearly every duel of a sound judge that is not sure.
        elif flips[judge] >= MAX_FLIPS * read:
            found[judge] = f"flips in {100 * flips[judge] / read:.0f} % of its dimensions"
        elif judge not in controls:
            found[judge] = "read no control duel"
        elif controls[judge].objection:
            found[judge] = controls[judge].objection
    return found
