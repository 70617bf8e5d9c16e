"""The samples that people decided differently, with each person's decision."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import F
from django.utils.safestring import SafeString

from curation.duels.models import Duel, Opponent
from curation.projects.access import Access
from curation.projects.settings.data import Words
from curation.review.decisions.opinions import look_at_opinions
from curation.review.models import Action, Decision, Pick
from curation.review.queue.seats import kept_side
from curation.samples.list.conditions import HasOpinions
from curation.samples.models import Sample
from curation.web.lists.clauses import Clause
from curation.web.lists.filters import ListParams, named_list
from curation.web.lists.keyset import KeysetPage
from curation.web.text.markup import render_text
from judging.messages import message_text


@dataclass(frozen=True, slots=True)
class Dispute:
    """`may_keep`: the caller is none of those who disagree, and so may adjudicate. `answers`: side → the text as it was
    recorded; empty for a trajectory. `opponent` is the side beside the challenger."""

    sample: Sample
    decisions: list[Decision]
    may_keep: bool
    answers: dict[str, str]
    opponent: str
    words: Words

    def both(self) -> list[tuple[str, SafeString]]:
        """Both answers as they were recorded, each with its side as pages name it; none of a trajectory."""
        named = ((Pick.KING, self.words.opponent), (Pick.CHALLENGER, self.words.candidate))
        return [(label, render_text(self.answers[side])) for side, label in named if self.answers.get(side)]

    def kept(self) -> list[tuple[Decision, str, str]]:
        """Each decision, the picked side as pages name it, and the text that it keeps; "" for none."""
        return [(row, self.opponent if row.pick == Pick.KING else row.pick, self._text(row)) for row in self.decisions]

    def _text(self, row: Decision) -> str:
        if row.revision is not None:
            return row.revision.text
        return self.answers.get(kept_side(row.pick), "") if row.action == Action.APPROVE else ""


# Without statistics PostgreSQL would look for them in the order of the ids, among all samples.
_DISPUTED = Clause(
    indexed=lambda rows: rows.filter(HasOpinions(F("opinions")), disputed=True),
    scanned=lambda rows: rows.filter(disputed=True),
)


@named_list("disputes", page="dispute-list")
class DisputeList(ListParams):
    """Samples to adjudicate, the longest waiting first."""

    sorts = ("id", "-id")

    def page_of(self, access: Access) -> tuple[KeysetPage[Sample], dict[int, Dispute]]:
        """Return a page of samples and the dispute about each. The log notes that the caller looked."""
        page = self.read(Sample.objects.of(access.project), [_DISPUTED])
        found = Decision.objects.opinions().filter(sample__in=page.rows, settles=False, round=F("sample__round"))
        latest: dict[int, dict[int, Decision]] = {}
        for row in found.select_related("reviewer", "revision", "sample").order_by("id"):
            latest.setdefault(row.sample_id, {})[row.reviewer_id] = row
        answers, words = self._answers(page.rows), access.project.settings.data.words
        disputes = {}
        for sample in page.rows:
            given = latest.get(sample.pk, {})
            look_at_opinions(access, given.values())
            texts, opponent = answers.get(sample.pk, ({}, ""))
            may_keep = access.user.pk not in given
            disputes[sample.pk] = Dispute(sample, list(given.values()), may_keep, texts, opponent, words)
        return page, disputes

    def _answers(self, samples: Sequence[Sample]) -> dict[int, tuple[dict[str, str], str]]:
        texts = ("challenger__text__text", "king__text__text", "prompt__text__reference")
        rows = Duel.objects.filter(sample__in=samples).values_list("sample_id", "opponent", *texts)
        return {
            pk: (
                {
                    Pick.CHALLENGER: mine,
                    Pick.KING: message_text(reference or {}) if opponent == Opponent.REFERENCE else king or "",
                },
                opponent,
            )
            for pk, opponent, mine, king, reference in rows
        }
