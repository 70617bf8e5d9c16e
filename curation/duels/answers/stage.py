"""Stages `king` and `challenger`: one answer per prompt and sample. Refused ones are stored, retried, never judged."""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import orjson
from django.db.models import Max, Q

from curation.duels.answers.leaks import (
    FAILED,
    MOST_UNPARSED,
    NONE,
    UNPARSED,
    LeakReader,
    LintResult,
    lint_answer,
    read_answer,
)
from curation.duels.filters import prompts_in
from curation.duels.models import Answer, AnswerText, Prompt, PromptText, PullRequest, Side
from curation.duels.params import AnswerParams, ChallengerParams
from curation.llm.client.completion import Completion, CompletionRequest, EndpointTarget
from curation.projects.instructions.texts import Instructions
from curation.runs.calls.record import CallAnswer
from curation.runs.calls.targets import call_params, run_instructions, run_target, targets_named
from curation.runs.kinds import MOST_OPEN_CALLS, ItemFailed, Json, LlmContext, PlannedItem, Write
from curation.runs.models import Item, Run
from curation.web.text.storable import storable
from judging.answers.facts import answer_facts
from judging.answers.read import FORMAT_REFUSALS, format_refusal
from judging.leaks.reader import READ
from judging.messages import content_of, request_messages

CHUNK = 2000
# An answer that another replaces keeps so much of its fingerprint, which is unique.
REPLACED_LENGTH = 50
Message = Mapping[str, object]


def fingerprint(stage: str, target: EndpointTarget, instructions_sha256: str, params: Mapping[str, object]) -> str:
    """Return the SHA-256 over everything besides the prompt that determines an answer or a verdict."""
    parts = {
        "stage": stage,
        "model": target.model,
        "api_base": target.api_base,
        "instructions": instructions_sha256,
        "params": {**target.params, **params},
    }
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


@dataclass(frozen=True, slots=True)
class AnswerPlan:
    """What all calls of the stage share, read from the run."""

    target: EndpointTarget
    instructions: Instructions
    params: dict[str, object]
    reader: LeakReader | None

    def fingerprint(self, side: str) -> str:
        return fingerprint(side, self.target, self.instructions.sha256, self.params)


@dataclass(frozen=True, slots=True)
class AnswerJob:
    """An answer to make. `tried` is the number of the last refused attempt."""

    plan: AnswerPlan
    prompt_id: int
    history: Sequence[Message]
    tools: Sequence[Message]
    record: PullRequest | None
    tried: int
    unread: Answer | None


