"""The run kinds `prompts`, `king`, `challenger`, `judge`, `duel` and `rescore`, and their stages."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

from django.db.models import Q
from django.urls import reverse

from curation.duels.answers.leaks import NONE, reader_note, settle_reader
from curation.duels.answers.stage import AnswerStage
from curation.duels.estimate import answer_estimate, judge_estimate, reader_estimate
from curation.duels.filters import AskedFilter, check_filter, check_samples, duels_in
from curation.duels.imports.trajectories import SOURCE, PromptParams, PromptStage, prompt_figures
from curation.duels.judge.pairing import Entrants, entrants_named
from curation.duels.judge.stage import JudgeStage
from curation.duels.models import Answer, Side, Verdict
from curation.duels.params import (
    AnswerParams,
    ChallengerParams,
    DuelParams,
    JudgeParams,
    RescoreParams,
    judges_needed,
    judges_of,
    model_name,
    panel_of,
)
from curation.duels.reigns.context import crownings
from curation.duels.reigns.crown import crown_by_setting, king_by_default, king_note, reigning
from curation.duels.score.stage import ScoreStage
from curation.duels.verdict.leak_figures import leak_results, leak_words
from curation.duels.verdict.report import REPORTED_KINDS, conclusion_of, report_section
from curation.duels.verdict.stage import VerdictStage, duels_of, duels_scored_by, skip_facts, skip_reasons
from curation.llm.models import Endpoint
from curation.projects.instructions.texts import rubric_of
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Json, Kind, P, Pipeline, Preset, RunFact, Stage
from curation.runs.models import Run
from curation.samples.list.filters import SampleFilter
from curation.samples.list.pages import review_steps
from curation.trajectories.filters import TrajectoryFilter
from curation.trajectories.params import matching_trajectories
from curation.web.ids import IdList, find
from curation.web.problems import FieldError, Invalid, NotFound
from curation.web.refusals import all_checks
from curation.web.text.figures import counted
from judging.panel.rubric import complete, names_of

NO_TURNS = "Import turns first."
LEAK_WORDS = {
    "lint": "Flagged by the leak lint",
    "read": "Read by the second reader",
    "reader": "With findings of the second reader",
    "unread": "Not read by a second reader",
    "unparsed": "Replies of the second reader that could not be read",
    "not_compared": "Without a record to compare with",
    "dropped": "Findings without their quotes, not counted",
}


class PromptsRun(Kind[PromptParams]):
    name = "prompts"
    title = "Turns: steps of trajectories become prompts"
    pipeline = Pipeline.DUELS
    summary = "Each step of an agent becomes a prompt, which a king and a challenger can answer."
    filter = TrajectoryFilter
    params = PromptParams
    tells_of_samples = False

    def stages(self, params: PromptParams) -> Sequence[Stage]:
        return [PromptStage(params)]

    def check(self, project: Project, params: PromptParams) -> None:
        if not matching_trajectories(project, params.filter).exists():
            detail = "No trajectory matches. Change the filter, import some, or launch a rollout."
            raise Invalid.at("params.filter", detail, code="no_trajectories")

    def estimate(self, project: Project, params: PromptParams) -> Estimate:
        return Estimate(items=matching_trajectories(project, params.filter).count(), notes=("No model is called.",))

    def finish(self, run: Run, params: PromptParams) -> Json:
        return prompt_figures(run)

    def conclude(self, run: Run) -> str:
        return f"{counted(run.result['prompts'], 'new turn')}; {run.result['duplicates']:,} existed."

    def results(self, run: Run) -> Sequence[RunFact]:
        shown = f"{reverse('prompt-list', args=[run.project.slug])}?source={SOURCE}"
        existed = RunFact("Known turns", f"{run.result['duplicates']:,}")
        return [RunFact("New turns", f"{run.result['prompts']:,}", shown), existed]

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        return [("Launch a duel run", f"{reverse('run-new', args=[run.project.slug])}?kind=duel")]


class AnswerRun(Kind[AnswerParams]):
    pipeline = Pipeline.DUELS
    filter = AskedFilter
    params = AnswerParams
    side: ClassVar[Side]

    def stages(self, params: AnswerParams) -> Sequence[Stage]:
        return [AnswerStage(self.side, params)]

    def check(self, project: Project, params: AnswerParams) -> None:
        with all_checks() as check:
            with check():
                targets_named(project, [params.model], "model")
            with check():
                check_filter(params.filter)
            with check():
                if isinstance(params, ChallengerParams):
                    king = king_by_default(project) or project.settings.generation.king_model
                    params.leak_reader = settle_reader(
                        project,
                        params.leak_reader,
                        judges=project.settings.panel.judges,
                        generators=[params.model, king],
                    )

    def choices(self, project: Project) -> Mapping[str, Sequence[tuple[str, str]]]:
        return _reader_choices(project) if self.side == Side.CHALLENGER else {}

    def estimate(self, project: Project, params: AnswerParams) -> Estimate:
        answers = answer_estimate(project, self.side, params.model, params)
        if not isinstance(params, ChallengerParams):
            return answers
        return Estimate.total([answers, *_reading(project, params)], reader_note(params.leak_reader or NONE))

    def conclude(self, run: Run) -> str:
        leaks = run.result.get("leak_findings") or {}
        flagged = f"; the leak lint flags {leaks['lint']:,}" if leaks.get("answers") else ""
        checked = f"; {words}" if (words := leak_words(run.result)) else ""
        return f"{counted(run.items_done, 'answer')} of {run.params['model']}{flagged}{checked}."

    def results(self, run: Run) -> Sequence[RunFact]:
        leaks = run.result.get("leak_findings") or {}
        found = [RunFact(words, f"{leaks[name]:,}") for name, words in LEAK_WORDS.items() if leaks.get(name)]
        if words := leak_words(run.result):
            found.insert(0, RunFact("Leaks", words.removeprefix("leaks: ")))
        return [RunFact("Answers", f"{run.items_done:,}"), *found, *skip_facts(run.result.get("skipped", {}))]

    def finish(self, run: Run, params: AnswerParams) -> Json:
        found = leak_results(run) if self.side == Side.CHALLENGER else {}
        return {"skipped": skip_reasons(run), **found}

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        launch = reverse("run-new", args=[run.project.slug])
        if self.side == Side.KING:
            return [("Launch the challenger", f"{launch}?kind=challenger")]
        return [("Launch the judges", f"{launch}?kind=judge")]


class KingRun(AnswerRun):
    name = "king"
    needs = NO_TURNS
    title = f"{Side.KING.label}: answers to prompts"
    summary = "A model answers prompts from the history alone."
    side = Side.KING


class ChallengerRun(AnswerRun):
    name = "challenger"
    needs = NO_TURNS
    title = f"{Side.CHALLENGER.label}: answers to prompts"
    summary = "A model answers prompts with the hidden pull-request record."
    params = ChallengerParams
    side = Side.CHALLENGER


class ScoredRun(Kind[P]):
    """Ends with scores and the verdict on them."""

    pipeline = Pipeline.DUELS
    section_template = "duels/verdict/_report.html"

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        return review_steps(run)

    def conclude(self, run: Run) -> str:
        return conclusion_of(run)

    def section(self, run: Run) -> Mapping[str, object]:
        return {**report_section(run), "run": run, "crownings": crownings(run)}


class JudgeRun(ScoredRun[JudgeParams]):
    name = "judge"
    needs = "Answer the turns first: launch a duel, or king and challenger."
    title = "Judge: duels of existing answers"
    summary = "The panel compares answers that are there."
    filter = AskedFilter
    params = JudgeParams

    def stages(self, params: JudgeParams) -> Sequence[Stage]:
        return _judged(params, lambda run: entrants_named(params))

    def needed(self, project: Project, given: Mapping[str, Any]) -> Collection[str]:
        return judges_needed(project.settings)

    def check(self, project: Project, params: JudgeParams) -> None:
        with all_checks() as check:
            with check():
                _check_panel(project, params)
            for path in ("king_model", "challenger_model"):
                with check():
                    name = getattr(params, path)
                    # The answers of a deleted endpoint can still be judged; a misspelled name has neither.
                    if name and not Answer.objects.filter(prompt__project=project, model=name).exists():
                        targets_named(project, [name], path)

    def estimate(self, project: Project, params: JudgeParams) -> Estimate:
        return judge_estimate(project, params)

    def finish(self, run: Run, params: JudgeParams) -> Json:
        return crown_by_setting(run)


class DuelRun(ScoredRun[DuelParams]):
    name = "duel"
    needs = NO_TURNS
    title = "Duel: king, challenger and judges"
    summary = "A king and a challenger answer each prompt, and the panel compares them."
    filter = AskedFilter
    params = DuelParams

    def stages(self, params: DuelParams) -> Sequence[Stage]:
        given: Json = {"samples": params.samples, "attempts": params.attempts or 3, "fresh": params.fresh}
        given["filter"] = params.filter
        reader, name = params.leak_reader, params.challenger_model or ""
        king = AnswerStage(Side.KING, AnswerParams(model=params.king_model or "", **given))
        challenger = AnswerStage(Side.CHALLENGER, ChallengerParams(model=name, leak_reader=reader, **given))

        def entrants(run: Run) -> Entrants:
            stages = {Side.KING: king, Side.CHALLENGER: challenger}
            return lambda side: Q(fingerprint=stages[side].read(run).fingerprint(side))

        answers = [king, challenger] if params.mode != 1 else [challenger]
        return [*answers, *_judged(params, entrants)]

    def check(self, project: Project, params: DuelParams) -> None:
        given = project.settings.generation
        with all_checks() as check:
            with check():
                params.mode = 2 if (params.mode or project.settings.panel.mode) == 2 else 1
            with check():
                _check_panel(project, params)
            with check():
                name = model_name(params.challenger_model, given.challenger_model, "challenger_model")
                targets_named(project, [name], "challenger_model")
                params.challenger_model = name
            with check():
                if params.mode == 2:
                    default = "" if params.king_model else king_by_default(project) or given.king_model
                    params.king_model = model_name(params.king_model, default, "king_model")
                    targets_named(project, [params.king_model], "king_model")
            with check():
                generators = [params.challenger_model or "", params.king_model or "" if params.mode == 2 else ""]
                params.leak_reader = settle_reader(
                    project,
                    params.leak_reader,
                    judges=params.judges or project.settings.panel.judges,
                    generators=generators,
                )

    def choices(self, project: Project) -> Mapping[str, Sequence[tuple[str, str]]]:
        return _reader_choices(project)

    def estimate(self, project: Project, params: DuelParams) -> Estimate:
        sides = [answer_estimate(project, Side.CHALLENGER, params.challenger_model or "", params)]
        if params.mode == 2:
            sides.insert(0, answer_estimate(project, Side.KING, params.king_model or "", params))
        note = king_note(project, params.king_model or "") if params.mode == 2 else ""
        parts = [*sides, *_reading(project, params), judge_estimate(project, params)]
        return Estimate.total(parts, *filter(None, [note, reader_note(params.leak_reader or NONE)]))

    def needed(self, project: Project, given: Mapping[str, Any]) -> Collection[str]:
        """The king only where the challenger's answer is compared with it."""
        settings = project.settings
        sides = [] if settings.generation.challenger_model else ["challenger_model"]
        against_king = str(given.get("mode") or settings.panel.mode) == "2"
        if against_king and not (king_by_default(project) or settings.generation.king_model):
            sides.append("king_model")
        return [*sides, *judges_needed(project.settings)]

    def presets(self, project: Project) -> Mapping[str, Preset]:
        king = reigning(project)
        if king is None:
            return {}
        return {"king_model": Preset(king.model, king_note(project, king.model))}

    def begin(self, run: Run, params: DuelParams) -> Json:
        """Say for ever whether the run was launched as a defence."""
        note = king_note(run.project, params.king_model or "") if params.mode == 2 else ""
        return {"king": note} if note else {}

    def finish(self, run: Run, params: DuelParams) -> Json:
        return crown_by_setting(run)


