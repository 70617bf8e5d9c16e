"""The run kinds around duels and the stages each is made of."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice

from curation.duels.answers.stage import AnswerStage
from curation.duels.estimate import answer_estimate, judge_estimate, sum_estimates
from curation.duels.judge.pairing import Entrants
from curation.duels.judge.stage import JudgeStage
from curation.duels.models import Answer, Side, Verdict
from curation.duels.panel import model_name, panel_config
from curation.duels.params import AnswerParams, DuelParams, JudgeParams, RescoreParams
from curation.duels.report.skip_reasons import left_out
from curation.duels.report.stage import VerdictStage, duels_of, duels_scored_by
from curation.duels.score.stage import ScoreStage
from curation.duels.selection import check_filter, duels_in
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Kind, Stage, register
from curation.runs.models import Run
from curation.web.ids import find
from curation.web.lists.id_list import Among
from curation.web.problems import FieldError, Invalid, NotFound

SCORED_KINDS = ("duel", "judge", "rescore")


def register_kinds() -> None:
    for kind in (_answer_kind(Side.KING), _answer_kind(Side.CHALLENGER), JUDGE, DUEL, RESCORE):
        register(kind)


def _answer_kind(side: Side) -> Kind:
    def stages(params: AnswerParams) -> Sequence[Stage]:
        return [_answer_stage(side, params)]

    def estimate(project: Project, params: AnswerParams) -> Estimate:
        return answer_estimate(project, side, params.model, params)

    return Kind(
        name=side.value,
        title=f"{side.label}: answers to prompts",
        params=AnswerParams,
        stages=stages,
        check=_check_answers,
        estimate=estimate,
        finish=lambda run: {"skipped": left_out(run)},
    )


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
        rows = duels_in(run.project, params.filter).order_by("id").values_list("pk", flat=True)
        if params.run is None:
            yield from rows.iterator(5000)
            return
        before = duels_scored_by(find(Run.objects.of(run.project), params.run, "run"))
        while chunk := list(islice(before, 5000)):
            yield from rows.filter(pk__in=Among(chunk))

    return [ScoreStage(params, duels), VerdictStage(params, duels_scored_by)]


def _check_answers(project: Project, params: AnswerParams) -> None:
    targets_named(project, [params.model], "model")
    check_filter(params.filter)


def _check_judge(project: Project, params: JudgeParams) -> None:
    _check_panel(project, params)
    for place, name in (("king_model", params.king_model), ("challenger_model", params.challenger_model)):
        # An endpoint may be gone while its answers are there; a misspelt name has neither.
        if name and not Answer.objects.filter(prompt__project=project, model=name).exists():
            targets_named(project, [name], place)


def _check_panel(project: Project, params: JudgeParams) -> None:
    config = panel_config(project.settings, params)
    targets_named(project, config.judges, "judges")
    check_filter(params.filter)
    # What the settings say now is what this run goes by, whatever is changed while it works.
    params.judges, params.mode = list(config.judges), 2 if config.mode == 2 else 1
    params.swap, params.attempts = len(config.orders) == 2, config.attempts
    params.min_judges = config.min_judges or len(config.judges)
    params.show_reference = config.show_reference


def _check_duel(project: Project, params: DuelParams) -> None:
    _check_panel(project, params)
    given = project.settings.generation
    params.challenger_model = model_name(params.challenger_model, given.challenger_model, "challenger_model")
    targets_named(project, [params.challenger_model], "challenger_model")
    if params.mode == 2:
        params.king_model = model_name(params.king_model, given.king_model, "king_model")
        targets_named(project, [params.king_model], "king_model")


def _check_rescore(project: Project, params: RescoreParams) -> None:
    """Who judges is taken from the run that is scored anew, else from the settings."""
    named = params.judges is not None
    if params.run is not None:
        scored = _scored_run(project, params.run).params
        if not named:
            params.judges, params.min_judges = scored.get("judges"), params.min_judges or scored.get("min_judges")
    config = panel_config(project.settings, params)
    _check_known_judges(project, config.judges, named=named)
    params.judges, params.min_judges = list(config.judges), config.min_judges or len(config.judges)
    params.weights = dict(config.weights) if config.weights else None
    check_filter(params.filter)


def _scored_run(project: Project, given: str) -> Run:
    try:
        run = find(Run.objects.of(project), given, "run")
    except NotFound as missing:
        raise Invalid(missing.detail, errors=[FieldError("params.run", "unknown run")]) from None
    if run.kind not in SCORED_KINDS:
        raise Invalid(
            f"Run {run.pk} is of kind {run.kind}, which scores no duels.",
            errors=[FieldError("params.run", f"a run of kind {', '.join(SCORED_KINDS)}")],
        )
    return run


def _check_known_judges(project: Project, names: Sequence[str], *, named: bool) -> None:
    """A judge without a verdict would make every duel unparsed. One that only failed may stand in a run's own panel."""
    known = set(Verdict.objects.filter(duel__project=project, judge__in=names).values_list("judge", flat=True))
    missing = [name for name in names if name not in known]
    if missing and (named or not known):
        raise Invalid(
            f"{', '.join(missing)} never judged in this project, so there is nothing to score.",
            code="unknown_model",
            errors=[FieldError("params.judges", f"no verdicts of {name}") for name in missing],
        )


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
    check=_check_judge,
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
