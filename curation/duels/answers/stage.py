"""Stages `king` and `challenger`: one answer per prompt and sample; refused ones are kept, retried, never judged."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Max

from curation.duels.answers.fingerprint import fingerprint
from curation.duels.answers.leaks import Lint, lint_answer
from curation.duels.answers.messages import Message, challenger_messages, king_messages
from curation.duels.models import Answer, AnswerText, Prompt, PromptText, PullRequest, Side
from curation.duels.selection import prompts_in
from curation.llm.client.completion import Completion, Request, Target
from curation.projects.instructions.texts import Instructions
from curation.runs.calls.instructions import run_instructions
from curation.runs.calls.record import Answered
from curation.runs.calls.targets import call_params, run_target
from curation.runs.kinds import MOST_OPEN_CALLS, ItemFailed, Json, LlmContext, PlannedItem, Write
from curation.runs.models import Item, Run
from judging.answers.facts import answer_facts
from judging.answers.read import FORMAT_REFUSALS, format_refusal

CHUNK = 2000


@dataclass(frozen=True, slots=True)
class AnswerPlan:
    """What the stage asks for, read from the run: model, instructions, parameters."""

    target: Target
    instructions: Instructions
    params: dict[str, object]
    samples: int
    attempts: int
    fresh: bool
    filter: Json

    def fingerprint(self, side: str) -> str:
        return fingerprint(side, self.target, self.instructions.sha256, self.params)


@dataclass(frozen=True, slots=True)
class AnswerJob:
    plan: AnswerPlan
    prompt_id: int
    history: Sequence[Message]
    record: PullRequest | None
    tried: int


@dataclass(frozen=True, slots=True)
class Attempt:
    """One reply of the model, and why it was refused (empty when accepted)."""

    number: int
    said: Answered
    refusal: str


class AnswerStage:
    """King or challenger; they differ in what the model is shown and in the leak lint."""

    queue = "llm"
    most_open = MOST_OPEN_CALLS

    def __init__(self, side: Side, *, model: str, samples: int, attempts: int, fresh: bool, filter: Json) -> None:
        self.name = side.value
        self._side = side
        self._model = model
        self._samples, self._attempts, self._fresh, self._filter = samples, attempts, fresh, filter

    def read(self, run: Run) -> AnswerPlan:
        given = run.settings.generation
        target = run_target(run, self._model)
        return AnswerPlan(
            target=target,
            instructions=run_instructions(run, self._side.value),
            params=call_params(target, {"temperature": given.temperature, "max_tokens": given.max_tokens}),
            samples=self._samples,
            attempts=self._attempts,
            fresh=self._fresh,
            filter=self._filter,
        )

    def targets(self, run: Run) -> Sequence[Target]:
        return [self.read(run).target]

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        plan = self.read(run)
        mine = Answer.objects.filter(prompt__project=run.project)
        accepted = mine.filter(fingerprint=plan.fingerprint(self._side), refusal="")
        answered = set() if plan.fresh else set(accepted.values_list("prompt_id", "sample_index"))
        records = set(PullRequest.objects.filter(project=run.project).values_list("instance_id", flat=True))
        prompts = prompts_in(run.project, plan.filter).order_by("id").values_list("pk", "instance_id")
        for prompt_id, instance_id in prompts.iterator(CHUNK):
            for index in range(plan.samples):
                reason = ""
                if self._side == Side.CHALLENGER and instance_id not in records:
                    reason = "no pull-request record: it cannot be challenged"
                elif (prompt_id, index) in answered:
                    reason = "answered already, with the same model, instructions and parameters"
                yield PlannedItem(f"{prompt_id}:{index}", prompt_id, {"sample_index": index}, skipped=reason)

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, AnswerJob]:
        plan = self.read(run)
        prompts = Prompt.objects.in_bulk([item.target_id for item in items if item.target_id is not None])
        texts = PromptText.objects.in_bulk(list(prompts))
        records = {}
        if self._side == Side.CHALLENGER:
            ids = {prompt.instance_id for prompt in prompts.values()}
            known = PullRequest.objects.filter(project=run.project, instance_id__in=ids).select_related("text")
            records = {record.instance_id: record for record in known}
        tried = self._tried(plan, list(prompts))
        jobs = {}
        for item in items:
            prompt = prompts.get(item.target_id or 0)
            if prompt is not None:
                before = tried.get((prompt.pk, item.data["sample_index"]), 0)
                jobs[item.pk] = AnswerJob(
                    plan, prompt.pk, texts[prompt.pk].history, records.get(prompt.instance_id), before
                )
        return jobs

    def _tried(self, plan: AnswerPlan, prompt_ids: Sequence[int]) -> dict[tuple[int, int], int]:
        """The last attempt that was refused, per prompt and sample: another run, or a retry, goes on after it.

        Asking with the same number again would only bring the refused answer back from the record.
        """
        refused = Answer.objects.filter(prompt_id__in=prompt_ids, fingerprint=plan.fingerprint(self._side))
        rows = refused.exclude(refusal="").values_list("prompt_id", "sample_index")
        return {(row[0], row[1]): row[2] for row in rows.annotate(last=Max("attempt"))}

    async def work(self, context: LlmContext, item: Item, job: AnswerJob | None) -> Write:
        if job is None:
            raise ItemFailed("its prompt was deleted")
        messages = self._messages(job)
        attempts: list[Attempt] = []
        for number in range(job.tried + 1, job.tried + job.plan.attempts + 1):
            request = Request(messages, job.plan.params, sample_index=item.data["sample_index"], attempt=number)
            digest = job.plan.instructions.sha256
            said = await context.ask(item, job.plan.target, request, instructions_hash=digest, fresh=job.plan.fresh)
            refusal = format_refusal(said.completion.text, finish_reason=said.completion.finish_reason) or ""
            attempts.append(Attempt(number, said, refusal))
            if not refusal:
                break
        last = attempts[-1]
        lint = None
        if job.record is not None and not last.refusal:
            max_leak = context.run.settings.limits.max_leak
            lint = await asyncio.to_thread(lint_answer, last.said.completion.text, job.history, job.record, max_leak)
        write = self._write(context.run, item, job, attempts, lint)
        if last.refusal:
            tries = f" ({len(attempts)} tries)" if len(attempts) > 1 else ""
            raise ItemFailed(f"{FORMAT_REFUSALS[last.refusal]}{tries}", write)
        return write

    def _messages(self, job: AnswerJob) -> list[Message]:
        if self._side == Side.KING:
            return king_messages(job.plan.instructions.text, job.history)
        if job.record is None:
            raise ItemFailed("its pull-request record was deleted")
        return challenger_messages(job.plan.instructions.text, job.history, job.record)

    def _write(self, run: Run, item: Item, job: AnswerJob, attempts: Sequence[Attempt], lint: Lint | None) -> Write:
        def write() -> Json:
            return {"answer": [self._save(run, item, job, attempt, lint) for attempt in attempts][-1]}

        return write

    def _save(self, run: Run, item: Item, job: AnswerJob, attempt: Attempt, lint: Lint | None) -> int:
        """The answer's row; an accepted one that another run wrote meanwhile is taken as it is."""
        said, digest = attempt.said.completion, job.plan.fingerprint(self._side)
        index = item.data["sample_index"]
        if not attempt.refusal:
            same = Answer.objects.filter(prompt_id=job.prompt_id, fingerprint=digest, sample_index=index, refusal="")
            if job.plan.fresh:
                same.update(fingerprint=f"{digest[:50]}~{attempt.said.call_id}")  # the older answer makes room
            elif found := same.first():
                return found.pk
        facts = answer_facts(said.text)
        row = Answer.objects.create(
            prompt_id=job.prompt_id,
            run=run,
            call_id=attempt.said.call_id,
            side=self._side,
            model=job.plan.target.name,
            family=job.plan.target.family,
            fingerprint=digest,
            instructions_hash=job.plan.instructions.sha256,
            sample_index=index,
            attempt=attempt.number,
            refusal=attempt.refusal,
            has_thought=facts.has_thought,
            blocks=facts.blocks,
            commands=facts.commands,
            action_style=facts.action_style,
            tokens=_answer_tokens(said),
            leak_score=lint.score if lint else None,
            leak_flag=bool(lint and lint.flagged),
            leak_spans=lint.spans if lint else [],
        )
        AnswerText.objects.create(answer=row, text=clean(said.text), thinking=clean(said.thinking))
        return row.pk


def _answer_tokens(said: Completion) -> int:
    """Tokens of the answer alone. What an endpoint counts holds the thinking, so then it is characters ÷ 4."""
    if said.thinking or not said.tokens_out:
        return -(-len(said.text) // 4)
    return said.tokens_out


def clean(text: str) -> str:
    """No database stores NUL or a lone surrogate; both become the replacement character."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode(errors="replace").decode()
