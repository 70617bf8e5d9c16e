"""The rows of a split that are in training data, with the matching text."""

import pytest
from django.test import Client

from curation.evaluations.contamination.kind import ContaminationRun
from curation.evaluations.models import ContaminatedRow, ContaminationCheck, Split
from curation.evaluations.screen.figures import figures_of
from curation.runs.launch import launch
from curation.web.problems import Invalid
from tests.driving import end
from tests.evaluations.evaluating import (
    at_server,
    check,
    evaluate,
    make_rows,
    make_split,
    page,
    published,
    signed_in,
    upload,
)
from tests.exports.exporting import make_approved, run_export
from tests.factories import HISTORY, make_project, set_history
from tests.model_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_the_published_split_is_in_its_training_data() -> None:
    project = make_project()
    split = make_split(project, published("val"))
    run = check(project, split, upload=upload(project, published("train"), "train.jsonl"))
    assert run.state == "succeeded", run.error
    counts = run.result
    assert (counts["rows"], counts["training_rows"], counts["contaminated"]) == (150, 1500, 150)
    assert (counts["exact"], counts["near"], counts["task_answer"]) == (0, 147, 150)
    found = ContaminatedRow.objects.get(row__split=split, row__number=0)
    match = next(match for match in found.matches if "near" in match["levels"])
    own = found.row.text.messages[-1]["content"]
    assert own not in match["prompt"] and "List all Route 53 hosted zones" in match["prompt"]
    assert match["answer"] == "aws route53 list-hosted-zones" == found.row.text.expected


def test_rows_match_by_text_if_the_training_data_has_no_ids() -> None:
    project = make_project()
    rows = make_rows(3)
    split = make_split(project, rows)
    bare = [{"messages": row["messages"]} for row in rows[:1]]
    assert check(project, split, upload=upload(project, bare)).result["exact"] == 1
    preference = {"prompt": rows[1]["messages"][:1], "chosen": rows[1]["messages"][1:], "rejected": []}
    run = check(project, split, upload=upload(project, [preference]))
    assert run.result["exact"] == 1
    assert ContaminationCheck.objects.newest(split) == ContaminationCheck.objects.get(run=run)


def test_volatile_lines_are_a_setting() -> None:
    project = make_project()
    rows = make_rows(1)
    split = make_split(project, rows)
    other = [
        {
            "messages": [
                {"role": "user", "content": "Mood: x\n" + rows[0]["messages"][0]["content"]},
                {"role": "assistant", "content": "aws x y"},
            ]
        }
    ]
    assert check(project, split, upload=upload(project, other)).result["near"] == 0
    project.settings_json = {"evaluation": {"volatile": ["mood", "last reward"]}}
    project.save()
    assert check(project, split, upload=upload(project, other)).result["near"] == 1


def test_clean_and_contaminated_rows_have_separate_scores(server: ModelServer) -> None:
    project = make_project()
    rows = make_rows(4)
    split = make_split(project, rows)
    memory = {row["messages"][0]["content"]: row["messages"][1]["content"] for row in rows[:2]}
    server.behave("parrot", text="I do not know.", replies=memory)
    at_server(project, server, "parrot")
    evaluation = evaluate(project, split, ["parrot"])
    assert figures_of(evaluation, ContaminationCheck.objects.newest(split)).clean is None
    check(project, split, upload=upload(project, rows[:2]))
    figures = figures_of(evaluation, ContaminationCheck.objects.newest(split))
    assert figures.clean is not None and figures.contaminated is not None
    assert [(row["n"], row["exact"]) for row in figures.clean] == [(2, 0.0)]
    assert [(row["n"], row["exact"]) for row in figures.contaminated] == [(2, 1.0)]


def test_a_split_of_an_export_is_compared_with_its_train_files() -> None:
    project = make_project()
    for number in range(12):
        sample = make_approved(
            project, instance_id=f"acme__billing-{number}", challenger=f"THOUGHT: {number}\n\n```bash\nls {number}\n```"
        )
        set_history(sample.duel.prompt, HISTORY)
    recipe = {"formats": ["sft-messages"], "splits": {"train": 0.5, "val": 0.5}, "near_duplicates": None}
    export = run_export(project, recipe)
    run = end(launch(project=project, kind="split", params={"export": str(export.pk), "split": "val"}, user=None))
    assert run.state == "succeeded", run.error
    split = Split.objects.get(pk=run.result["split"])
    assert split.rows_count == export.files.get(format="sft-messages", split="val").rows > 0
    found = check(project, split, export=str(export.pk)).result
    # The same prompt stands before every answer of this project, so nothing of it is new.
    assert (found["rows"], found["exact"], found["prompt"]) == (split.rows_count, 0, split.rows_count)
    other = check(project, split, training_split=str(make_split(project).pk)).result
    assert other["contaminated"] == 0