class AnswerStage:
    """King or challenger. They differ in the messages and in the leak lint."""

    queue = "llm"
    most_open = MOST_OPEN_CALLS
    lasting: ClassVar = True

    def __init__(self, side: Side, params: AnswerParams) -> None:
        self.name = side.value
        self._side, self._params, self._unparsed = side, params, 0

    def read(self, run: Run) -> AnswerPlan:
        given = run.settings.generation
        target = run_target(run, self._params.model)
        params = call_params(target, {"temperature": given.temperature, "max_tokens": given.max_tokens})
        return AnswerPlan(target, run_instructions(run, self._side.value), params, self._reader(run))

    def _reader(self, run: Run) -> LeakReader | None:
        if not isinstance(self._params, ChallengerParams):
            return None
        # Runs from before the parameter have the reader of the settings.
        name = self._params.leak_reader or run.settings.generation.leak_reader or NONE
        if name == NONE:
            return None
        target, limit = targets_named(run.project, [name], "leak_reader")[0], run.settings.panel.max_tokens
        return LeakReader(target, run_instructions(run, READ), limit)

    def targets(self, run: Run) -> Sequence[EndpointTarget]:
        plan = self.read(run)
        return [plan.target, *([plan.reader.target] if plan.reader else [])]

    def plan(self, run: Run) -> Iterable[PlannedItem]:
        plan = self.read(run)
        mark = plan.fingerprint(self._side)
        accepted = Answer.objects.filter(prompt__project=run.project, fingerprint=mark, refusal="")
        if plan.reader:
            # What another reader read, or none, is read now; the answer stays. What is flagged needs no reader.
            flagged = Q(leak_flag=True) | Q(reader_flag=True)
            accepted = accepted.filter(flagged | Q(reading__mark=plan.reader.mark))
        answered = set() if self._params.fresh else set(accepted.values_list("prompt_id", "sample_index"))
        # Only agents' turns have hidden records; of other data both models answer blind.
        with_record = run.settings.data.is_agent
        records = set(PullRequest.objects.of(run.project).usable().values_list("instance_id", flat=True))
        doubtful = dict(PullRequest.objects.of(run.project).doubtful().values_list("instance_id", "doubt"))
        prompts = prompts_in(run.project, self._params.filter).order_by("id").values_list("pk", "instance_id")
        for prompt_id, instance_id in prompts.iterator(CHUNK):
            for index in range(self._params.samples):
                reason = ""
                if self._side == Side.CHALLENGER and with_record and instance_id in doubtful:
                    reason = f"doubtful pull-request record: clear it or import the right one. {doubtful[instance_id]}"
                elif self._side == Side.CHALLENGER and with_record and instance_id not in records:
                    reason = "no pull-request record: it cannot be challenged"
                elif (prompt_id, index) in answered:
                    reason = "answered already, with the same model, instructions and parameters"
                yield PlannedItem(f"{prompt_id}:{index}", prompt_id, {"sample_index": index}, skipped=reason)

    def load(self, run: Run, items: Sequence[Item]) -> dict[int, AnswerJob]:
        plan = self.read(run)
        prompts = Prompt.objects.in_bulk([item.target_id for item in items if item.target_id is not None])
        texts = PromptText.objects.prefetch_related("session").in_bulk(list(prompts))
        records = {}
        if self._side == Side.CHALLENGER and run.settings.data.is_agent:
            ids = {prompt.instance_id for prompt in prompts.values()}
            usable = PullRequest.objects.of(run.project).usable()
            known = usable.filter(instance_id__in=ids).select_related("text")
            records = {record.instance_id: record for record in known}
        tried = self._tried(plan, list(prompts))
        unread = self._unread(plan, list(prompts))
        jobs = {}
        for item in items:
            prompt = prompts.get(item.target_id or 0)
            if prompt is not None:
                key, text = (prompt.pk, item.data["sample_index"]), texts[prompt.pk]
                record = records.get(prompt.instance_id)
                jobs[item.pk] = AnswerJob(
                    plan, prompt.pk, text.history, text.tools, record, tried.get(key, 0), unread.get(key)
                )
        return jobs

    def _tried(self, plan: AnswerPlan, prompt_ids: Sequence[int]) -> dict[tuple[int, int], int]:
        """Return the last refused attempt by prompt and sample. The next attempt has a higher number, because a request
        with the same number is answered from the record."""
        refused = Answer.objects.filter(prompt_id__in=prompt_ids, fingerprint=plan.fingerprint(self._side))
        rows = refused.exclude(refusal="").values_list("prompt_id", "sample_index")
        return {(row[0], row[1]): row[2] for row in rows.annotate(last=Max("attempt"))}

    def _unread(self, plan: AnswerPlan, prompt_ids: Sequence[int]) -> dict[tuple[int, int], Answer]:
        """Return accepted answers that only lack the reading of the second reader."""
        if plan.reader is None or self._params.fresh:
            return {}
        mark = plan.fingerprint(self._side)
        rows = Answer.objects.filter(prompt_id__in=prompt_ids, fingerprint=mark, refusal="", leak_flag=False)
        return {(row.prompt_id, row.sample_index): row for row in rows.select_related("text")}

    async def work(self, context: LlmContext, item: Item, job: AnswerJob | None) -> Write:
        if job is None:
            raise ItemFailed("The prompt was deleted.")
        messages = self._messages(job, blind=self._side == Side.KING or not context.run.settings.data.is_agent)
        if job.unread is not None:
            return await self._read_again(context, item, job, job.unread)
        attempts: list[CallAnswer] = []
        for number in range(job.tried + 1, job.tried + self._params.attempts + 1):
            index = item.data["sample_index"]
            request = CompletionRequest(messages, job.plan.params, sample_index=index, attempt=number, tools=job.tools)
            digest, fresh = job.plan.instructions.sha256, self._params.fresh
            attempts.append(await context.ask(item, job.plan.target, request, instructions_hash=digest, fresh=fresh))
            refusal = _refusal(attempts[-1].completion)
            if not refusal:
                break
        lint, reading = None, {}
        if job.record is not None and not refusal:
            max_leak = context.run.settings.limits.max_leak
            text = attempts[-1].completion.text
            lint = await asyncio.to_thread(lint_answer, text, job.history, job.record, max_leak)
            if job.plan.reader is not None and not lint.flagged:
                reading = await self._read(context, item, job, text)

        def write() -> Json:
            for number, answered in enumerate(attempts, job.tried + 1):
                saved = self._save(context.run, item, job, number, answered, lint, reading)
            return {"answer": saved}

        if refusal:
            count = f" ({len(attempts)} tries)" if len(attempts) > 1 else ""
            raise ItemFailed(f"{FORMAT_REFUSALS[refusal]}{count}", write)
        return write

    async def _read(self, context: LlmContext, item: Item, job: AnswerJob, answer: str) -> Json:
        """Have an answer read for leaks, unless the last readings in this process could not be parsed."""
        if job.record is None or job.plan.reader is None:
            raise ItemFailed("The pull-request record or the leak reader is missing.")
        if self._unparsed >= MOST_UNPARSED:
            return job.plan.reader.not_asked()
        reading = await read_answer(context, item, job.plan.reader, answer, job.history, job.record)
        if reading["state"] != FAILED:
            self._unparsed = self._unparsed + 1 if reading["state"] == UNPARSED else 0
        return reading

    async def _read_again(self, context: LlmContext, item: Item, job: AnswerJob, answer: Answer) -> Write:
        """Have an existing answer read."""
        reading = await self._read(context, item, job, answer.text.text)

        def write() -> Json:
            rows = Answer.objects.filter(pk=answer.pk)
            rows.update(reading=reading, reader_flag=bool(reading["findings"]))
            return {"answer": answer.pk}

        return write

    def _messages(self, job: AnswerJob, *, blind: bool) -> list[Message]:
        if blind:
            return _with_system(job.plan.instructions.text, job.history)
        if job.record is None:
            raise ItemFailed("The pull-request record was deleted or became doubtful.")
        return _challenger_messages(job.plan.instructions.text, job.history, job.record)

    def _save(
        self,
        run: Run,
        item: Item,
        job: AnswerJob,
        number: int,
        answered: CallAnswer,
        lint: LintResult | None,
        reading: Json,
    ) -> int:
        """Save the answer and return its id. If another run has saved an accepted one meanwhile, return that one's."""
        completion, mark = answered.completion, job.plan.fingerprint(self._side)
        index, refusal = item.data["sample_index"], _refusal(completion)
        if not refusal:
            same = Answer.objects.filter(prompt_id=job.prompt_id, fingerprint=mark, sample_index=index, refusal="")
            if self._params.fresh:
                same.update(fingerprint=f"{mark[:REPLACED_LENGTH]}~{answered.call_id}")
            elif found := same.first():
                return found.pk
        facts = answer_facts(completion.text)
        row = Answer.objects.create(
            prompt_id=job.prompt_id,
            run=run,
            call_id=answered.call_id,
            side=self._side,
            model=job.plan.target.name,
            family=job.plan.target.family,
            fingerprint=mark,
            instructions_hash=job.plan.instructions.sha256,
            sample_index=index,
            attempt=number,
            refusal=refusal,
            has_thought=facts.has_thought,
            blocks=facts.blocks,
            commands=facts.commands,
            action_style=facts.action_style,
            tokens=_answer_tokens(completion),
            leak_score=lint.score if lint else None,
            leak_flag=bool(lint and lint.flagged),
            leak_spans=lint.spans if lint else [],
            reader_flag=bool(reading.get("findings")),
            reading=reading if not refusal else {},
        )
        AnswerText.objects.create(
            answer=row,
            text=storable(completion.text),
            thinking=storable(completion.thinking),
            tool_calls=list(completion.tool_calls),
        )
        return row.pk


