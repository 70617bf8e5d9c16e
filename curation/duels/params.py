"""Parameters of the duel run kinds, and the panel that they and the project's settings make."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from curation.duels.models import Order
from curation.projects.settings.document import ProjectSettings
from curation.web.problems import FieldError, Invalid
from curation.web.schemas import StrictModel
from curation.web.text.figures import counted

BOTH_ORDERS = (Order.KING_FIRST.value, Order.CHALLENGER_FIRST.value)

# Half of them have a known winner, and a judge that is right in nine of ten is told from chance nearly always.
LEAST_CONTROLS = 30

Samples = Annotated[int, Field(ge=1, le=16)]
Attempts = Annotated[int, Field(ge=1, le=10)]


class AnswerParams(StrictModel):
    """`king` and `challenger`: the endpoint, answers per prompt, attempts per answer."""

    model: str
    samples: Samples = 1
    attempts: Attempts = 3
    filter: dict[str, Any] = {}
    fresh: bool = False


class ChallengerParams(AnswerParams):
    """`challenger`: `leak_reader` is the endpoint that reads the answers for leaks, `none` for the lint only."""

    leak_reader: str | None = None


class JudgeParams(StrictModel):
    """`judge`: the panel, and the models whose answers are compared. Missing fields are the project's settings."""

    judges: list[str] | None = None
    swap: bool | None = None
    mode: Literal[1, 2] | None = None
    attempts: Attempts | None = None
    min_judges: Annotated[int, Field(ge=1)] | None = None
    show_reference: bool | None = None
    king_model: str | None = None
    challenger_model: str | None = None
    filter: dict[str, Any] = {}
    fresh: bool = False


class DuelParams(JudgeParams):
    """`duel`: king, challenger and judge one after another. `leak_reader` as for `challenger`."""

    samples: Samples = 1
    leak_reader: str | None = None


class RescoreParams(StrictModel):
    """`rescore`: new scores from existing verdicts, without model calls."""

    run: str | None = None
    judges: list[str] | None = None
    min_judges: Annotated[int, Field(ge=1)] | None = None
    weights: dict[str, Annotated[float, Field(ge=0.0, le=1000.0)]] | None = None
    filter: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Panel:
    """The judges, the orders in which they read a duel, and how many a parsed duel needs (`min_judges` None: all).

    `weights` may lack dimensions, which weigh 1. `as_scored`: a duel with a score keeps the orders of that score;
    `orders` are for the others.
    """

    judges: tuple[str, ...]
    orders: tuple[str, ...]
    mode: int
    attempts: int
    min_judges: int | None
    show_reference: bool
    weights: Mapping[str, float] | None
    as_scored: bool
    params: Mapping[str, object]


def judges_of(settings: ProjectSettings, params: JudgeParams | RescoreParams) -> tuple[str, ...]:
    """Return the judges of a run, each once. Raises `Invalid` without one."""
    judges = tuple(dict.fromkeys(params.judges if params.judges is not None else settings.panel.judges))
    if not judges:
        raise Invalid(
            "No judges: name them in the run, or set a panel in the project's settings.",
            errors=[FieldError("params.judges", "at least one judge is needed")],
        )
    return judges


def panel_of(settings: ProjectSettings, params: JudgeParams | RescoreParams) -> Panel:
    """Return the panel of a run. Raises `Invalid` without judges, or if fewer judges than `min_judges` are named."""
    defaults = settings.panel
    judges = judges_of(settings, params)
    wanted = params.min_judges if params.min_judges is not None else defaults.min_judges
    if isinstance(params, RescoreParams) and params.min_judges is None and wanted is not None:
        wanted = min(wanted, len(judges))  # a rescore may leave judges out
    if wanted is not None and wanted > len(judges):
        raise Invalid(
            f"Judges needed is {wanted}, but the panel has {counted(len(judges), 'judge')}.",
            errors=[FieldError("params.min_judges", f"at most {len(judges)}")],
        )
    given = params if isinstance(params, JudgeParams) else JudgeParams()
    weights = params.weights if isinstance(params, RescoreParams) else None
    swap = defaults.swap if given.swap is None else given.swap
    return Panel(
        judges=judges,
        orders=BOTH_ORDERS if swap else BOTH_ORDERS[:1],
        mode=given.mode or defaults.mode,
        attempts=given.attempts or defaults.attempts,
        min_judges=wanted,
        show_reference=defaults.show_reference if given.show_reference is None else given.show_reference,
        weights=weights or defaults.weights or None,
        as_scored=isinstance(params, RescoreParams),
        params={"temperature": defaults.temperature, "max_tokens": defaults.max_tokens},
    )


def judges_needed(settings: ProjectSettings) -> list[str]:
    """Return the parameters that a launch must name, because the settings have no panel."""
    return [] if settings.panel.judges else ["judges"]


def controls_wanted(duels: int, share: float, *, first: bool) -> int:
    """Return how many controls go with these duels: the share, in the first part at least 30. 0 of none.

    Each duel has two answers to make a control of, so there are never more than twice as many.
    """
    if not share or not duels:
        return 0
    return min(2 * duels, max(LEAST_CONTROLS if first else 0, math.ceil(share * duels)))


def model_name(given: str | None, default: str, path: str) -> str:
    """Return the endpoint of the run or of the settings. Raises `Invalid` if neither names one."""
    name = given or default
    if not name:
        raise Invalid(
            f"Choose a {path.replace('_', ' ')}, for this run or in the project's settings.",
            errors=[FieldError(f"params.{path}", "missing")],
        )
    return name
