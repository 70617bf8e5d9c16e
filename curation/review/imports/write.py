"""Write imported rows as samples: a prompt, its answers, the duel between them, and the decision that the row carries.

The answer is the challenger, the one that it was preferred to is the king. Rows that exist by content are not written
again: a prompt with the same history and turn, an answer with the same text, a duel of the same two answers.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence

from django.db.models import F

from curation.duels.answers.leaks import LintResult, lint_answer
from curation.duels.imports.conversation import Conversation
from curation.duels.imports.prompts import content_hashes, write_prompts
from curation.duels.models import Answer, AnswerText, Duel, Opponent, Prompt, PullRequest, Side
from curation.duels.score.stage import sample_texts
from curation.imports.row_kinds import ImportTarget
from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.imports.content import ImportedRow
from curation.review.imports.decisions import imported_bucket, imported_priority, take_over
from curation.review.imports.labels import DuelOfRow, pair_rows
from curation.review.models import import_batch
from curation.samples.models import UNSCORED, Flag, Sample, SampleKind, SampleText
from curation.samples.scores import SampleRow, scanned_flags, upsert_samples
from curation.samples.texts import answer_sha256, scan_texts
from curation.web.ids import IdList, KeyList
from curation.web.text.storable import storable
from judging.answers.facts import answer_facts
from judging.messages import Message, message_text

# In place of the name of an endpoint, which has no brackets.
MODEL = "(imported)"
Prompted = tuple[int, str]  # prompt, side


def write_samples(target: ImportTarget, given: Sequence[ImportedRow], access: Access | None) -> dict[str, int]:
    """Write the rows that do not exist yet, in the caller's transaction. Return how many `samples` are new, how many
    rows are `duplicates`, the new samples by status, and the number of `answers` of rows without a challenger.

    With `access` the rows' decisions become decisions of that person; without, all samples are pending.
    """
    # One import at a time writes to a project, so that nothing found missing is created meanwhile.
    Project.objects.select_for_update(no_key=True).get(pk=target.run.project_id)
    batch = import_batch(target.run)
    unwritten, completed, taken_back = pair_rows(
        target.run, given, [_fingerprint(row, Side.CHALLENGER) for row in given], batch
    )
    rows = _without_known_halves(target, unwritten)
    answers = _Answers(target)
    prompts = _write_prompts(target, rows)
    answers.read(prompts)
    for row, prompt in zip(rows, prompts, strict=True):
        for side, message in ((Side.CHALLENGER, row.content.answer), (Side.KING, row.content.other)):
            answers.add(prompt, side, row, message)
    answers.save()
    new = _write_duels(target, rows, prompts, answers)
    _write_samples(target, new)
    _complete(target, completed)
    decided = take_over(target.run, access, _decisions(new))
    rejected, pending = (taken_back, 0) if access is not None else (0, taken_back)
    unjudged = sum(row.content.answer is None for row in rows)
    counts = {
        "samples": len(new) - taken_back,
        "duplicates": len(rows) - len(new) - unjudged + len(unwritten) - len(rows),
        **decided,
        "rejected": decided["rejected"] - rejected,
        "pending": len(new) - decided["approved"] - decided["rejected"] - pending,
    }
    return {**counts, "answers": unjudged} if unjudged else counts


def _conversation(row: ImportedRow) -> Conversation:
    turn = row.content.reference or row.content.answer
    if turn is None:
        raise ValueError(f"row {row.offset} has no turn")
    messages = [*row.content.history, turn]
    return Conversation(row.content.layout, messages, [len(messages) - 1], row.tools, row.instance_id, row.repo)


def _fingerprint(row: ImportedRow, side: str) -> str:
    """Return the common key of answers to the same history. No model made them, so it stands in place of the digest of
    instructions and parameters."""
    history = content_hashes(_conversation(row))[-2]
    return hashlib.sha256(f"import {side} {history}".encode()).hexdigest()


def _without_known_halves(target: ImportTarget, rows: Sequence[ImportedRow]) -> list[ImportedRow]:
    """Leave out unwanted completions that are already the other side of a sample."""
    unwanted = {row.offset: _fingerprint(row, Side.KING) for row in rows if row.content.label is False}
    kings = Answer.objects.filter(
        prompt__project=target.run.project_id, side=Side.KING, fingerprint__in=KeyList(list(set(unwanted.values())))
    )
    known = {(king.fingerprint, _digest_of(king.text)) for king in kings.select_related("text")} if unwanted else set()
    return [
        row
        for row in rows
        if row.offset not in unwanted or (unwanted[row.offset], _digest(row.content.answer)) not in known
    ]


def _write_prompts(target: ImportTarget, rows: Sequence[ImportedRow]) -> list[int]:
    """Write the prompts that do not exist, and return the ids of all, in the order of the rows."""
    conversations = [_conversation(row) for row in rows]
    wanted = [(row.offset, one, list(one.turns)) for row, one in zip(rows, conversations, strict=True)]
    write_prompts(target, wanted)
    hashes = [content_hashes(conversation)[-1] for conversation in conversations]
    found = Prompt.objects.of(target.run.project).filter(content_hash__in=KeyList(list(set(hashes)))).order_by("-pk")
    ids = dict(found.values_list("content_hash", "pk"))
    return [ids[content_hash] for content_hash in hashes]


class _Answers:
    """Imported answers, each once by its prompt, side and content."""

    def __init__(self, target: ImportTarget) -> None:
        self._target = target
        self._known: dict[Prompted, dict[str, Answer]] = defaultdict(dict)
        self._new: list[tuple[Answer, AnswerText]] = []
        self._records: dict[str, PullRequest | None] = {}
        self._max_leak = target.run.settings.limits.max_leak

    def read(self, prompts: Iterable[int]) -> None:
        rows = Answer.objects.filter(prompt_id__in=IdList(list(set(prompts))), model=MODEL).select_related("text")
        for answer in rows:
            self._known[answer.prompt_id, answer.side][_digest_of(answer.text)] = answer

    def find(self, prompt: int, side: str, message: Message | None) -> Answer | None:
        return None if message is None else self._known[prompt, side].get(_digest(message))

    def add(self, prompt: int, side: str, row: ImportedRow, message: Message | None) -> None:
        if message is None or self.find(prompt, side, message) is not None:
            return
        text = _text_of(message)
        facts = answer_facts(text.text)
        lint = self._lint(row, text.text) if side == Side.CHALLENGER else None
        same = self._known[prompt, side]
        answer = Answer(
            prompt_id=prompt,
            run=self._target.run,
            side=side,
            model=MODEL,
            fingerprint=_fingerprint(row, side),
            instructions_hash="",
            sample_index=len(same),
            has_thought=facts.has_thought,
            blocks=facts.blocks,
            commands=facts.commands,
            action_style=facts.action_style,
            tokens=-(-len(text.text) // 4),
            leak_score=lint.score if lint else None,
            leak_flag=bool(lint and lint.flagged),
            leak_spans=lint.spans if lint else [],
        )
        same[_digest(message)] = answer
        self._new.append((answer, text))

    def save(self) -> None:
        Answer.objects.bulk_create([answer for answer, _ in self._new])
        for answer, text in self._new:
            text.answer = answer
        AnswerText.objects.bulk_create([text for _, text in self._new])
        self._new = []

    def _lint(self, row: ImportedRow, text: str) -> LintResult | None:
        if row.instance_id not in self._records:
            records = PullRequest.objects.of(self._target.run.project).filter(instance_id=row.instance_id)
            self._records[row.instance_id] = records.exclude(instance_id="").select_related("text").first()
        record = self._records[row.instance_id]
        return None if record is None else lint_answer(text, row.content.history, record, self._max_leak)


def _text_of(message: Message) -> AnswerText:
    calls = message.get("tool_calls")
    return AnswerText(
        text=storable(message_text(message)),
        thinking=storable(str(message.get("reasoning_content") or "")),
        tool_calls=calls if isinstance(calls, list) else [],
    )


def _digest(message: Message | None) -> str:
    return "" if message is None else _digest_of(_text_of(message))


def _digest_of(text: AnswerText) -> str:
    return answer_sha256(text.text, reasoning=text.thinking, tool_calls=text.tool_calls)


def _write_duels(
    target: ImportTarget, rows: Sequence[ImportedRow], prompts: Sequence[int], answers: _Answers
) -> list[DuelOfRow]:
    sides = [
        (answers.find(prompt, Side.CHALLENGER, row.content.answer), answers.find(prompt, Side.KING, row.content.other))
        for row, prompt in zip(rows, prompts, strict=True)
    ]
    ids = [challenger.pk for challenger, _ in sides if challenger is not None]
    existing = Duel.objects.filter(challenger_id__in=IdList(ids)).values_list("challenger_id", "king_id")
    known: dict[int, set[int | None]] = defaultdict(set)
    for challenger_id, king_id in existing:
        known[challenger_id].add(king_id)
    new: list[DuelOfRow] = []
    for row, prompt, (challenger, king) in zip(rows, prompts, sides, strict=True):
        if challenger is None:
            continue
        # A row without another answer adds nothing to a sample that has one.
        if known[challenger.pk] and (king is None or king.pk in known[challenger.pk]):
            continue
        known[challenger.pk].add(king.pk if king else None)
        duel = Duel(
            project=target.run.project,
            prompt_id=prompt,
            run=target.run,
            opponent=Opponent.KING if king else Opponent.NONE,
            king=king,
            challenger=challenger,
            score=row.score,
            score_key=UNSCORED if row.score is None else row.score,
            metrics=row.metrics,
            flags=Flag.LEAK if challenger.leak_flag else 0,
            scoring=_scoring(row),
        )
        duel.bucket = imported_bucket(duel, target.run.settings)
        new.append((duel, row))
    Duel.objects.bulk_create([duel for duel, _ in new])
    return new


def _scoring(row: ImportedRow) -> dict[str, object]:
    """The row's remarks on its answer, in the place where other duels have the origin of their score."""
    scoring: dict[str, object] = {} if row.content.label is None else {"label": row.content.label}
    if row.score is not None or row.file:
        scoring["imported"] = {"file": row.file, "reason": row.reason}
    return scoring


