"""Duplicates and caps of an export: the skipped samples, those kept in their place, and the preview's figures."""

from typing import Any

import pytest
from django.test import Client

from curation.exports.models import Export, FrozenRow, SampleSignature
from curation.exports.pages.preview import preview
from curation.exports.recipes.recipe import Recipe
from curation.projects.models import Project
from curation.review.models import Pick
from curation.samples.models import Flag, Sample
from tests.exports.exporting import answer, approve, export_of, make_approved, make_kept, reasons, revise, rows
from tests.factories import (
    CHALLENGER,
    make_duel,
    make_member,
    make_project,
    make_scenario,
    make_user,
    set_history,
    ticket,
)

pytestmark = pytest.mark.django_db(transaction=True)
SFT = {"formats": ["sft-messages"]}


def make_turn(project: Project, history: str, *, text: str = CHALLENGER, score: float = 80.0, **values: Any) -> Sample:
    sample = make_approved(project, score=score, challenger=text, **values)
    set_history(sample.duel.prompt, [{"role": "user", "content": history}])
    return sample


def exported(project: Project, **recipe: Any) -> tuple[set[int], dict[str, dict[str, Any]]]:
    """Return the samples with rows and the skipped ones, which the preview must count alike."""
    export = export_of(project, {**SFT, **recipe})
    found = preview(project=project, recipe=Recipe.model_validate({**SFT, **recipe}))
    assert found.counts["excluded"] == export.counts["excluded"]
    assert found.counts["rows"] == export.counts["rows"]
    kept = {int(line["sample"]) for line in rows(export, "frozen.jsonl") if line["rows"]}
    return kept, {line["sample"]: line for line in rows(export, "excluded.jsonl")}


def test_the_same_row_under_two_ids_leaves_once_and_names_the_one_that_left() -> None:
    project = make_project()
    worse = make_turn(project, "Fix the totals.", score=60.0, instance_id="acme__a-1", repo="acme/a")
    better = make_turn(project, "Fix the  totals.", score=90.0, instance_id="acme__b-2", repo="acme/b")
    other = make_turn(project, "Fix the invoices.")

    kept, skipped = exported(project, near_duplicates=None)

    assert kept == {better.pk, other.pk}
    assert skipped[str(worse.pk)]["reason"] == "duplicate"
    assert skipped[str(worse.pk)]["of"] == str(better.pk)


def test_one_approved_answer_judged_in_two_modes_leaves_once() -> None:
    project = make_project()
    first = make_approved(project)
    second = make_duel(project).sample
    assert second is not None
    second.duel.prompt, second.duel.king = first.duel.prompt, None
    second.duel.save()
    approve(second, by=make_user())

    kept, _ = exported(project)

    assert kept == {first.pk}


def test_a_turn_against_king_and_reference_leaves_once_whichever_answers_are_kept() -> None:
    project = make_project()
    first = make_approved(project, pick=Pick.KING)
    second = make_duel(project).sample
    assert second is not None
    duel = second.duel
    duel.prompt, duel.challenger, duel.king, duel.opponent = first.duel.prompt, first.duel.challenger, None, "reference"
    duel.save()
    approve(second, by=make_user())
    other = make_turn(project, "Fix the invoices.", text=answer(1))

    kept, skipped = exported(project)

    assert kept == {first.pk, other.pk}
    assert (skipped[str(second.pk)]["reason"], skipped[str(second.pk)]["of"]) == ("duplicate", str(first.pk))


def test_a_near_duplicate_leaves_once_unless_the_recipe_keeps_it() -> None:
    project = make_project()
    first = make_turn(project, "One task.", text=answer(1))
    second = make_turn(project, "One task.", text=answer(1).replace("\n\n", " indeed\n\n"))
    different = make_turn(project, "One task.", text=answer(2))

    assert exported(project)[0] == {first.pk, different.pk}
    assert exported(project, near_duplicates=None)[0] == {first.pk, second.pk, different.pk}


def test_turns_of_one_trajectory_are_no_duplicates_by_their_common_history() -> None:
    project = make_project()
    samples = [make_approved(project, challenger=answer(number)) for number in range(4)]
    long = [{"role": "user", "content": ticket(99) * 20}]
    for number, sample in enumerate(samples):
        turn = [{"role": "assistant", "content": "ls"}, {"role": "user", "content": ticket(number)}]
        set_history(sample.duel.prompt, [*long, *turn])

    assert exported(project)[0] == {sample.pk for sample in samples}


def test_the_one_that_is_kept_is_one_that_can_leave() -> None:
    project = make_project()
    leak = make_turn(project, "Fix the totals.", score=99.0, flags=Flag.LEAK)
    long = make_turn(project, "Fix the totals.", score=95.0)
    Sample.objects.filter(pk=leak.pk).update(flags=Flag.LEAK, leak_cleared=False)
    prompt = long.duel.prompt
    set_history(prompt, [{"role": "system", "content": " " * 4000}, *prompt.text.history])
    fits = make_turn(project, "Fix the totals.", score=50.0)

    kept, skipped = exported(project, max_tokens=500)

    assert kept == {fits.pk}
    assert skipped[str(leak.pk)]["reason"] == "leak"
    assert skipped[str(long.pk)]["reason"] == "too_long"


