"""A cascade asks the full panel only where the first judge is unsure, and promises how few duels that changes."""

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from curation.llm.client.completion import CompletionRequest
from curation.projects.models import Role
from curation.runs.models import ItemState, Run
from curation.samples.models import Sample
from curation.web.problems import Problem
from tests.duels.running import Models, Says, against, fair, make_arena, run_to_end, scores_of, serve, start
from tests.factories import make_member, make_user
from tests.world import world

pytestmark = pytest.mark.django_db(transaction=True)
DUELS, DRAWN = 40, 20
# 7 duels without a difference prove at most 30 % with 90 % confidence, a few more in a small set.
LOOSE = {"size": DRAWN, "alpha": 0.3, "delta": 0.1}


def number_of(request: CompletionRequest) -> int:
    """The number of the duel's task, which its history names."""
    return int(str(request.messages[-1]["content"]).split("Fix rounding error ")[1].split(".")[0])


def unsure_of_some(request: CompletionRequest) -> Says:
    """The first judge: clear in three of four duels, where the challenger wins all, and a draw in the others."""
    return fair(won=5 if number_of(request) % 4 else 0)(request)


@world
def arena(patched: pytest.MonkeyPatch) -> Any:
    """Answers of 40 duels, which nobody has judged."""
    serve(patched)
    project, _ = make_arena(prompts=DUELS, judges=("judge-a", "judge-b"))
    for kind, model in (("king", "king"), ("challenger", "challenger")):
        run_to_end(project, kind, model=model)
    return project


def cascade(arena: Any, **params: Any) -> Run:
    return run_to_end(arena, "cascade", **{"model": "judge-a", "seed": 7, **LOOSE, **params})


def test_the_panel_reads_the_random_part_and_the_unsure_duels(arena: Any, models: Models) -> None:
    """The panel agrees where the first judge is clear, and sees a winner where that sees a draw."""
    models.says |= {"judge-a": unsure_of_some, "judge-b": fair()}
    run = cascade(arena)
    result = run.result
    assert (result["duels"], result["drawn"], result["judge"]) == (DUELS, DRAWN, "judge-a")
    alone = result["proven"]["duels"]
    assert 0 < alone < DUELS * 3 / 4
    # Two calls a duel, of those that the first judge did not decide alone.
    assert len(models.requests("judge-b")) == 2 * (DUELS - alone)
    assert result["calls_saved"] == 2 * alone == run.items.filter(state=ItemState.SKIPPED).count()
    assert f"at most 30.0 % of the {alone} duels that judge-a decided alone" in result["promise"]
    # Every duel has a score, and equal rules made it.
    assert len(scores_of(run)) == DUELS and len({score.panel_id for score in scores_of(run)}) == 1
    assert all(score.score is not None for score in scores_of(run))
    assert Sample.objects.filter(score=None).count() == 0


def test_the_promise_counts_duels_that_the_panel_decides_otherwise(arena: Any, models: Models) -> None:
    """A first judge that the others contradict decides nothing alone, and the panel reads every duel."""
    models.says |= {"judge-a": fair(), "judge-b": against}
    run = cascade(arena)
    assert (run.result["proven"], run.result["promise"], run.result["differ"]) == (None, "", DRAWN)
    assert (run.result["calls_saved"], len(models.requests("judge-b"))) == (0, 2 * DUELS)


def test_an_unsure_duel_without_the_panel_has_no_score(arena: Any, models: Models) -> None:
    models.says |= {"judge-a": unsure_of_some, "judge-b": lambda request: "no verdict"}
    run = cascade(arena)
    assert run.result["proven"] is None and {score.score for score in scores_of(run)} == {None}


def test_what_it_saved_is_priced_by_the_verdicts_of_the_run(arena: Any, models: Models) -> None:
    arena.endpoints.filter(name="judge-b").update(price_in=Decimal(10), price_out=Decimal(0))
    models.says |= {"judge-a": fair(), "judge-b": fair()}
    result = cascade(arena).result
    # 100 tokens a call at $10 for a million of them.
    assert Decimal(result["cost_saved"]) == Decimal("0.001") * result["calls_saved"] > 0


def test_the_run_shows_the_promise_and_the_cost(client: Client, arena: Any, models: Models) -> None:
    models.says |= {"judge-a": unsure_of_some, "judge-b": fair()}
    arena.endpoints.filter(name="judge-b").update(price_in=Decimal(10), price_out=Decimal(0))
    run = cascade(arena)
    client.force_login(make_member(arena, make_user(), Role.CURATOR))
    page = client.get(f"/p/{arena.slug}/runs/{run.pk}/").content.decode()
    assert run.result["promise"] in page and f"{run.result['calls_saved']}, about $" in page


@pytest.mark.parametrize(
    ("params", "path", "words"),
    [
        ({"judges": ["judge-a"]}, "params.judges", "at least one more"),
        ({"size": 5}, "params.size", "7 duels"),
        ({"model": "nobody"}, "params.model", "unknown"),
    ],
)
def test_a_cascade_that_could_prove_nothing_is_refused(
    arena: Any, models: Models, params: dict[str, Any], path: str, words: str
) -> None:
    with pytest.raises(Problem) as refused:
        start(arena, "cascade", **{"model": "judge-a", **LOOSE, **params})
    [error] = refused.value.errors
    assert error.path == path and words in error.message
