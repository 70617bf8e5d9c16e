"""The run kind `judge_trial`: a text for a judge, tried on duels whose outcome is known."""

from collections import Counter
from collections.abc import Mapping, Sequence

from django.urls import reverse

from curation.duels.estimate import ANSWER, INSTRUCTIONS, VERDICT
from curation.duels.models import Duel
from curation.duels.params import panel_of
from curation.duels.trials.known import KnownDuel, held_out, known_duels
from curation.duels.trials.schemas import ComparedOut
from curation.duels.trials.stage import TrialParams, TrialStage, readings_of_trial
from curation.projects.instructions.texts import digest, instructions_for, usable_text
from curation.projects.models import Project
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import Estimate, Json, Kind, Pipeline, Preset, Stage
from curation.runs.models import Run, RunState
from curation.web.ids import IdList
from curation.web.problems import Conflict, FieldError, Invalid
from curation.web.refusals import all_checks
from curation.web.text.figures import counted, percent
from judging.statistics.judges.trials import trial


class TrialRun(Kind[TrialParams]):
    name = "judge_trial"
    title = "Try instructions of a judge"
    summary = "A judge reads duels whose outcome people know under the text in force and under yours."
    pipeline = Pipeline.DUELS
    params = TrialParams
    feeds_others = False
    needs = "Let people compare answers first."
    set_at_launch = frozenset({"version"})
    section_template = "duels/trials/_section.html"

    def stages(self, params: TrialParams) -> Sequence[Stage]:
        return [TrialStage(params)]

    def presets(self, project: Project) -> Mapping[str, Preset]:
        found = instructions_for(project, "judge")
        return {"text": Preset(found.text, f"The text in force, version {found.version}. Change it.")}

    def check(self, project: Project, params: TrialParams) -> None:
        with all_checks() as check:
            with check():
                targets_named(project, [params.model], "model")
            with check():
                params.text = usable_text("judge", params.text, place="params.text")
                now = instructions_for(project, "judge")
                if params.text == now.text:
                    raise Conflict("This is the text in force. Change it to try another.", code="unchanged")
                params.version = now.version
            with check():
                if not duels_in_part(project, params):
                    raise _nothing_known(project, params)

    def estimate(self, project: Project, params: TrialParams) -> Estimate:
        target = targets_named(project, [params.model], "model")[0]
        duels = duels_in_part(project, params)
        rows = Duel.everything.filter(pk__in=IdList([one.duel for one in duels]))
        tokens = sum(rows.values_list("prompt__tokens", flat=True))
        times = 2 * len(panel_of(project.settings, params.judging).orders)
        size = times * (tokens + len(duels) * (INSTRUCTIONS + 2 * ANSWER))
        calls = times * len(duels)
        return Estimate.of_calls(target, calls=calls, tokens_in=size, tokens_out=calls * VERDICT)

    def finish(self, run: Run, params: TrialParams) -> Json:
        texts = {"before": instructions_for(run.project, "judge", version=params.version).sha256}
        texts["after"] = digest(params.text)
        found: Json = {"texts": texts, "tried": _tried(run, params)}
        for name, controls in (("people", False), ("controls", True)):
            compared = trial(list(readings_of_trial(run, params, controls=controls).values()))
            found[name] = ComparedOut.model_validate(compared).model_dump(mode="json")
        return found

    def conclude(self, run: Run) -> str:
        by, noun = ("people", "decided duel") if run.result["people"]["known"] else ("controls", "control duel")
        found = run.result[by]
        before, after = (percent(found[name]["accuracy"], 1) for name in ("before", "after"))
        return f"{before} right before, {after} after, on {counted(found['before']['n'], noun)}."

    def section(self, run: Run) -> Mapping[str, object]:
        return {"run": run, "result": run.result if "people" in run.result else None, "wrong": wrong_duels(run)}

    def next_steps(self, run: Run) -> Sequence[tuple[str, str]]:
        return [("See all trials", reverse("trial-list", args=[run.project.slug]))]


def duels_in_part(project: Project, params: TrialParams) -> list[KnownDuel]:
    known = known_duels(project, params.known)
    sides = held_out(project, known)
    return [one for one in known if sides[one.task] is (params.part == "held_out")]


def wrong_duels(run: Run) -> list[int]:
    """Return the duels that the tried text gets wrong; none of a held-out part, by which nobody is to write
    instructions."""
    params = TrialParams.model_validate(run.params)
    if params.part == "held_out":
        return []
    found = {**readings_of_trial(run, params, controls=False), **readings_of_trial(run, params, controls=True)}
    return [duel for duel, one in found.items() if one.after is not None and one.after != one.expected]


def _tried(run: Run, params: TrialParams) -> int:
    """Return how many texts of this judge were measured on the held-out part so far: the best of many looks better than
    it is."""
    if params.part == "tune":
        return 0
    rows = Run.objects.of(run.project).filter(kind=TrialRun.name, state=RunState.SUCCEEDED).exclude(pk=run.pk)
    wanted = rows.filter(params__part="held_out", params__model=params.model)
    return len({params.text, *wanted.values_list("params__text", flat=True)})


def _nothing_known(project: Project, params: TrialParams) -> Invalid:
    counts = Counter(bool(one.control) for one in known_duels(project, params.known))
    decided = sum(not one.control for one in known_duels(project, "decided"))
    detail = (
        f"No duel with a known outcome is in this part: {counted(counts[False], 'duel')} that "
        f"{'an audit drew and ' if params.known == 'audited' else ''}people decided and {counts[True]} controls are "
        f"known, of {decided} that people decided in all, and each task is in one part."
    )
    return Invalid(detail, code="nothing_known", errors=[FieldError("params.known", "no such duel in this part")])
