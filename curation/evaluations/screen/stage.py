"""Stage `screen`: send the chosen rows to every model and score each answer by the expected command."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from curation.evaluations.families import family_of
from curation.evaluations.models import EvaluatedModel, Evaluation, ScreenedAnswer, ScreenedAnswerText, Split, SplitRow
from curation.evaluations.params import EvaluateParams
from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.llm.client.errors import Misconfigured, OutOfQuota, RateLimited, Refused
from curation.runs.calls.targets import targets_named
from curation.runs.kinds import MOST_OPEN_CALLS, EndpointDown, ItemFailed, Json, LlmContext, PlannedItem, StageOf, Write
from curation.runs.models import Call, Item, Run
from curation.web.text.storable import storable
from judging.commands.screen import FAILED, FLAGS, CommandFamily, CommandScore, score_command

CUT = frozenset({"length", "max_tokens"})
MAX_ERROR = 2000
TOGETHER = 500
# A row that times out has failed: a second try would measure something else than the timeout of the launch.
SCREEN_TIMEOUTS = 1
# The statuses of a key that is not accepted, of an account that has to pay, and of a proxy that wants a key.
KEYS = (401, 402, 407)
FIGURES = ("call", "mark", "cut", "failed", "latency_ms", "length", *FLAGS)


class ScreenJob(NamedTuple):
    """A row of a split for one model, and the family that its answer is scored by."""

    by: EvaluatedModel
    row: SplitRow
    family: CommandFamily
    target: EndpointTarget

    @property
    def request(self) -> CompletionRequest:
        return CompletionRequest(self.row.text.messages, self.by.call_params)


class ScreenStage(StageOf[EvaluateParams]):
    name = "screen"
    queue = "llm"
    most_open = MOST_OPEN_CALLS

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        return targets_named(run.project, self._params.models, "models")

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        """Row by row for all models, so that every endpoint has work from the start."""
        evaluation = Evaluation.objects.select_related("split").get(run=run)
        if evaluation.split is None:
            return
        for row_id in chosen_rows(evaluation.split, self._params):
            for place in range(len(self._params.models)):
                yield PlannedItem(f"{row_id}:{place}", row_id, {"place": place})

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, ScreenJob]:
        evaluation = Evaluation.objects.get(run=run)
        models = {model.place: model for model in evaluation.models.all()}
        targets = {target.name: target for target in self.targets(run)}
        rows = SplitRow.objects.select_related("text").in_bulk([item.target_id for item in items if item.target_id])
        family = family_of(evaluation)
        jobs = {}
        for item in items:
            row, model = rows.get(item.target_id or 0), models.get(item.data["place"])
            if row is None or model is None:
                continue
            jobs[item.pk] = ScreenJob(model, row, family, targets[model.name])
        return jobs

    async def work(self, context: LlmContext, item: Item, job: ScreenJob | None) -> Write:
        """A failed call counts as an empty answer, wrong in every column, so its item is done.

        An endpoint that was down for too long, or that the model cannot be asked by, gave no answer to judge: then the
        item fails.
        """
        if job is None:
            raise ItemFailed("The row was deleted.")
        try:
            fresh = self._params.fresh
            answer = await context.ask(item, job.target, job.request, fresh=fresh, timeouts=SCREEN_TIMEOUTS)
        except EndpointDown:
            raise
        except ItemFailed as failed:
            if not _was_asked(failed.__cause__):
                raise
            reason = str(failed)
            return _save_answer(lambda: _failed(item, job, reason))
        said = answer.completion
        return _save_answer(lambda: scored(job.by, job.row, job.family, said, answer.call_id, said.latency_ms))


def chosen_rows(split: Split, params: EvaluateParams) -> list[int]:
    """Ids of the rows to send, in file order: the first `max_per_combo` of each (tier, source)."""
    rows = split.rows.order_by("number", "turn").values_list("pk", "tier", "source")
    limit = params.max_per_combo
    if limit == "all":
        return [pk for pk, _, _ in rows]
    taken: Counter[tuple[str, str]] = Counter()
    chosen = []
    for pk, tier, source in rows:
        taken[tier, source] += 1
        if taken[tier, source] <= limit:
            chosen.append(pk)
    return chosen


def _was_asked(failure: BaseException | None) -> bool:
    """Whether the row came to the model. Otherwise the model has no answer to it, not even a wrong one."""
    is_of_the_key = isinstance(failure, Refused) and failure.status in KEYS
    return not (is_of_the_key or isinstance(failure, Misconfigured | OutOfQuota | RateLimited))


def _failed(item: Item, job: ScreenJob, reason: str) -> ScreenedAnswerText:
    """Return the missing answer of the item's last call, whose time counts as its latency. A call that only checked the
    endpoint belongs to the item too, and is none of the row's."""
    own = Call.objects.filter(item=item, content_hash=job.request.content_hash(job.target))
    last = own.order_by("-pk").values_list("pk", "latency_ms").first()
    call_id, latency_ms = last or (None, 0)
    return scored(job.by, job.row, job.family, None, call_id, latency_ms or 0, reason)


def scored(
    by: EvaluatedModel,
    row: SplitRow,
    family: CommandFamily,
    completion: Completion | None,
    call_id: int | None,
    latency_ms: int,
    error: str = "",
) -> ScreenedAnswerText:
    """Score a model's answer to a row by its expected command, or return why there is none. `call_id` is its call, or
    the last one that failed."""
    text = storable(completion.text) if completion else ""
    score: CommandScore = score_command(text, row.text.expected, family) if completion else FAILED
    screened = ScreenedAnswer(
        evaluation_id=by.evaluation_id,
        by=by,
        row=row,
        call_id=call_id,
        mark=score.mark,
        cut=completion is not None and completion.finish_reason.lower() in CUT,
        failed=completion is None,
        latency_ms=latency_ms,
        length=len(text),
        **{name: getattr(score, name) for name in FLAGS},
    )
    return ScreenedAnswerText(
        screened=screened,
        completion=text,
        extracted=score.extracted if score.xtr else "",
        thinking=storable(completion.thinking) if completion else "",
        error=storable(error)[:MAX_ERROR],
    )


def _save_answer(answered: Callable[[], ScreenedAnswerText]) -> Write:
    """The write of one answer, which scores it."""

    def write() -> Json:
        text = answered()
        save_answers([text])
        mark = text.screened.mark
        return {"mark": mark, "error": text.error[:200]} if text.error else {"mark": mark}

    return write


def save_answers(made: Sequence[ScreenedAnswerText]) -> None:
    """Store answers, which replace earlier ones of the same model to the same row."""
    ScreenedAnswer.objects.bulk_create(
        [text.screened for text in made],
        update_conflicts=True,
        unique_fields=["by", "row"],
        update_fields=["evaluation", *FIGURES],
        batch_size=TOGETHER,
    )
    ScreenedAnswerText.objects.bulk_create(
        made,
        update_conflicts=True,
        unique_fields=["screened"],
        update_fields=["completion", "extracted", "thinking", "error"],
        batch_size=TOGETHER,
    )