class RescoreRun(ScoredRun[RescoreParams]):
    name = "rescore"
    needs = "Launch a duel first."
    title = "Rescore: new scores from existing verdicts"
    summary = "New scores from the verdicts that are there, without a model call."
    filter = SampleFilter
    params = RescoreParams

    def stages(self, params: RescoreParams) -> Sequence[Stage]:
        def duels(run: Run) -> Iterator[int]:
            # An imported score has no verdicts to score again.
            judged = duels_in(run.project, params.filter).exclude(run__kind="import")
            rows = judged.order_by("id").values_list("pk", flat=True)
            if params.run is None:
                yield from rows.iterator(5000)
                return
            before = duels_scored_by(find(Run.objects.of(run.project), params.run, "run"))
            while chunk := list(islice(before, 5000)):
                yield from rows.filter(pk__in=IdList(chunk))

        return [ScoreStage(params, duels), VerdictStage(params, duels_scored_by)]

    def needed(self, project: Project, given: Mapping[str, Any]) -> Collection[str]:
        return [] if given.get("run") else judges_needed(project.settings)

    def check(self, project: Project, params: RescoreParams) -> None:
        """The judges come from the run that is scored again, else from the settings."""
        with all_checks() as check:
            with check():
                _settle_scored_panel(project, params)
            with check():
                check_samples(params.filter)

    def estimate(self, project: Project, params: RescoreParams) -> Estimate:
        return Estimate(notes=("No model is called.",))


