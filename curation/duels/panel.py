"""How a run judges: its parameters with the project's settings filled in, resolved against the project's endpoints."""

from collections.abc import Mapping
from dataclasses import dataclass

from curation.duels.models import Order
from curation.duels.params import JudgeParams, RescoreParams
from curation.projects.settings.document import ProjectSettings
from curation.web.problems import FieldError, Invalid

BOTH_ORDERS = (Order.KING_FIRST.value, Order.CHALLENGER_FIRST.value)


@dataclass(frozen=True, slots=True)
class PanelConfig:
    """Who judges, in which orders, and what a duel needs to count as parsed (`min_judges` None: the whole panel).

    `as_scored`: a duel that has a score is scored in the orders of that score; `orders` are for the others.
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


def panel_config(settings: ProjectSettings, params: JudgeParams | RescoreParams) -> PanelConfig:
    """The panel that is meant; raises `Invalid` where there is none or it asks for the impossible."""
    panel = settings.panel
    judges = tuple(dict.fromkeys(params.judges if params.judges is not None else panel.judges))
    if not judges:
        raise Invalid(
            "No judges: name them in the run, or a panel in the project's settings.",
            errors=[FieldError("params.judges", "at least one judge is needed")],
        )
    wanted = params.min_judges if params.min_judges is not None else panel.min_judges
    if isinstance(params, RescoreParams) and params.min_judges is None and wanted is not None:
        wanted = min(wanted, len(judges))  # fewer judges are what re-scoring is for
    if wanted is not None and wanted > len(judges):
        raise Invalid(
            f"min_judges is {wanted}, but the panel has {len(judges)}.",
            errors=[FieldError("params.min_judges", f"at most {len(judges)}")],
        )
    asked = params if isinstance(params, JudgeParams) else JudgeParams()
    given = params.weights if isinstance(params, RescoreParams) else None
    swap = panel.swap if asked.swap is None else asked.swap
    return PanelConfig(
        judges=judges,
        orders=BOTH_ORDERS if swap else BOTH_ORDERS[:1],
        mode=asked.mode or panel.mode,
        attempts=asked.attempts or panel.attempts,
        min_judges=wanted,
        show_reference=panel.show_reference if asked.show_reference is None else asked.show_reference,
        weights=given or panel.dimension_weights(),
        as_scored=isinstance(params, RescoreParams),
        params={"temperature": panel.temperature, "max_tokens": panel.max_tokens},
    )


def model_name(given: str | None, default: str, place: str) -> str:
    """The endpoint's name of the run or of the settings; `Invalid` where neither names one."""
    name = given or default
    if not name:
        raise Invalid(
            f"No {place}: name it in the run, or in the project's settings.",
            errors=[FieldError(f"params.{place}", "missing")],
        )
    return name