def test_a_rollout_that_was_repeated_leaves_once() -> None:
    project = make_project()
    scenario = make_scenario(project)
    first, second = (make_kept(project, scenario, outputs=(f"at {clock}\n",)) for clock in ("10:00", "10:01"))
    other = make_kept(project, scenario, commands=("cat /etc/hosts",), outputs=("127.0.0.1 localhost\n",))

    assert exported(project)[0] == {first.sample_id, other.sample_id}


def test_a_new_approved_text_is_compared_again() -> None:
    project, user = make_project(), make_user()
    first = make_turn(project, "Fix the totals.")
    second = make_turn(project, "Fix the totals.")
    assert exported(project)[0] == {first.pk}
    signatures = set(SampleSignature.objects.values_list("text_sha256", flat=True))

    revise(second, answer(5), by=user)
    approve(second, by=user)

    assert exported(project)[0] == {first.pk, second.pk}
    assert set(SampleSignature.objects.values_list("text_sha256", flat=True)) != signatures


def test_caps_leave_the_best_of_each_value() -> None:
    project = make_project()
    samples = [make_approved(project, repo="acme/x", score=float(score)) for score in (10, 90, 50)]
    single = make_approved(project, repo="acme/y", score=1.0)
    key = "AKIA" + "Q3EGRDXV7PLMN5TA"  # takes no place
    secret = make_approved(project, repo="acme/x", score=95.0, challenger=f"THOUGHT: {key}\n\n```bash\nls\n```")

    kept, skipped = exported(project, caps={"repo": 2})

    assert kept == {samples[1].pk, samples[2].pk, single.pk}
    assert (skipped[str(samples[0].pk)]["reason"], skipped[str(samples[0].pk)]["cap"]) == ("over_cap", "repo")
    assert skipped[str(secret.pk)]["reason"] == "secret"


def test_no_repository_is_in_two_splits_where_the_shares_allow_it() -> None:
    project = make_project()
    for number in range(60):
        make_approved(project, repo=f"acme/r{number % 20}", instance_id=f"acme__r{number % 20}-{number}")
    export = export_of(project, {**SFT, "splits": {"train": 0.5, "test_set": 0.5}, "seed": 3})

    splits: dict[str, set[str]] = {}
    for line in rows(export, "frozen.jsonl"):
        splits.setdefault(Sample.objects.get(pk=line["sample"]).repo, set()).add(line["rows"][0]["split"])
    assert export.counts["groups"] == {"group_by": "repo", "groups": 20}
    assert all(len(found) == 1 for found in splits.values())
    assert set().union(*splits.values()) == {"train", "test_set"}


def test_reasons_are_those_of_the_export_once_it_is_resumed() -> None:
    """The same frozen rows give the same plan."""
    project = make_project()
    for _ in range(2):
        make_turn(project, "Fix the totals.")
    first, second = (export_of(project, SFT) for _ in range(2))

    assert reasons(first) == reasons(second)
    assert first.manifest_sha256 == second.manifest_sha256


def test_groups_of_duplicates_can_be_opened() -> None:
    project = make_project()
    worse, better = (make_turn(project, "Fix the totals.", score=score) for score in (60.0, 90.0))
    export = export_of(project, SFT)
    client = Client()
    client.force_login(make_member(project, role="viewer"))
    url = f"/p/{project.slug}/exports/{export.pk}/duplicates/"

    assert f'href="{url}"' in client.get(f"/p/{project.slug}/exports/{export.pk}/").content.decode()
    page = client.get(url).content.decode()
    assert page.index(f"/samples/{better.pk}/") < page.index(f"/samples/{worse.pk}/")
    found = client.get(f"/api/v1/exports/{export.pk}/duplicates").json()
    assert found["data"] == [{"sample": str(worse.pk), "kept": str(better.pk)}]


@pytest.mark.parametrize("metadata", [False, True])
def test_an_answer_that_lost_to_several_is_one_row_of_kto_in_one_split(metadata: bool) -> None:
    project = make_project()
    turns = [
        make_turn(project, "Fix it.", text=answer(number), king="I delete the tests.", instance_id=f"acme__a-{number}")
        for number in range(6)
    ]
    recipe = {"formats": ["kto", "dpo"], "splits": {"train": 0.5, "val": 0.5}, "near_duplicates": None}

    kept, skipped = exported(project, **recipe, metadata=metadata)

    assert kept == {turn.pk for turn in turns}
    assert sorted(skipped) == sorted(str(turn.pk) for turn in turns[1:])
    assert {(line["reason"], *line["formats"]) for line in skipped.values()} == {("repeated", "kto")}
    files = Export.objects.get()
    labels = [row["label"] for split in ("train", "val") for row in rows(files, f"kto.{split}.jsonl")]
    assert (labels.count(False), labels.count(True)) == (1, 6)
    assert sum(len(rows(files, f"dpo.{split}.jsonl")) for split in ("train", "val")) == 6


