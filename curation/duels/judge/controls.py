"""Control duels: duels whose outcome is known, mixed in among a run's own without a mark."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from zlib import crc32

from django.db.models import Q, QuerySet

from curation.duels.models import Answer, Duel, Opponent
from curation.samples.models import SampleStatus
from curation.web.ids import IdList
from judging.messages import content_of
from judging.planted_faults import ControlKind, faults_in_turn, with_bribe

OUTCOME_OF_PICK = {"opponent": -1, "candidate": 1, "draw": 0}  # curation.review.models.Pick
# Where several people decide, their votes count when the sample is settled: a figure tells nobody before.
SETTLED_VOTES = Q(sample__decisions__settles=True) | ~Q(sample__status=SampleStatus.PENDING)
MOST_DECISIONS = 2000
ROUND = (ControlKind.FAULT, ControlKind.SAME, ControlKind.BRIBE, ControlKind.PEOPLE)


def sides_of(duel: Duel) -> tuple[str, str]:
    """Return the texts of the opponent and of the challenger as judges read them."""
    own = duel.challenger.text.text
    if duel.planted:
        return (duel.planted, own) if duel.expected == 1 else (own, duel.planted)
    return (own if duel.control == ControlKind.SAME else duel.opponent_text), own


def mix_in(duels: Sequence[int], controls: Sequence[int]) -> Iterator[int]:
    """Yield the duels in their order, with the controls spread evenly among them."""
    places: dict[int, list[int]] = {}
    for number, control in enumerate(controls):
        places.setdefault((2 * number + 1) * len(duels) // (2 * len(controls)), []).append(control)
    for place, duel in enumerate(duels):
        yield from places.get(place, ())
        yield duel


def create_controls(duels: Sequence[int], wanted: int) -> list[int]:
    """Return the ids of `wanted` control duels about these duels' prompts, fewer if answers do not suffice.

    They depend on the duels alone: a later run with the same duels has the same controls, whose verdicts it reuses.
    """
    if not wanted:
        return []
    chosen = [
        duels[number * len(duels) // wanted] if wanted <= len(duels) else duels[number % len(duels)]
        for number in range(wanted)
    ]
    found = Duel.objects.all().with_histories().in_bulk(set(chosen))
    decided = _decided(duels)
    made: dict[tuple[int, str], Duel] = {}
    planted = 0
    for number, pk in enumerate(chosen):
        duel = found[pk]
        second = number % 2 if wanted <= len(duels) else number // len(duels) + number
        answer = duel.king if duel.king is not None and second % 2 else duel.challenger
        # An answer that has a second control has one of another kind.
        kind = ROUND[(number % len(duels) + number // len(duels)) % len(ROUND)]
        control = _control(duel, answer, kind, decided)
        if control.planted:
            # Both sides lose as often, or a judge that always prefers one would look right.
            control.expected = 1 if planted % 2 else -1
            planted += 1
        made.setdefault((control.challenger_id, control.control), control)
    Duel.everything.bulk_create(made.values(), ignore_conflicts=True)
    rows = Duel.everything.exclude(control="").filter(challenger__in=IdList([challenger for challenger, _ in made]))
    ids = {(challenger, kind): pk for challenger, kind, pk in rows.values_list("challenger_id", "control", "pk")}
    return [ids[key] for key in made]


def choices_of_people(duels: QuerySet[Duel], most: int | None = None) -> dict[int, int]:
    """Return 1 for the challenger, -1 for its opponent, 0 for a draw, by duel with preferences that were not undone, of
    which most reviewers say the same. `most` limits the preferences that are read."""
    rows = duels.filter(
        SETTLED_VOTES,
        sample__decisions__undone_by=None,
        sample__decisions__pick__in=OUTCOME_OF_PICK,
        # An approval without a preference keeps the challenger's answer, which says nothing about the king's.
        sample__decisions__preference__gt="",
    )
    votes: dict[int, int] = defaultdict(int)
    for pk, pick in rows.order_by("pk").values_list("pk", "sample__decisions__pick")[:most]:
        votes[pk] += OUTCOME_OF_PICK[pick]
    return {pk: (vote > 0) - (vote < 0) for pk, vote in votes.items()}


def _control(duel: Duel, answer: Answer, kind: ControlKind, decided: list[tuple[Duel, int]]) -> Duel:
    """Return a control of this kind, or of the next that can be made: the same answer twice always can."""
    if kind == ControlKind.PEOPLE and decided:
        known, outcome = decided.pop(0)
        return Duel(
            project_id=known.project_id,
            prompt_id=known.prompt_id,
            opponent=known.opponent,
            king_id=known.king_id,
            challenger_id=known.challenger_id,
            control=ControlKind.PEOPLE,
            expected=outcome,
        )
    control = Duel(
        project_id=duel.project_id,
        prompt_id=duel.prompt_id,
        opponent=duel.opponent,
        challenger=answer,
        control=ControlKind.SAME,
        expected=0,
    )
    if kind != ControlKind.SAME:
        history = "\n".join(content_of(message) for message in duel.prompt.text.history)
        # Of the texts, not of a row's number: the same turns in another project have the same faults.
        seed = crc32(f"{history}\n{answer.text.text}".encode())
        if kind == ControlKind.BRIBE:
            control.control, control.planted = ControlKind.BRIBE, with_bribe(answer.text.text, seed=seed)
        elif planted := faults_in_turn(answer.text.text, history=history, seed=seed):
            control.control, control.planted = ControlKind.FAULT, planted[1]
    return control


def _decided(duels: Sequence[int]) -> list[tuple[Duel, int]]:
    """Return duels of the same project that people have decided, each with its outcome."""
    project = Duel.objects.filter(pk=duels[0]).values("project")
    rows = Duel.objects.filter(project__in=project, opponent=Opponent.KING)
    outcomes = choices_of_people(rows, MOST_DECISIONS)
    return [(duel, outcomes[duel.pk]) for duel in Duel.objects.filter(pk__in=IdList(list(outcomes)))]
