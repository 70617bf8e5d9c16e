"""Stage `try`: a judge reads duels whose outcome is known under two texts, and nothing else of a duel changes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from curation.duels.judge.stage import JudgeJob, JudgePlan, read_duel
from curation.duels.models import Duel
from curation.duels.params import JudgeParams, panel_of
from curation.duels.trials.known import hold_out, known_duels
from curation.projects.instructions.texts import digest, instructions_for
from curation.runs.calls.targets import ModelStage, run_instructions
from curation.runs.kinds import ItemFailed, Json, LlmContext, PlannedItem, Write
from curation.runs.models import Item, Run
from curation.web.schemas import StrictModel
from judging.panel.parsing import ParsedVerdict
from judging.panel.scoring import OrderedVerdict, score_duel
from judging.planted_faults import ControlKind
from judging.statistics.judges.trials import TrialReading

BEFORE, AFTER = "before", "after"


class TrialParams(StrictModel):
    model: str = Field(description="The judge.")
    text: str = Field(description="Instructions to try. They are compared with the judge's text in force.")
    part: Literal["tune", "held_out"] = Field(
        "tune",
        description="`tune`: the tasks to write instructions by, where you see what the judge gets wrong; `held_out`: "
        "the others, which test them.",
    )
    known: Literal["audited", "decided"] = Field(
        "audited",
        description="`audited`: duels that an audit drew at random; `decided`: all that people decided, of which the "
        "queue shows borderline ones first. Control duels are in both.",
    )
    version: int | None = Field(None, ge=0, description="Set at launch: of the text in force.")

    @property
    def judging(self) -> JudgeParams:
        return JudgeParams(judges=[self.model], min_judges=1)


class TrialStage(ModelStage[TrialParams]):
    name = "try"

    def plans(self, run: Run) -> dict[str, JudgePlan]:
        """The plan that the readings under each text share."""
        panel, [target] = panel_of(run.settings, self._params.judging), self.targets(run)
        before = instructions_for(run.project, "judge", version=self._params.version)
        after = replace(before, text=self._params.text, sha256=digest(self._params.text))
        rubric, targets = run_instructions(run, "rubric"), {target.name: target}
        return {BEFORE: JudgePlan(panel, before, rubric, targets), AFTER: JudgePlan(panel, after, rubric, targets)}

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        known = known_duels(run.project, self._params.known)
        sides, orders = hold_out(run.project, known), panel_of(run.settings, self._params.judging).orders
        for one in known:
            if sides[one.task] is (self._params.part == "held_out"):
                data: Json = {"expected": one.expected, "task": one.task, "control": one.control}
                for which in (BEFORE, AFTER):
                    for order in orders:
                        key = f"{one.duel}:{order}:{which}"
                        yield PlannedItem(key, one.duel, {**data, "text": which, "order": order})

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, JudgeJob]:
        plans, [target] = self.plans(run), self.targets(run)
        found = Duel.everything.all().with_histories()
        duels = found.in_bulk({item.target_id for item in items if item.target_id is not None})
        return {
            item.pk: JudgeJob(plans[item.data["text"]], target, duels[item.target_id], item.data["order"], 0)
            for item in items
            if item.target_id in duels
        }

    async def work(self, context: LlmContext, item: Item, job: JudgeJob | None) -> Write:
        if job is None:
            raise ItemFailed("The duel was deleted.")
        replies, _ = await read_duel(context, item, job, fresh=False)
        _, last = replies[-1]
        said = dict(last.dimensions) if isinstance(last, ParsedVerdict) else None
        return lambda: {"said": said, "reason": last.reason}


def readings_of_trial(run: Run, params: TrialParams, *, controls: bool) -> Mapping[int, TrialReading]:
    """Return the readings by duel. A judge's preference under a text needs all orders."""
    panel = panel_of(run.settings, params.judging)
    said: dict[int, dict[str, list[OrderedVerdict]]] = defaultdict(lambda: {BEFORE: [], AFTER: []})
    facts: dict[int, Json] = {}
    rows = Item.objects.filter(run=run, stage=TrialStage.name).order_by("pk").values_list("target_id", "data", "result")
    for duel, data, result in rows:
        if bool(data["control"]) is controls and duel is not None:
            facts[duel] = data
            verdict = OrderedVerdict(params.model, data["order"], (result or {}).get("said"))
            said[duel][data["text"]].append(verdict)

    def preferred(duel: int, text: str) -> int | None:
        verdicts = said[duel][text]
        score = score_duel(verdicts, panel=[params.model], orders=panel.orders, weights=panel.weights).score
        if score is None:
            return None
        if facts[duel]["control"] == ControlKind.SAME:
            # Of the same answer twice it must prefer none in any order.
            return int(any(one.dimensions and any(one.dimensions.values()) for one in verdicts))
        return (score > 50) - (score < 50)

    return {
        duel: TrialReading(one["task"], one["expected"], preferred(duel, BEFORE), preferred(duel, AFTER))
        for duel, one in facts.items()
    }
