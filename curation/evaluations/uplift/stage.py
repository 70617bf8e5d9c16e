"""The stages of an uplift experiment: exports of its recipes are written, then one item trains one model, whose answers
to the split are scored as those of a static screen."""

import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import orjson

from curation.evaluations.families import family_of
from curation.evaluations.models import EvaluatedModel, Evaluation
from curation.evaluations.screen.stage import save_answers, scored
from curation.evaluations.uplift.params import EXPORTS, SIDES, UpliftParams, arms_of, recipe_in, trainings
from curation.evaluations.uplift.train import command_of, train, write_rows
from curation.exports.models import Export
from curation.llm.client.completion import Completion
from curation.runs.follow import working
from curation.runs.kinds import ItemFailed, Json, PlannedItem, StageOf, WorkContext, Write
from curation.runs.models import LIVE, Item, Run, RunState

POLL_SECONDS = 0.2


class ExportStage(StageOf[UpliftParams]):
    """Waits for the exports of the recipes, and works on them too: there may be no other worker."""

    name = "export"
    queue = "sandbox"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        for side in SIDES:
            if recipe := recipe_in(getattr(self._params, side)):
                yield PlannedItem(f"{side}: {recipe}", int(run.result[EXPORTS][side]))

    def work(self, context: WorkContext, item: Item) -> Write:
        export = Export.objects.select_related("run").filter(pk=item.target_id or 0).first()
        if export is None:
            raise ItemFailed("The export was deleted.")
        with working(export.run.pk):
            while export.run.state in LIVE:
                context.checkpoint()
                time.sleep(POLL_SECONDS)
                export.run.refresh_from_db()
        if export.run.state != RunState.SUCCEEDED:
            raise ItemFailed(f"Export {export.pk} is {export.run.state_label.lower()}. {export.run.error}".rstrip())
        return lambda: {"export": str(export.pk)}


class TrainStage(StageOf[UpliftParams]):
    name = "train"
    # Training is work of this machine, as sandboxes are: imports and exports do not wait for it.
    queue = "sandbox"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        planned = list(trainings(self._params, arms_of(run, self._params)))
        evaluation = Evaluation.objects.get(run=run)
        if not evaluation.models.exists():  # A model for each training, whose answers are read as those of others.
            EvaluatedModel.objects.bulk_create(
                EvaluatedModel(
                    evaluation=evaluation, place=place, name=f"{arm.name}, seed {seed}", model=self._params.trainer
                )
                for place, arm, seed in planned
            )
        for place, arm, seed in planned:
            data = {"place": place, "arm": arm.name, "rows": arm.size, "seed": seed}
            yield PlannedItem(f"{arm.name}: seed {seed}", None, data)

    def work(self, context: WorkContext, item: Item) -> Write:
        evaluation = Evaluation.objects.select_related("split").get(run=context.run)
        if evaluation.split is None:
            raise ItemFailed("The split was deleted.")
        arm = next(arm for arm in arms_of(context.run, self._params) if arm.name == item.data["arm"])
        rows = {row.pk: row for row in evaluation.split.rows.select_related("text").order_by("number", "turn")}
        with tempfile.TemporaryDirectory(prefix="winnow-train-") as made:
            folder = Path(made)
            write_rows(arm, item.data["seed"], folder / "rows.jsonl")
            trained = train(
                command_of(self._params.trainer),
                folder,
                rows=folder / "rows.jsonl",
                prompts={pk: row.text.messages for pk, row in rows.items()},
                seed=item.data["seed"],
                given={name: _value(text) for name, text in self._params.settings.items()},
                seconds=self._params.max_hours * 3600,
                checkpoint=context.checkpoint,
            )
        model, family = evaluation.models.get(place=item.data["place"]), family_of(evaluation)

        def write() -> Json:
            save_answers(
                [
                    scored(model, rows[pk], family, Completion(text, "", "stop", None, None, None, None, 0), None, 0)
                    for pk, text in trained.answers.items()
                ]
            )
            return {"seconds": round(trained.seconds, 1), "costs": trained.costs, "figure": trained.figure}

        return write


def _value(text: str) -> object:
    """Return a setting as JSON reads it, such as a number, or else its text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
