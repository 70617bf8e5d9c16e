"""The line of kings: each reign with the runs against its king, and the challengers that can be crowned."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from curation.duels.answers.stage import REPLACED_LENGTH
from curation.duels.reigns.contestant import changes_since
from curation.duels.reigns.crown import reign_to_begin, turned_by
from curation.duels.reigns.models import Reign
from curation.duels.verdict.report import REPORTED_KINDS, decision_of
from curation.duels.verdict.stage import Contestant, pair_of
from curation.projects.models import Project
from curation.runs.kinds import Json
from curation.runs.models import Run, RunState
from curation.web.problems import Problem
from curation.web.schemas import out

OUTCOMES = {"accepted": "good", "undecided": "attention", "not accepted": "bad"}


@out
class ChallengeOut:
    """A run against the king while it reigned."""

    run: str = Field(examples=["14"])
    kind: str = Field(examples=["duel"])
    at: datetime = Field()
    challenger: str = Field(examples=["model-c"])
    outcome: str = Field(examples=["undecided"], description="`accepted`, `undecided` or `not accepted`.")
    margin: float | None = Field(examples=[1.2], description="Points.")
    lcb: float | None = Field(examples=[-0.8], description="Points.")
    reasons: list[str] = Field()
    crowned: bool = Field(description="Its challenger is the next king.")
    why: str = Field(examples=[""], description="Why it is no defence.")
    defence: bool = Field(description="The king answered as the version that was crowned, and reigned on.")

    @property
    def tone(self) -> str:
        return OUTCOMES[self.outcome]


def reign_views(project: Project, reigns: Sequence[Reign]) -> list[dict[str, Any]]:
    """Return the reigns with the runs against each, in the order given. `notes` say what no longer holds: a deleted
    endpoint, another version, a verdict that turned."""
    challenges = _challenges(project, reigns)
    return [{"row": row, "challenges": list(challenges[row.pk]), "notes": list(_notes(project, row))} for row in reigns]


def crownings(run: Run) -> list[Json]:
    """Return the run's accepted verdicts against a king, as `model` and `fingerprint` of each challenger and `why` it
    cannot be crowned now; empty if it can."""
    if run.kind not in REPORTED_KINDS or run.state != RunState.SUCCEEDED:
        return []
    found = []
    for verdict in run.result.get("verdicts", ()):
        if verdict["accepted"] and verdict["opponent"]["side"] == "king":
            winner, why = verdict["challenger"], ""
            try:
                reign_to_begin(run, verdict)
            except Problem as problem:
                why = problem.detail
            found.append({"model": winner["model"], "fingerprint": winner["fingerprint"], "why": why})
    return found


def _challenges(project: Project, reigns: Sequence[Reign]) -> dict[int, list[ChallengeOut]]:
    """Return the runs against each king, the oldest first, by the id of its reign."""
    found: dict[int, list[ChallengeOut]] = defaultdict(list)
    if not reigns:
        return found
    crowned: dict[int | None, set[str]] = defaultdict(set)
    for run_id, mark in Reign.objects.filter(project=project).values_list("run_id", "fingerprint"):
        crowned[run_id].add(mark[:REPLACED_LENGTH])
    first = min(row.crowned_at for row in reigns)
    runs = Run.objects.of(project).filter(kind__in=REPORTED_KINDS, state=RunState.SUCCEEDED, finished_at__gte=first)
    columns = runs.order_by("finished_at", "pk").values_list("pk", "kind", "finished_at", "result__verdicts")
    for pk, kind, at, verdicts in columns:
        for verdict in verdicts or ():
            if at is None or not verdict["challenger"]:
                continue
            challenger, opponent = pair_of(verdict)
            won = challenger.key in crowned[pk]
            for row in reigns:
                # The run that crowned the next king ended a moment before or after it did.
                meanwhile = row.crowned_at <= at and (won or row.ended_at is None or at <= row.ended_at)
                if row.run_id != pk and meanwhile and opponent.side == "king" and opponent.model == row.model:
                    why = "" if opponent.key == row.king_fingerprint[:REPLACED_LENGTH] else _other(opponent, row)
                    found[row.pk].append(_challenge(pk, kind, at, verdict, won and not why, why))
    return found


def _challenge(pk: int, kind: str, at: datetime, verdict: Json, crowned: bool, why: str) -> ChallengeOut:
    return ChallengeOut(
        run=str(pk),
        kind=kind,
        at=at,
        challenger=verdict["challenger"]["model"],
        outcome=decision_of(verdict),
        margin=verdict["margin"],
        lcb=verdict["lcb"],
        reasons=verdict["reasons"],
        crowned=crowned,
        defence=not why and not crowned,
        why=why,
    )


def _other(opponent: Contestant, reign: Reign) -> str:
    if opponent.instructions != reign.king_instructions_hash:
        return f"no defence: the king had other instructions ({opponent.instructions[:12] or 'unknown'})"
    return "no defence: the king's model, address or parameters were others"


def _notes(project: Project, row: Reign) -> list[str]:
    """Return notes on the crowning verdict and on the king today."""
    notes = changes_since(project, row) if row.reigns else []
    if notes and "deleted" not in notes[0]:
        notes = [*notes, "A run against it now is no defence."]
    if row.run is None:
        return [*notes, "The run that crowned it was deleted."]
    for verdict in row.run.result.get("verdicts", ()):
        pair = pair_of(verdict) if verdict["challenger"] else None
        if pair is None or pair[0].key != row.fingerprint[:REPLACED_LENGTH] or pair[1].side != "king":
            continue
        if not verdict["accepted"]:
            notes = [*notes, f"Run {row.run_id} was worked on again and no longer accepts it."]
        elif turned := turned_by(row.run, pair):
            notes = [*notes, f"Run {turned.pk} scored the same duels again and does not accept it."]
    return notes
