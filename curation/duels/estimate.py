"""Estimate the calls, tokens and cost of a launch from the prompts' sizes and the models' prices."""

from django.db.models import Count, QuerySet, Sum

from curation.duels.filters import prompts_in
from curation.duels.models import Answer, Prompt, PullRequest, Side
from curation.duels.params import AnswerParams, DuelParams, JudgeParams, controls_wanted, panel_of
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate
from curation.web.text.figures import counted

# Typical tokens of the instructions, an answer and a verdict, measured on scripted and small real models.
INSTRUCTIONS, ANSWER, VERDICT = 500, 120, 90


def answer_estimate(project: Project, side: Side, model: str, params: AnswerParams | DuelParams) -> Estimate:
    """Estimate one call per prompt and sample. Existing answers are counted too, although they cost nothing."""
    target = targets_named(project, [model], "model")[0]
    prompts = prompts_in(project, params.filter)
    notes: list[str] = []
    extra = 0
    if side == Side.CHALLENGER:
        total, prompts = prompts.count(), prompts.with_record()
        without = total - prompts.count()
        if without:
            have = f"{counted(without, 'prompt')} {'has' if without == 1 else 'have'}"
            notes.append(f"{have} no pull-request record that can be used, and cannot be challenged.")
        extra = _record_tokens(project)
    count, tokens = _size(prompts)
    calls = count * params.samples
    tokens_in = (tokens + count * (INSTRUCTIONS + extra)) * params.samples
    priced = Estimate.of_calls(target, calls=calls, tokens_in=tokens_in, tokens_out=calls * ANSWER)
    return Estimate.total([priced], *notes)


def reader_estimate(project: Project, reader: str, params: AnswerParams | DuelParams) -> Estimate:
    """Estimate one call per challenger answer. The lint's findings and unparsed replies change the number."""
    target = targets_named(project, [reader], "leak_reader")[0]
    count, tokens = _size(prompts_in(project, params.filter).with_record())
    calls = count * params.samples
    tokens_in = (tokens + count * (INSTRUCTIONS + _record_tokens(project) + ANSWER)) * params.samples
    return Estimate.of_calls(target, calls=calls, tokens_in=tokens_in, tokens_out=calls * VERDICT, items=0)


def judge_estimate(project: Project, params: JudgeParams) -> Estimate:
    """Estimate one call per duel, judge and order, with a duel per prompt and sample that has or will have answers."""
    panel = panel_of(project.settings, params)
    targets = targets_named(project, panel.judges, "judges")
    prompts = prompts_in(project, params.filter)
    samples = params.samples if isinstance(params, DuelParams) else 1
    if isinstance(params, DuelParams):
        prompts = prompts.with_record()
    else:
        for side in [Side.CHALLENGER, *([Side.KING] if panel.mode == 2 else [])]:
            answered = Answer.objects.filter(side=side, refusal="", prompt__project=project).values("prompt_id")
            prompts = prompts.filter(pk__in=answered)
    count, tokens = _size(prompts)
    own = count * samples
    calls = (own + controls_wanted(own, project.settings.panel.controls, first=True)) * len(panel.orders)
    tokens_in = (tokens + count * (INSTRUCTIONS + 2 * ANSWER)) * samples * len(panel.orders)
    return Estimate.total(
        Estimate.of_calls(target, calls=calls, tokens_in=tokens_in, tokens_out=calls * VERDICT) for target in targets
    )


def _record_tokens(project: Project) -> int:
    records = PullRequest.objects.filter(project=project)
    return int((records.aggregate(n=Sum("patch_tokens"))["n"] or 0) / max(1, records.count()))


def _size(prompts: QuerySet[Prompt]) -> tuple[int, int]:
    found = prompts.aggregate(n=Count("id"), tokens=Sum("tokens"))
    return found["n"], found["tokens"] or 0