@pytest.mark.parametrize(
    "against", [{}, {"export": "1", "upload": "uploads/x"}, {"export": "99"}, {"upload": "/etc/passwd"}]
)
def test_a_check_without_valid_training_data_is_refused(against: dict[str, str]) -> None:
    project = make_project()
    split = make_split(project)
    with pytest.raises(Invalid):
        check(project, split, **against)
    assert not ContaminationCheck.objects.exists()


def test_a_training_file_of_which_nothing_can_be_read_fails_the_check_with_the_reason() -> None:
    project = make_project()
    split = make_split(project)
    run = check(project, split, upload=upload(project, [{"note": "no messages"}]))
    assert run.state == "failed" and "Row 1: no layout of training data has the columns note" in run.error
    assert ContaminationCheck.objects.newest(split) is None


def test_rows_too_short_for_a_search_inside_longer_texts_are_counted(client: Client) -> None:
    project = signed_in(client)
    rows = [
        {"messages": [{"role": "user", "content": task}, {"role": "assistant", "content": answer}]}
        for task, answer in (("3 + 4 = ?", "7"), ("Name a red fruit that grows on a tree in autumn.", "Apple"))
    ]
    split = make_split(project, rows)
    run = check(project, split, upload=upload(project, make_rows(9)[7:]))
    assert (run.result["contaminated"], run.result["whole_only"]) == (0, 1)
    short = "1 row was compared as a whole row only, too short for a search inside longer texts."
    assert ContaminationRun().conclude(run) == f"None of the 2 rows is in the training data. {short}"
    shown = page(client, project, "split-page", split.pk)
    assert "(2 rows checked, 1 as whole rows only)" in shown and short in shown and "notice--good" not in shown
    found = client.get(f"/api/v1/splits/{split.pk}/contamination").json()["check"]
    assert (found["counts"]["whole_only"], found["incomplete"]) == (1, False)


def test_a_split_cannot_be_its_own_training_data_nor_come_from_a_missing_file() -> None:
    project = make_project()
    split = make_split(project)
    with pytest.raises(Invalid, match="its own rows"):
        check(project, split, training_split=str(split.pk))
    make_approved(project)
    export = run_export(project, {"formats": ["dpo"]})
    with pytest.raises(Invalid, match="no sft-messages file"):
        launch(project=project, kind="split", params={"export": str(export.pk)}, user=None)


def test_paraphrases_and_translations_are_found_by_recorded_embeddings(server: ModelServer) -> None:
    project = make_project()
    rows = make_rows(3)
    split = make_split(project, rows)
    german, other = "AUFGABE: sieh dir die Eimer an.", "TASK: paint the old fence."
    training = [
        {"messages": [{"role": "user", "content": task}, {"role": "assistant", "content": f"aws x {number} y"}]}
        for number, task in enumerate((german, other))
    ]
    server.behave("embedder", replies={"TASK: look at the buckets.": "buckets", german: "buckets"})
    at_server(project, server, "embedder", price_in=2, price_out=None)
    assert check(project, split, upload=upload(project, training)).result["contaminated"] == 0
    project.settings_json = {"evaluation": {"embedding": "embedder"}}
    project.save()

    run = check(project, split, upload=upload(project, training))

    assert run.state == "succeeded", run.error
    assert (run.result["contaminated"], run.result["paraphrase"]) == (1, 1)
    assert (run.result["embedded"], run.result["not_embedded"]) == (5, 0)
    found = ContaminatedRow.objects.get(check_of__run=run)
    assert found.row.number == 0 and found.matches[0]["prompt"].endswith(german)
    assert run.calls == 1 and run.cost > 0 and run.tokens_in > 0 and run.cost_unknown_calls == 0
    again = check(project, split, upload=upload(project, training))
    assert (again.result["paraphrase"], again.calls) == (1, 0)


def test_a_check_without_embeddings_fails_instead_of_finding_nothing(server: ModelServer) -> None:
    project = make_project(settings_json={"evaluation": {"embedding": "nobody"}})
    at_server(project, server, "nobody", model="scripted/operator")
    split = make_split(project)
    run = check(project, split, upload=upload(project, make_rows(9)[7:]))
    assert run.state == "failed", run.result
    assert "scripted models have no embeddings" in run.items.get(stage="embed").reason
    assert ContaminationCheck.objects.newest(split) is None