def test_pairs_that_prefer_the_same_two_answers_the_other_way_round_are_both_skipped() -> None:
    project = make_project()
    first = make_turn(project, "Fix it.", text=answer(1), king=answer(2), instance_id="acme__a-1")
    second = make_turn(project, "Fix it.", text=answer(2) + "\n", king=answer(1).upper(), instance_id="acme__b-2")
    make_turn(project, "Fix that.", text=answer(2), king=answer(1), instance_id="acme__c-3")

    _, skipped = exported(project, formats=["dpo", "openai-preference", "kto"], near_duplicates=None)

    assert {pk: (line["reason"], set(line["formats"])) for pk, line in skipped.items()} == {
        str(turn.pk): ("contradicted", {"dpo", "openai-preference", "kto"}) for turn in (first, second)
    }
    files = Export.objects.get()
    assert [row["prompt"][0]["content"] for row in rows(files, "dpo.train.jsonl")] == ["Fix that."]
    assert [row["label"] for row in rows(files, "kto.train.jsonl")] == [True, True, True, False]


@pytest.mark.parametrize("is_approved_first", [True, False])
def test_an_answer_that_one_sample_approves_is_not_to_be_avoided_in_kto(is_approved_first: bool) -> None:
    project = make_project()
    turns = [(answer(1), answer(2)), (answer(2), answer(3))]
    for text, king in turns if is_approved_first else reversed(turns):
        make_turn(project, "Fix it.", text=text, king=king)

    _, skipped = exported(project, formats=["dpo", "kto"], near_duplicates=None)

    assert {(line["reason"], *line["formats"]) for line in skipped.values()} == {("contradicted", "kto")}
    files = Export.objects.get()
    labels = {row["completion"][0]["content"]: row["label"] for row in rows(files, "kto.train.jsonl")}
    assert labels == {answer(1): True, answer(2): True, answer(3): False}
    assert len(rows(files, "dpo.train.jsonl")) == 2


def make_modes(project: Project, *, score: float = 90.0) -> tuple[Sample, Sample]:
    """One turn against a king and against the reference; each sample prefers the answer that the other one rejects."""
    king, challenger = answer(1), answer(2)
    first = make_turn(project, "Fix it.", text=challenger, king=king, pick=Pick.KING)
    second = make_duel(project, score=score).sample
    assert second is not None
    duel = second.duel
    duel.prompt, duel.challenger, duel.king, duel.opponent = first.duel.prompt, first.duel.challenger, None, "reference"
    duel.save()
    text = first.duel.prompt.text
    text.reference = {"role": "assistant", "content": king}
    text.save()
    approve(second, by=make_user())
    return first, second


@pytest.mark.parametrize("score", [60.0, 95.0])
def test_one_turn_that_two_people_decide_the_other_way_round_is_contradicted_not_a_duplicate(score: float) -> None:
    project = make_project()
    turns = make_modes(project, score=score)
    other = make_turn(project, "Fix the invoices.", text=answer(3), king=answer(4))

    kept, skipped = exported(project, formats=["dpo"])

    assert kept == {other.pk}
    assert {pk: line["reason"] for pk, line in skipped.items()} == {str(turn.pk): "contradicted" for turn in turns}
    assert not FrozenRow.objects.filter(duplicate_of__isnull=False).exists()


def test_of_one_turn_that_is_contradicted_one_answer_is_learned_alone() -> None:
    project = make_project()
    turns = make_modes(project)

    kept, skipped = exported(project, formats=["dpo", "sft-messages"])

    assert len(kept) == 1
    export = Export.objects.get()
    assert len(rows(export, "sft-messages.train.jsonl")) == 1
    assert not export.files.filter(name="dpo.train.jsonl").exists()
    found = {(line["reason"], *line["formats"]) for line in rows(export, "excluded.jsonl")}
    assert found == {("contradicted", "dpo"), ("duplicate", "sft-messages")}
    assert set(skipped) == {str(turn.pk) for turn in turns}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_near_duplicate_that_does_not_leave_still_contradicts_its_opposite(is_first: bool) -> None:
    project = make_project()
    approved, nearly = answer(1), answer(1).replace("ls", "ls .")

    def opposite() -> Sample:
        return make_turn(project, "Fix it.", text=answer(2), king=nearly)

    before = [opposite()] if is_first else []
    best = make_turn(project, "Fix it.", text=approved, king=answer(3), score=90.0)
    worse = make_turn(project, "Fix it.", text=nearly, king=answer(2), score=60.0)
    contradicted = {str(turn.pk) for turn in (worse, *(before or [opposite()]))}

    kept, skipped = exported(project, formats=["dpo"])

    assert kept == {best.pk}
    assert {pk: line["reason"] for pk, line in skipped.items()} == dict.fromkeys(contradicted, "contradicted")
