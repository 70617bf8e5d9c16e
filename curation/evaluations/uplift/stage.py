"""Stage `train`: one item trains one model, and its answers to the split are scored as those of a static screen."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

import orjson

from curation.evaluations.families import family_of
from curation.evaluations.models import Evaluation
from curation.evaluations.screen.stage import AnsweredRow, Outcome, save_answers
from curation.evaluations.uplift.params import UpliftParams, arms_of, trainings
from curation.evaluations.uplift.train import command_of, train, write_rows
from curation.llm.client.completion import Completion
from curation.runs.kinds import ItemFailed, Json, PlannedItem, StageOf, WorkContext, Write
from curation.runs.models import Item, Run


class TrainStage(StageOf[UpliftParams]):
    name = "train"
    # Training is work of this machine, as sandboxes are: imports and exports do not wait for it.
    queue = "sandbox"

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        for place, arm, seed in trainings(self._params, arms_of(run.project, self._params)):
            data = {"place": place, "arm": arm.name, "rows": arm.size, "seed": seed}
            yield PlannedItem(f"{arm.name}: seed {seed}", None, data)

    def work(self, context: WorkContext, item: Item) -> Write:
        evaluation = Evaluation.objects.select_related("split").get(run=context.run)
        if evaluation.split is None:
            raise ItemFailed("The split was deleted.")
        arm = next(arm for arm in arms_of(context.run.project, self._params) if arm.name == item.data["arm"])
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
        answered = [
            AnsweredRow(evaluation.pk, model.pk, pk, rows[pk].text.expected, family, _outcome(text))
            for pk, text in trained.answers.items()
        ]

        def write() -> Json:
            save_answers(answered)
            return {"seconds": round(trained.seconds, 1), "costs": trained.costs, "figure": trained.figure}

        return write


def _value(text: str) -> object:
    """Return a setting as JSON reads it, such as a number, or else its text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _outcome(text: str) -> Outcome:
    return Outcome(None, Completion(text, "", "stop", None, None, None, None, 0), 0)