def _refusal(said: Completion) -> str:
    """Return why the reply is refused for its format; empty if it is accepted."""
    return format_refusal(said.text, finish_reason=said.finish_reason, calls=said.tool_calls) or ""


def _challenger_messages(instructions: str, history: Sequence[Message], record: PullRequest) -> list[Message]:
    """Return the history, with the hidden record in the system message."""
    text = record.text
    parts = [
        f"Title: {record.title}",
        f"Files: {', '.join(map(str, record.files))}",
        f"Issue:\n{text.issue}",
        f"Description:\n{text.description}",
        f"Patch:\n{text.patch}",
    ]
    return _with_system(f"{instructions}\n<record>\n" + "\n\n".join(parts) + "\n</record>", history)


def _with_system(instructions: str, history: Sequence[Message]) -> list[Message]:
    """Return the history with one system message: the source's own, then the stage's. Many servers refuse a second."""
    own = [content_of(message) for message in history if message.get("role") == "system"]
    rest = [message for message in history if message.get("role") != "system"]
    return [{"role": "system", "content": "\n\n".join([*filter(None, own), instructions])}, *request_messages(rest)]


def _answer_tokens(completion: Completion) -> int:
    """Return the tokens of the answer alone. Endpoints count thinking too, so with thinking it is characters ÷ 4."""
    if completion.thinking or not completion.tokens_out:
        return -(-len(completion.text) // 4)
    return completion.tokens_out