def _write_samples(target: ImportTarget, new: Sequence[DuelOfRow]) -> None:
    texts = sample_texts([duel.pk for duel, _ in new])
    prompts = Prompt.objects.in_bulk([duel.prompt_id for duel, _ in new])
    rows = []
    for duel, row in new:
        text, prompt = texts[duel.pk], prompts[duel.prompt_id]
        rows.append(
            SampleRow(
                project_id=target.run.project_id,
                run_id=target.run.pk,
                existing_id=None,
                kind=SampleKind.TURN,
                score=duel.score,
                bucket=duel.bucket,
                flags=duel.flags,
                priority=imported_priority(duel, target.run.settings),
                source=row.source or prompt.source,
                repo=prompt.repo,
                instance_id=prompt.instance_id,
                action_style=duel.challenger.action_style,
                model=MODEL,
                preview=text.preview,
                body=text.body,
                texts=text.scanned,
                axes=row.axes,
            )
        )
    for (duel, _), sample in zip(new, upsert_samples(rows), strict=True):
        duel.sample = sample
    Duel.objects.bulk_update([duel for duel, _ in new], ["sample"], batch_size=500)


def _complete(target: ImportTarget, completed: Sequence[DuelOfRow]) -> None:
    """Add the other side to samples of earlier chunks. Their scan was of one side."""
    if not completed:
        return
    answers = _Answers(target)
    answers.read(duel.prompt_id for duel, _ in completed)
    for duel, row in completed:
        answers.add(duel.prompt_id, Side.KING, row, row.content.answer)
    answers.save()
    duels = [duel for duel, _ in completed]
    kings: dict[int, AnswerText] = {}
    for duel, row in completed:
        duel.king = king = answers.find(duel.prompt_id, Side.KING, row.content.answer)
        duel.opponent = Opponent.KING
        if king is not None and duel.sample_id is not None:
            kings[duel.sample_id] = king.text
    Duel.objects.bulk_update(duels, ["king", "opponent"])
    bodies, samples = sample_texts([duel.pk for duel in duels]), IdList(sorted(kings))
    texts = list(SampleText.objects.filter(sample__in=samples).select_related("sample__duel"))
    found = scan_texts(part for king in kings.values() for part in (king.text, king.thinking))
    for text in texts:
        sample, king_text = text.sample, kings[text.sample_id]
        text.body = bodies[sample.duel.pk].body
        findings = (finding for part in (king_text.text, king_text.thinking) for finding in found.get(part, ()))
        sample.flags |= scanned_flags(findings)
    SampleText.objects.bulk_update(texts, ["body"])
    Sample.objects.bulk_update([text.sample for text in texts], ["flags"])
    Sample.objects.filter(pk__in=samples).update(version=F("version") + 1)


def _decisions(new: Sequence[DuelOfRow]) -> dict[tuple[str, tuple[str, ...]], list[int]]:
    """Return the samples by the decision of their row and the names of its reviewers."""
    alike: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for duel, row in new:
        if row.decision and duel.sample_id is not None:
            alike[row.decision, row.reviewers].append(duel.sample_id)
    return alike
