"""The balance of the labels of KTO, and the weights of its losses that TRL recommends for it."""

from typing import NamedTuple

# K. Ethayarajh et al., "KTO: Model Alignment as Prospect Theoretic Optimization" (2024), equation 8: the weighted
# number of desirable rows is 1 to 4/3 of that of undesirable ones.
_MOST = 1.33


class LabelBalance(NamedTuple):
    """The rows that a model learns from, and those that it avoids, of the split that is trained on."""

    desirable: int
    undesirable: int

    @property
    def desirable_weight(self) -> tuple[float, float]:
        """The lowest and highest weight of desirable rows if undesirable ones have the weight 1."""
        lowest = max(self.undesirable, 1) / max(self.desirable, 1)
        return round(lowest, 2), round(lowest * _MOST, 2)

    @property
    def undesirable_weight(self) -> tuple[float, float]:
        """The lowest and highest weight of undesirable rows if desirable ones have the weight 1."""
        highest = max(self.desirable, 1) / max(self.undesirable, 1)
        return round(highest / _MOST, 2), round(highest, 2)

    def settings(self) -> dict[str, float]:
        """Return the weight, by TRL's name, that makes rows of both labels count as much."""
        if self.desirable > self.undesirable:
            return {"undesirable_weight": self.undesirable_weight[1]}
        return {"desirable_weight": self.desirable_weight[0]} if self.desirable < self.undesirable else {}

    def as_json(self) -> dict[str, object]:
        return {
            **self._asdict(),
            "desirable_weight": list(self.desirable_weight),
            "undesirable_weight": list(self.undesirable_weight),
        }
