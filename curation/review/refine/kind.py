from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import Avg, Count, QuerySet
from django.urls import reverse

from curation.duels.params import judges_needed
from curation.duels.verdict.stage import skip_reasons
from curation.projects.models import Project, Scope
from curation.review.models import Pick, Revision, Suggestion
from curation.review.refine.compare import CompareStage
from curation.review.refine.params import PanelParams, RefineParams, RejudgeParams
from curation.review.refine.settle import SettleStage, outcomes
from curation.review.refine.suggest import RefineStage, samples_to_refine
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Json, Kind, Pipeline, Preset, Stage
from curation.runs.models import Run
from curation.samples.list.filters import SampleFilter
from curation.samples.models import Bucket, Sample
from curation.web.ids import find_param
from curation.web.problems import Invalid
from curation.web.refusals import all_checks
from curation.web.text.figures import counted

DEFAULT_FILTER = {"bucket": Bucket.REFINED.value}
# Typical tokens, as in `curation.duels.estimate`.
INSTRUCTIONS, ANSWER, VERDICT, REASONS = 500, 120, 90, 300


class RefineRun(Kind[RefineParams]):
    """A model improves answers; only those that beat king and parent go to people."""

    name = "refine"
    needs = "No sample waits for a refinement."
    title = "Refine: improve answers with the judges' reasons"
    pipeline = Pipeline.DUELS
    summary = "A model improves answers, and the panel compares each with the other answer and with its earlier text."
    filter = SampleFilter
    params = RefineParams
    section_template = "review/refine/_run_section.html"

    def stages(self, params: RefineParams) -> Sequence[Stage]:
        return [RefineStage(params), CompareStage(params, _suggestions), SettleStage(params, _suggestions)]

    def needed(self, project: Project, given: Mapping[str, Any]) -> Collection[str]:
        return [*super().needed(project, given), *judges_needed(project.settings)]

    def presets(self, project: Project) -> Mapping[str, Preset]:
        why = "Decided samples, trajectories and single answers are skipped."
        return {"filter": Preset(DEFAULT_FILTER, why)}

    def check(self, project: Project, params: RefineParams) -> None:
        with all_checks() as check:
            with check():
                params.filter = params.filter or DEFAULT_FILTER
                samples_to_refine(Sample.objects.of(project), params.filter)
            with check():
                targets_named(project, [params.model], "model")
            with check():
                params.settle(project)

    def estimate(self, project: Project, params: RefineParams) -> Estimate:
        rows = samples_to_refine(Sample.objects.of(project), params.filter).filter(duel__opponent="king")
        found = rows.order_by().aggregate(n=Count("pk"), tokens=Avg("duel__prompt__tokens"))
        target = targets_named(project, [params.model], "model")[0]
        tokens = found["n"] * (int(found["tokens"] or 0) + INSTRUCTIONS + ANSWER)
        improve = Estimate.of_calls(
            target, calls=found["n"], tokens_in=tokens + found["n"] * REASONS, tokens_out=found["n"] * ANSWER
        )
        return Estimate.total([improve, *_judge_estimates(project, params, found["n"], tokens)])

    def finish(self, run: Run, params: RefineParams) -> Json:
        return {**outcomes(run), "skipped": skip_reasons(run)}

    def conclude(self, run: Run) -> str:
        found = outcomes(run)
        better, total = found[Suggestion.Outcome.BETTER], sum(found.values())
        if not total:
            return "No answer is improved."
        of, are = counted(total, "improved answer"), "is" if better == 1 else "are"
        return f"{better:,} of {of} {are} better than the other answer and the text before."

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        better = Suggestion.objects.filter(run=run, outcome=Suggestion.Outcome.BETTER).exists()
        queue = reverse("queue", args=[run.project.slug])
        return [("Review the improved answers", queue)] if better else []

    def section(self, run: Run) -> Mapping[str, object]:
        found = outcomes(run)
        return {
            "run": run,
            "total": sum(found.values()),
            **found,
            "suggestions_url": f"{reverse('suggestion-list', args=[run.project.slug])}?run={run.pk}",
        }


class RejudgeRun(Kind[RejudgeParams]):
    """A panel judges one saved revision against the king and against its parent."""

    name = "rejudge"
    title = "Judge a revision again"
    params = RejudgeParams
    scope = Scope.REVIEW
    launch_page = ""
    section_template = "review/refine/_rejudge_section.html"
    feeds_others = False

    def stages(self, params: RejudgeParams) -> Sequence[Stage]:
        return [CompareStage(params, _revision), SettleStage(params, _revision)]

    def check(self, project: Project, params: RejudgeParams) -> None:
        rows = Revision.objects.seen_by(None).filter(sample__project=project).select_related("sample__duel")
        revision = find_param(rows, params.revision, "revision", "params.revision")
        if revision.undone_by_id is not None:
            raise Invalid(f"Revision {revision.number} was undone. Its text does not count, so it is not judged again.")
        if revision.of != Pick.CHALLENGER:
            raise Invalid("The revision is of the other answer. Only a revision of the candidate is judged against it.")
        if revision.sample.duel.opponent == "none":
            raise Invalid("The sample has one answer, so there is no other one to judge it against.")
        params.settle(project)

    def estimate(self, project: Project, params: RejudgeParams) -> Estimate:
        found = find_param(
            Revision.objects.seen_by(None).filter(sample__project=project).select_related("sample__duel__prompt"),
            params.revision,
            "revision",
            "params.revision",
        )
        tokens = found.sample.duel.prompt.tokens + INSTRUCTIONS + ANSWER
        return Estimate.total(_judge_estimates(project, params, 1, tokens))

    def section(self, run: Run) -> Mapping[str, object]:
        found = _revision(run).first()
        return {"revision": found, "run": run}


def _suggestions(run: Run) -> QuerySet[Suggestion]:
    return Suggestion.objects.filter(run=run)


def _revision(run: Run) -> QuerySet[Revision]:
    return Revision.objects.filter(pk=int(run.params["revision"]))


def _judge_estimates(project: Project, params: PanelParams, texts: int, tokens: int) -> list[Estimate]:
    """Estimate the readings: against king and parent, in each order, by each judge."""
    readings = 2 * (2 if params.swap else 1)
    return [
        Estimate.of_calls(
            target,
            calls=texts * readings,
            tokens_in=(tokens + texts * ANSWER) * readings,
            tokens_out=texts * readings * VERDICT,
        )
        for target in targets_named(project, params.judges or [], "judges")
    ]