def _judged(params: JudgeParams, entrants: Callable[[Run], Entrants]) -> list[Stage]:
    return [JudgeStage(params, entrants), ScoreStage(params, duels_of), VerdictStage(params, duels_scored_by)]


def _reading(project: Project, params: ChallengerParams | DuelParams) -> list[Estimate]:
    reader = params.leak_reader or NONE
    return [] if reader == NONE else [reader_estimate(project, reader, params)]


def _reader_choices(project: Project) -> Mapping[str, Sequence[tuple[str, str]]]:
    names = Endpoint.objects.of(project).values_list("name", flat=True)
    return {"leak_reader": [(NONE, "none: lint only"), *((name, name) for name in names)]}


def _check_panel(project: Project, params: JudgeParams) -> None:
    with all_checks() as check:
        with check():
            check_filter(params.filter)
        with check():
            targets_named(project, judges_of(project.settings, params), "judges")
        with check():
            settle_panel(project, params)


def settle_panel(project: Project, params: JudgeParams) -> None:
    panel = panel_of(project.settings, params)
    _checked_weights(project, panel.weights or {})
    # Store the settings that apply, so that later changes do not affect the run.
    params.judges, params.mode = list(panel.judges), 2 if panel.mode == 2 else 1
    params.swap, params.attempts = len(panel.orders) == 2, panel.attempts
    params.min_judges = panel.min_judges or len(panel.judges)
    params.show_reference = panel.show_reference


