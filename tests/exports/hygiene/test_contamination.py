"""Contamination of an export: samples that contain a held-out row of an upload or of an earlier export."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from curation.evaluations.models import Split, SplitRow, SplitRowText
from curation.exports.formats import FORMATS
from curation.exports.models import Export
from curation.exports.pages.preview import preview
from curation.exports.recipes.recipe import Recipe
from curation.projects.models import Project
from curation.runs.launch import launch
from curation.samples.models import Sample
from curation.trajectories.models import TrajectoryText
from curation.web.problems import Invalid
from tests.evaluations.conftest import server  # noqa: F401 - a fixture
from tests.evaluations.evaluating import at_server
from tests.exports.exporting import (
    OF_ANSWERS,
    answer,
    content,
    drive_export,
    export_of,
    make_approved,
    make_kept,
    make_pair,
    rows,
    run_export,
)
from tests.factories import make_member, make_project, make_scenario, make_trajectory, make_user, set_history, ticket
from tests.model_server import ModelServer
from tests.sampled import one_of

pytestmark = pytest.mark.django_db(transaction=True)
SFT = {"formats": ["sft-messages"]}


def make_turn(project: Project, history: list[dict[str, Any]] | str, text: str = "", **values: Any) -> Sample:
    sample = make_approved(project, challenger=text or answer(len(str(history))), **values)
    messages = [{"role": "user", "content": history}] if isinstance(history, str) else history
    set_history(sample.duel.prompt, messages)
    return sample


def make_split(project: Project, *given: tuple[str, str], task_id: str = "") -> Split:
    """A held-out set of prompts and answers, as an import of evaluation rows stores it."""
    split = Split.objects.create(project=project, name="held out.jsonl", rows_count=len(given))
    for number, (prompt, expected) in enumerate(given):
        row = SplitRow.objects.create(split=split, number=number, task_id=task_id)
        SplitRowText.objects.create(row=row, messages=[{"role": "user", "content": prompt}], expected=expected)
    return split


def skipped_of(export: Export) -> dict[int, dict[str, Any]]:
    return {int(line["sample"]): line for line in rows(export, "excluded.jsonl")}


def test_a_row_of_an_uploaded_set_is_left_out_and_says_which_row_it_is() -> None:
    project = make_project()
    first = make_turn(project, "Fix the totals.", answer(1))
    clean = make_turn(project, "Fix the invoices.", answer(2))
    split = make_split(project, ("Nothing here.", "ls -l"), ("Fix the totals.", answer(1)))

    export = export_of(project, {**SFT, "held_out": [f"split/{split.pk}"]})

    line = skipped_of(export)[first.pk]
    assert (line["reason"], line["level"]) == ("contaminated", "exact")
    assert (line["held_out"], line["row"]) == (f"split/{split.pk}", 2)
    assert [line["sample"] for line in rows(export, "frozen.jsonl") if line["rows"]] == [str(clean.pk)]


@pytest.mark.parametrize(
    ("prompt", "expected", "level"),
    [
        ("Fix the total of 17 invoices.", "another answer", "prompt"),
        ("Fix the  total of 99 invoices.", "another answer", "near"),
        ("Fix the total of 17 invoices.\n\nThe files: a b c", answer(1), "task_answer"),
    ],
)
def test_what_counts_as_the_same(prompt: str, expected: str, level: str) -> None:
    project = make_project()
    sample = make_turn(project, "Fix the total of 17 invoices.", answer(1))
    split = make_split(project, (prompt, expected))

    export = export_of(project, {**SFT, "held_out": [f"split/{split.pk}"]})

    assert skipped_of(export)[sample.pk]["level"] == level


def test_a_held_out_row_in_the_middle_of_a_conversation_is_found() -> None:
    project = make_project()
    history = [
        {"role": "user", "content": "Fix the totals."},
        {"role": "assistant", "content": answer(1)},
        {"role": "user", "content": "Now the tests."},
    ]
    sample = make_turn(project, history, answer(2))
    split = make_split(project, ("Fix the totals.", answer(1)))

    assert set(skipped_of(export_of(project, {**SFT, "held_out": [f"split/{split.pk}"]}))) == {sample.pk}


QUESTION = "A farmer keeps 17 goats and sells four of them at the market on Monday. How many goats are left?"


@pytest.mark.parametrize("place", ["prompt", "answer", "rejected"])
def test_a_sample_that_contains_a_held_out_row_in_a_longer_text_is_left_out(client: Client, place: str) -> None:
    project = make_project()
    long = f"{ticket(7)}\n\n{QUESTION}\n\n{ticket(8)}"
    text, king = (long if place == name else answer(number) for number, name in enumerate(("answer", "rejected"), 1))
    sample = make_turn(project, long if place == "prompt" else "Fix the totals.", text, king=king)
    clean = make_turn(project, f"Fix the invoices. {ticket(4)}", answer(3), king=answer(5))
    split = make_split(project, ("Nothing here.", "ls -l"), (QUESTION, "It is 13."))

    export = export_of(project, {"formats": ["dpo"], "held_out": [f"split/{split.pk}"]})

    line = skipped_of(export)[sample.pk]
    assert (line["reason"], line["level"], line["row"]) == ("contaminated", "contained", 2)
    assert clean.pk not in skipped_of(export)
    client.force_login(make_member(project, role="curator"))
    page = client.get(f"/p/{project.slug}/exports/{export.pk}/contaminated/").content.decode()
    assert "The text that contains it" in page and QUESTION in page
    found = preview(project=project, recipe=Recipe.model_validate(export.recipe))
    assert found.counts["contamination"] == export.counts["contamination"]


def test_a_sample_whose_tools_repeat_a_held_out_row_leaves() -> None:
    project = make_project()
    samples = []
    for number, described in enumerate(
        [f"Solve a task, such as: {QUESTION} It is 13.", "Solve a task of any kind."] * 2
    ):
        function = {"name": "solve", "description": described, "parameters": {"type": "object", "properties": {}}}
        samples.append(make_turn(project, f"Say what is next in {ticket(number)}", answer(number)))
        prompt = samples[-1].duel.prompt
        set_history(prompt, [{"role": "user", "content": ticket(number)}], [{"type": "function", "function": function}])
    split = make_split(project, (QUESTION, "It is 13."))

    export = export_of(project, {**SFT, "held_out": [f"split/{split.pk}"]})

    assert set(skipped_of(export)) == {samples[0].pk, samples[2].pk}


def test_sessions_of_one_scaffold_are_not_contaminated_by_its_words() -> None:
    project = make_project()
    scaffold = "You are in a repository. Read the ticket below, change the files, and run all of the tests. " * 5
    samples = [make_turn(project, f"{scaffold}{ticket(number)}", answer(number)) for number in range(3)]
    split = make_split(project, *((f"{scaffold}{ticket(50 + number)}", answer(50 + number)) for number in range(3)))

    assert skipped_of(export_of(project, {**SFT, "held_out": [f"split/{split.pk}"]})) == {}
    assert len(samples) == 3


def test_counted_samples_are_exported_with_the_same_figures() -> None:
    project = make_project()
    sample = make_turn(project, "Fix the totals.", answer(1))
    split = make_split(project, ("Fix the totals.", answer(1)))
    recipe = {**SFT, "held_out": [f"split/{split.pk}"]}

    left_out, counted = export_of(project, recipe), export_of(project, {**recipe, "contaminated": "count"})

    assert [line["sample"] for line in rows(counted, "frozen.jsonl") if line["rows"]] == [str(sample.pk)]
    figures = [export.counts["contamination"] for export in (left_out, counted)]
    assert [one["left_out"] for one in figures] == [True, False]
    assert figures[0]["samples"] == figures[1]["samples"] == 1
    assert figures[0]["held_out"] == figures[1]["held_out"]
    assert figures[0]["held_out"][0]["rows"] == 1


@pytest.mark.parametrize("name", one_of(4, FORMATS))
def test_an_earlier_export_in_any_format_can_be_held_against(name: str) -> None:
    """The next export finds all rows of an earlier one, also with tools, masked values and sessions."""
    project = make_project()
    turn = make_turn(project, "Write to ada.lovelace@newmill.org about the totals.", answer(1), repo="acme/a")
    scenario = make_scenario(project)
    kept = make_kept(project, scenario)
    make_pair(
        kept, make_trajectory(project, scenario, outcome="wrong_terminal", commands=("ls /",), outputs=("bin\n",))
    )
    TrajectoryText.objects.filter(trajectory=kept).update(marks={"3": {"label": "correct"}})
    earlier = export_of(project, {"formats": [name]})
    given = {int(line["sample"]) for line in rows(earlier, "frozen.jsonl") if line["rows"]}
    assert (turn.pk in given) is (name in OF_ANSWERS) and (name in OF_ANSWERS or kept.sample_id in given)
    clean = make_turn(project, "Another task, which nobody held out.", answer(3))

    export = export_of(project, {**SFT, "held_out": [f"export/{earlier.pk}/train"]})

    left_out = {pk for pk, line in skipped_of(export).items() if line["reason"] == "contaminated"}
    assert given <= left_out
    assert clean.pk not in left_out


def test_the_val_split_of_an_earlier_export_stays_out_of_a_later_train_split() -> None:
    project = make_project()
    samples = {make_turn(project, f"Task {ticket(n)}.", answer(n), instance_id=f"i-{n}").pk for n in range(12)}
    earlier = export_of(project, {**SFT, "splits": {"train": 0.5, "val": 0.5}})
    splits = {int(line["sample"]): line["rows"][0]["split"] for line in rows(earlier, "frozen.jsonl")}
    val = {pk for pk, split in splits.items() if split == "val"}
    assert val and val != samples

    export = export_of(project, {**SFT, "held_out": [f"export/{earlier.pk}/val"]})

    assert set(skipped_of(export)) == val


def test_sessions_that_only_end_alike_are_not_contaminated() -> None:
    project = make_project()
    first = make_kept(project)
    second = make_kept(project, commands=("cat /etc/hosts",), outputs=("localhost\n",))
    split = make_split(project, (f"{first.text.turns[0]['text']}\n\nAnother task.", "exit"))

    export = export_of(project, {**SFT, "held_out": [f"split/{split.pk}"]})

    assert {int(line["sample"]) for line in rows(export, "frozen.jsonl") if line["rows"]} == {
        first.sample_id,
        second.sample_id,
    }


def test_a_clean_duplicate_of_a_contaminated_sample_leaves() -> None:
    project = make_project()
    contaminated = make_turn(project, "Fix the totals.", answer(1), score=99.0)
    clean = make_turn(project, "Repair something else in the shop.", answer(1), score=50.0)
    split = make_split(project, ("Fix the totals.", "another answer"))

    export = export_of(project, {**SFT, "held_out": [f"split/{split.pk}"]})

    assert skipped_of(export)[contaminated.pk]["reason"] == "contaminated"
    assert [line["sample"] for line in rows(export, "frozen.jsonl") if line["rows"]] == [str(clean.pk)]


def test_the_same_recipe_gives_the_same_bytes_and_says_what_it_was_compared_with() -> None:
    project = make_project()
    make_turn(project, "Fix the totals.", answer(1))
    make_turn(project, "Fix the invoices.", answer(2))
    split = make_split(project, ("Fix the totals.", answer(1)))
    recipe = {**SFT, "held_out": [f"split/{split.pk}"]}

    first, second = export_of(project, recipe), export_of(project, recipe)

    assert first.manifest_sha256 == second.manifest_sha256
    manifest = content(first, "manifest.json").decode()
    assert '"contaminated": 1' in manifest
    assert f'"name": "split/{split.pk}"' in manifest
    card = content(first, "README.md").decode()
    assert "1 sample contains a held-out row. Such samples are left out." in card
    SplitRowText.objects.update(expected="changed")
    assert export_of(project, recipe).counts["contamination"]["held_out"] != first.counts["contamination"]["held_out"]


def test_the_preview_the_page_and_the_api_show_the_matched_text() -> None:
    user = make_user()
    project = make_project(user=user)
    sample = make_turn(project, "Fix the totals.", answer(1))
    split = make_split(project, ("Fix the totals.", answer(1)))
    recipe = {**SFT, "held_out": [f"split/{split.pk}"]}
    found = preview(project=project, recipe=Recipe.model_validate(recipe))
    export = export_of(project, recipe, user=user)
    client = Client()
    client.force_login(user)

    assert found.counts["excluded"] == export.counts["excluded"] == {"contaminated": 1}
    assert found.counts["contamination"] == export.counts["contamination"]
    body = {"recipe": recipe}
    shown = client.post(f"/api/v1/projects/{project.slug}/exports/preview", body, "application/json").json()
    listed = client.get(f"/api/v1/exports/{export.pk}/contaminated").json()["data"]
    assert shown["contaminated"] == listed
    assert listed[0]["sample"] == str(sample.pk)
    assert (listed[0]["prompt"], listed[0]["answer"]) == ("user:\nFix the totals.", answer(1))
    page = client.get(f"/p/{project.slug}/exports/{export.pk}/contaminated/").content.decode()
    assert "Fix the totals." in page
    form = {"formats": "sft-messages", "train": "1", "seed": "0", "group_by": "auto", "sources": "duels"}
    form |= {"held_out": f"split/{split.pk}"}
    fragment = client.post(f"/p/{project.slug}/exports/preview/", form).content.decode()
    assert "1 sample contains a held-out row and is left out" in fragment
    assert "Fix the totals." in fragment


@pytest.mark.parametrize("name", ["split/999999", "export/999999/val", "upload/1", "split/", "export/1"])
def test_a_set_that_does_not_exist_is_refused_at_its_field(name: str) -> None:
    user = make_user()
    project = make_project(user=user)
    client = Client()
    client.force_login(user)
    make_member(project, make_user())

    answered = client.post(
        f"/api/v1/projects/{project.slug}/exports", {"recipe": {**SFT, "held_out": [name]}}, "application/json"
    )

    assert answered.status_code == 422
    assert "held_out" in answered.json()["errors"][0]["path"]


def test_a_set_of_another_project_is_refused() -> None:
    other = make_split(make_project(), ("a", "b"))
    with pytest.raises(Invalid):
        launch(
            project=make_project(),
            kind="export",
            params={"recipe": {**SFT, "held_out": [f"split/{other.pk}"]}},
            user=None,
        )


def test_a_set_that_is_deleted_before_the_export_is_written_fails_the_run_with_its_reason() -> None:
    project = make_project()
    make_turn(project, "Fix the totals.", answer(1))
    split = make_split(project, ("a", "b"))
    recipe = {**SFT, "held_out": [f"split/{split.pk}"]}
    run = launch(project=project, kind="export", params={"recipe": recipe}, user=None)
    Split.objects.all().delete()

    export = drive_export(run)

    assert not export.ready
    assert f"split '{split.pk}'" in str(run.items.filter(state="failed").values_list("reason", flat=True)[0])


def test_a_sample_of_the_same_instance_as_a_held_out_row_is_named_by_its_origin() -> None:
    project = make_project()
    same = make_turn(project, "Look at the logs.", answer(1), instance_id="acme-1", repo="acme/a")
    clean = make_turn(project, "Paint the fence.", answer(2), instance_id="acme-2", repo="acme/b")
    split = make_split(project, ("Something else entirely.", "ls -l /srv/other"))
    SplitRowText.objects.filter(row__split=split).update(fields={"instance_id": "acme-1"})

    export = export_of(project, {**SFT, "held_out": [f"split/{split.pk}"]})

    assert {pk: line["level"] for pk, line in skipped_of(export).items()} == {same.pk: "origin"}
    assert clean.pk not in skipped_of(export)


def test_the_page_and_the_api_call_a_held_out_set_by_its_name_and_count_kinds(client: Client) -> None:
    project = make_project()
    make_turn(project, "Fix the totals.", answer(1))
    split = make_split(project, ("Fix the totals.", answer(1)), ("3 + 4 = ?", "7"))
    export = export_of(project, {**SFT, "held_out": [f"split/{split.pk}"]})
    client.force_login(make_member(project, role="curator"))

    listed = client.get(f"/api/v1/exports/{export.pk}/contaminated").json()["data"]
    assert (listed[0]["held_out"], listed[0]["label"]) == (f"split/{split.pk}", "split held out.jsonl")
    page = client.get(f"/p/{project.slug}/exports/{export.pk}/contaminated/").content.decode()
    assert "row 1 of split held out.jsonl" in page and f"split/{split.pk}" not in page
    counts = client.get(f"/p/{project.slug}/exports/{export.pk}/").content.decode()
    assert "prompt and answer, word for word: 1" in counts and "Paraphrases were not looked for." in counts
    assert export.counts["contamination"]["held_out"][0]["whole_only"] == 1
    assert "1 row was compared as a whole row only" in counts
    assert "1 row was compared as a whole row only" in content(export, "README.md").decode()


def test_paraphrases_of_held_out_rows_are_left_out_by_recorded_embeddings(server: ModelServer) -> None:  # noqa: F811
    project = make_project()
    german = make_turn(project, "Sieh dir die Eimer an.", answer(1))
    clean = make_turn(project, "Paint the old fence.", answer(2))
    split = make_split(project, ("Look at the buckets.", "aws s3 ls"))
    server.behave("embedder", replies={"Look at the buckets.": "buckets", "Sieh dir die Eimer an.": "buckets"})
    at_server(project, server, "embedder")
    recipe = {**SFT, "held_out": [f"split/{split.pk}"]}
    without = export_of(project, recipe)
    assert skipped_of(without) == {}
    assert "paraphrase" not in without.counts["contamination"]["levels"]
    card = content(without, "README.md").decode()
    assert "Paraphrases were not looked for." in card and "in other words or in another language: 0" not in card
    project.settings_json = {"evaluation": {"embedding": "embedder"}}
    project.save()

    export = run_export(project, recipe)

    assert {pk: line["level"] for pk, line in skipped_of(export).items()} == {german.pk: "paraphrase"}
    assert clean.pk not in skipped_of(export)
    found = export.counts["contamination"]
    assert (found["levels"]["paraphrase"], found["embedded"], found["not_embedded"]) == (1, 3, 0)
    assert "Paraphrases were looked for in 3 tasks." in content(export, "README.md").decode()
    assert run_export(project, SFT).run.calls == 0, "nothing is held out"


def test_a_preview_reads_a_held_out_set_once(monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project()
    for number in range(5):
        make_turn(project, f"Task {ticket(number)}.", answer(number))
    split = make_split(project, ("Nothing here.", "ls -l"))
    monkeypatch.setattr("curation.exports.pages.preview.CHUNK", 2)
    with CaptureQueriesContext(connection) as queries:
        preview(project=project, recipe=Recipe.model_validate({**SFT, "held_out": [f"split/{split.pk}"]}))
    assert sum('FROM "evaluations_splitrow"' in query["sql"] for query in queries) == 1
