"""The run kinds around duels and the stages each is made of."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from curation.duels.config import model_name, panel_config, targets_named
from curation.duels.estimate import answer_estimate, judge_estimate, sum_estimates
from curation.duels.generate import AnswerStage
from curation.duels.judge import JudgeStage
from curation.duels.models import Side
from curation.duels.pairing import Entrants
from curation.duels.params import AnswerParams, DuelParams, JudgeParams, RescoreParams
from curation.duels.score import ScoreStage
from curation.duels.selecting import check_filter, duels_in
from curation.duels.verdict import VerdictStage, duels_of, duels_scored_by
from curation.projects.models import Project
from curation.runs.kinds import Estimate, Kind, Stage, register
from curation.runs.models import Run
from curation.web.ids import find


def register_kinds() -> None:
    for kind in (_answer_kind(Side.KING), _answer_kind(Side.CHALLENGER), JUDGE, DUEL, RESCORE):
        register(kind)


def _answer_kind(side: Side) -> Kind:
    def stages(params: AnswerParams) -> Sequence[Stage]:
        return [_answer_stage(side, params)]

    def estimate(project: Project, params: AnswerParams) -> Estimate:
        return answer_estimate(project, side, params.model, params)

    title = f"{side.label}: answers to prompts"
    return Kind(side.value, title, params=AnswerParams, stages=stages, check=_check_answers, estimate=estimate)


def _answer_stage(side: Side, params: AnswerParams) -> AnswerStage:
    return AnswerStage(
        side,
        model=params.model,
        samples=params.samples,
        attempts=params.attempts,
        fresh=params.fresh,
        filter=params.filter,
    )


def _judge_stages(params: JudgeParams) -> Sequence[Stage]:
    def entrants(run: Run) -> Entrants:
        return Entrants(king_model=params.king_model or "", challenger_model=params.challenger_model or "")

    return [JudgeStage(params, entrants), ScoreStage(params, duels_of), VerdictStage(params, duels_scored_by)]


def _duel_stages(params: DuelParams) -> Sequence[Stage]:
    def side(which: Side) -> AnswerStage:
        """The models are settled at launch (`_check_duel` fills them in), so a change of settings moves no run."""
        return AnswerStage(
            which,
            model=(params.king_model if which == Side.KING else params.challenger_model) or "",
            samples=params.samples,
            attempts=params.attempts or 3,
            fresh=params.fresh,
            filter=params.filter,
        )

    king, challenger = side(Side.KING), side(Side.CHALLENGER)

    def entrants(run: Run) -> Entrants:
        return Entrants(
            king_fingerprint=king.read(run).fingerprint(Side.KING) if params.mode != 1 else "",
            challenger_fingerprint=challenger.read(run).fingerprint(Side.CHALLENGER),
        )

    answers: list[Stage] = [king, challenger] if params.mode != 1 else [challenger]
    answers.append(JudgeStage(params, entrants))
    return [*answers, ScoreStage(params, duels_of), VerdictStage(params, duels_scored_by)]


def _rescore_stages(params: RescoreParams) -> Sequence[Stage]:
    def duels(run: Run) -> Iterator[int]:
        if params.run is not None:
            yield from duels_of(find(Run.objects.of(run.project), params.run, "run"))
        else:
            rows = duels_in(run.project, params.filter).order_by("id").values_list("pk", flat=True)
            yield from rows.iterator(5000)

    return [ScoreStage(params, duels), VerdictStage(params, duels_scored_by)]


def _check_answers(project: Project, params: AnswerParams) -> None:
    targets_named(project, [params.model], "model")
    check_filter(params.filter)


def _check_panel(project: Project, params: JudgeParams) -> None:
    config = panel_config(project, params)
    targets_named(project, config.judges, "judges")
    check_filter(params.filter)
    # What the settings say now is what this run goes by, whatever is changed while it works.
    params.judges, params.mode = list(config.judges), 2 if config.mode == 2 else 1
    params.swap, params.attempts = len(config.orders) == 2, config.attempts
    params.min_judges, params.show_reference = config.min_judges, config.show_reference


def _check_duel(project: Project, params: DuelParams) -> None:
    _check_panel(project, params)
    given = project.settings.generation
    params.challenger_model = model_name(params.challenger_model, given.challenger_model, "challenger_model")
    targets_named(project, [params.challenger_model], "challenger_model")
    if params.mode == 2:
        params.king_model = model_name(params.king_model, given.king_model, "king_model")
        targets_named(project, [params.king_model], "king_model")


def _check_rescore(project: Project, params: RescoreParams) -> None:
    config = panel_config(project, params)
    params.judges, params.min_judges = list(config.judges), config.min_judges
    params.weights = dict(config.weights) if config.weights else None
    check_filter(params.filter)
    if params.run is not None:
        find(Run.objects.of(project), params.run, "run")


def _duel_estimate(project: Project, params: DuelParams) -> Estimate:
    sides = [answer_estimate(project, Side.CHALLENGER, params.challenger_model or "", params)]
    if params.mode == 2:
        sides.insert(0, answer_estimate(project, Side.KING, params.king_model or "", params))
    return sum_estimates(*sides, judge_estimate(project, params))


def _rescore_estimate(project: Project, params: RescoreParams) -> Estimate:
    return Estimate(cost=Decimal(0), notes=("No model is asked.",))


JUDGE = Kind(
    name="judge",
    title="Judge: duels of the answers that are there",
    params=JudgeParams,
    stages=_judge_stages,
    check=_check_panel,
    estimate=judge_estimate,
)
DUEL = Kind(
    name="duel",
    title="Duel: king, challenger and judge in a row",
    params=DuelParams,
    stages=_duel_stages,
    check=_check_duel,
    estimate=_duel_estimate,
)
RESCORE = Kind(
    name="rescore",
    title="Re-score: new scores from the verdicts that are there",
    params=RescoreParams,
    stages=_rescore_stages,
    check=_check_rescore,
    estimate=_rescore_estimate,
)