def _settle_scored_panel(project: Project, params: RescoreParams) -> None:
    named = params.judges is not None
    if params.run is not None:
        scored = _scored_run(project, params.run).params
        if not named:
            params.judges, params.min_judges = scored.get("judges"), params.min_judges or scored.get("min_judges")
    panel = panel_of(project.settings, params)
    _check_known_judges(project, panel.judges, named=named)
    params.judges, params.min_judges = list(panel.judges), panel.min_judges or len(panel.judges)
    params.weights = _checked_weights(project, params.weights or project.settings.panel.weights)


def _checked_weights(project: Project, given: Mapping[str, float]) -> dict[str, float] | None:
    """Return a weight for every dimension of the project's rubric, None if none is given."""
    names = names_of(rubric_of(project))
    unknown = sorted(set(given) - set(names))
    weights = complete(given, names)
    if unknown:
        detail = f"The rubric has no dimension {', '.join(unknown)}; it has {', '.join(names)}."
    elif weights and not any(weights.values()):
        detail = "At least one dimension must weigh more than 0."
    else:
        return weights
    raise Invalid.at("params.weights", detail)


def _scored_run(project: Project, given: str) -> Run:
    try:
        run = find(Run.objects.of(project), given, "run")
    except NotFound as missing:
        raise Invalid(missing.detail, errors=[FieldError("params.run", "unknown run")]) from None
    if run.kind not in REPORTED_KINDS:
        raise Invalid(
            f"Run {run.pk} is of kind {run.kind}, which scores no duels. Give a duel, judge or rescore run.",
            errors=[FieldError("params.run", f"a run of kind {', '.join(sorted(REPORTED_KINDS))}")],
        )
    return run


def _check_known_judges(project: Project, names: Sequence[str], *, named: bool) -> None:
    """Raise `Invalid` for a named judge without verdicts, which would make every duel unparsed."""
    known = set(Verdict.objects.filter(duel__project=project, judge__in=names).values_list("judge", flat=True))
    missing = [name for name in names if name not in known]
    if missing and (named or not known):
        raise Invalid(
            f"{', '.join(missing)} never judged in this project, so there is nothing to score.",
            code="unknown_model",
            errors=[FieldError("params.judges", f"no verdicts of {name}") for name in missing],
        )
