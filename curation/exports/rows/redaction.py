"""Keep secrets and personal data out of the rows of one sample: cleared by a person, masked, or not exported."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar, cast

from curation.exports.formats.row import Preference, TrainingExample
from curation.exports.rows.queries import DuelTexts
from curation.exports.rows.skip_reasons import SkipReason
from curation.llm.client.tokens import without_tokens
from curation.projects.settings.document import Scan
from curation.review.decisions.outcome import Approval
from curation.review.models import Clearance
from curation.samples.texts import AnsweredSide, text_sha256
from curation.web.ids import IdList
from judging.scan.rules import CONTROL, PII, SECRET, Kind
from judging.scan.scan import Masks, ScanFinding, rule_set_version, scan, texts_of, without_numbers

T = TypeVar("T")
ACTIONS = KEPT_OUT, MASKED, CLEARED, WARNED = "kept_out", "masked", "cleared", "warned"
Cleared = frozenset[tuple[str, str]]
REASONS: Mapping[Kind, SkipReason] = {SECRET: SkipReason.SECRET, PII: SkipReason.PII, CONTROL: SkipReason.CONTROL_TEXT}
# Names of sources, tasks and repositories recur from row to row.
_scan_name = lru_cache(maxsize=1_000)(scan)


@dataclass(slots=True)
class Redaction:
    """The result of the scan for one sample. `counts` counts findings by rule and action, `found` has the findings of
    each text, which a row and its pairs repeat."""

    scan: Scan
    cleared: Cleared
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    masks: Masks = field(default_factory=Masks)
    found: dict[str, tuple[ScanFinding, ...]] = field(default_factory=dict)

    def findings(self, text: str) -> tuple[ScanFinding, ...]:
        if text not in self.found:
            self.found[text] = scan(text)
        return self.found[text]

    def masked(self, value: T) -> T:
        return cast(T, _mapped(value, self.text))

    def text(self, text: str) -> str:
        findings = self.findings(text)
        if not findings:
            return text
        return self.masks.apply(text, findings, lambda one: self._action(text, one, is_said=True) == MASKED)

    def metadata(self, value: T) -> T:
        """Return a row's metadata about its sample, such as names, paths and remarks of people, with every finding
        masked: no row is kept out for it."""

        def without_findings(text: str) -> str:
            findings = _scan_name(text)
            for finding in findings:
                self._count(finding, MASKED)
            return self.masks.apply(text, findings, lambda _: True) if findings else text

        return cast(T, _mapped(value, without_findings))

    def reason(self, *, said: Iterable[str], shown: Iterable[str] = ()) -> SkipReason | None:
        """Count the findings in the texts, and return the reason not to export them, or None. `said` are the texts of
        assistants; control text elsewhere is input of a model, and only counted."""
        kinds = set()
        for is_said, texts in ((True, said), (False, shown)):
            for text in texts:
                for finding in self.findings(text):
                    action = self._action(text, finding, is_said=is_said)
                    self._count(finding, action)
                    if action == KEPT_OUT:
                        kinds.add(finding.kind)
        return next((REASONS[kind] for kind in REASONS if kind in kinds), None)

    def example(self, example: TrainingExample) -> TrainingExample | SkipReason:
        """Return an example masked, or why it may not leave. A preference whose rejected side may not leave is replaced
        by the reason; its other messages are those of the conversation."""
        said, shown = _by_speaker(example.messages)
        read: object = [shown, example.tools]
        if example.document is not None:
            # It repeats the conversation, and has more than that.
            own = set(texts_of(said))
            read = [text for text in texts_of(example.document) if text not in own]
        reason = self.reason(said=texts_of(said), shown=texts_of(read))
        if reason is not None:
            return reason
        messages, tools = self.masked(example.messages), self.masked(example.tools)
        document = self.masked(example.document)
        if (messages, tools, document) != (example.messages, example.tools, example.document):
            # Tokens repeat what is masked.
            example, document = example._replace(tokens={}), without_tokens(document)
        return example._replace(
            messages=messages,
            preferences=[one if isinstance(one, SkipReason) else self._preference(one) for one in example.preferences],
            tools=tools,
            document=document,
        )

    def _preference(self, found: Preference) -> Preference | SkipReason:
        said, shown = _by_speaker(found.rejected)
        reason = self.reason(said=texts_of(said), shown=texts_of(shown))
        if reason is not None:
            return reason
        prompt, chosen, rejected = map(self.masked, (found.prompt, found.chosen, found.rejected))
        sides = [_mapped(side, without_numbers) for side in (chosen, rejected)]
        if sides[0] == sides[1]:  # they differed only in masked text
            return SkipReason.IDENTICAL
        return found._replace(prompt=prompt, chosen=chosen, rejected=rejected)

    def _count(self, finding: ScanFinding, action: str) -> None:
        self.counts[finding.rule, action] = self.counts.get((finding.rule, action), 0) + 1

    def _action(self, text: str, finding: ScanFinding, *, is_said: bool) -> str:
        if (finding.rule, text_sha256(text[finding.start : finding.end])) in self.cleared:
            return CLEARED
        if finding.kind == CONTROL and not is_said:
            return WARNED
        return MASKED if self.scan.action(finding.rule) == "mask" else KEPT_OUT


def _by_speaker(messages: Sequence[Mapping[str, object]]) -> tuple[list[object], list[object]]:
    is_said = [message.get("role") == "assistant" for message in messages]
    return [m for m, said in zip(messages, is_said, strict=True) if said], [
        m for m, said in zip(messages, is_said, strict=True) if not said
    ]


def is_clean_turn(approval: Approval, texts: DuelTexts, other: AnsweredSide | None) -> bool:
    """Return whether the scan at the approval read this prompt and this other answer under the current rules and found
    nothing. The approved answer is compared by its own hash, and the answer that it replaced was read as well."""
    if approval.scan_rules != rule_set_version() or texts.sha256 != approval.prompt_sha256:
        return False
    return other is None or other.sha256 == approval.other_sha256


def clearances_of(sample_ids: Sequence[int]) -> Mapping[int, Cleared]:
    cleared: dict[int, set[tuple[str, str]]] = {}
    rows = Clearance.objects.filter(sample_id__in=IdList(sample_ids))
    for sample_id, rule, digest in rows.values_list("sample_id", "rule", "value_sha256"):
        cleared.setdefault(sample_id, set()).add((rule, digest))
    return {sample_id: frozenset(values) for sample_id, values in cleared.items()}


def _mapped(value: object, change: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _mapped(inner, change) for key, inner in value.items()}
    return [_mapped(inner, change) for inner in value] if isinstance(value, list) else value
