"""The numbers by which samples can be ordered, by name: higher is likelier to be approved."""

from django.db.models import F, Value
from django.db.models.expressions import Combinable
from django.db.models.fields.json import KeyTransform

from curation.web.problems import FieldError, Invalid

PREDICTED = "predicted"
# Name → column of the sample, or a lookup from it.
COLUMNS = {"score": "score", "reward": "trajectory__reward", PREDICTED: "predicted"}
# All samples are alike: there is one threshold, below all of them.
NONE = "none"
REWARD = "reward."
NO_MODEL = "No model of decisions was fitted, so no sample has a predicted approval. Fit one first, or use `score`."


def score_of(name: str) -> Combinable:
    """Return the score of that name as an expression on samples; its values may be null or no number. Raises `Invalid`
    for another name."""
    if name in COLUMNS:
        return F(COLUMNS[name])
    if name == NONE:
        return Value(0.0)
    if name.startswith(REWARD) and name != REWARD:
        return KeyTransform(name.removeprefix(REWARD), "trajectory__rewards")
    known = f"{', '.join([*COLUMNS, NONE])} or {REWARD}<name>"
    raise Invalid(f"There is no score {name[:60]!r}; use {known}.", errors=[FieldError("score", f"is {known}")])
