"""The content of an export's files."""

import gzip
import json

import orjson
import pytest

from curation.duels.score.models import Score
from curation.projects.settings.document import ExportSettings, ProjectSettings
from curation.review.models import Pick
from curation.runs.models import RunState
from tests.exports.exporting import NO_METADATA, approve, content, export_of, make_approved, revise, rows, run_export
from tests.factories import CHALLENGER, HISTORY, KING, make_duel, make_project, make_user, set_history

pytestmark = pytest.mark.django_db(transaction=True)
BOTH = {"formats": ["sft-messages", "dpo"]}


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def test_an_approved_duel_becomes_one_row_in_each_format() -> None:
    project = make_project()
    history = make_approved(project).duel.prompt.text.history
    export = run_export(project, BOTH)
    assert export.run.state == RunState.SUCCEEDED, export.run.error
    assert export.run.result["export"] == str(export.pk)
    assert export.run.result["counts"]["rows"] == {"sft-messages": {"train": 1}, "dpo": {"train": 1}}
    assert rows(export, "sft-messages.train.jsonl") == [{"messages": [*history, said(CHALLENGER)]}]
    expected = {"prompt": history, "chosen": [said(CHALLENGER)], "rejected": [said(KING)]}
    assert rows(export, "dpo.train.jsonl") == [expected]
    assert rows(export, "excluded.jsonl") == []


def test_a_picked_king_is_the_chosen_side_and_a_draw_gives_an_sft_row_but_no_pair() -> None:
    project = make_project()
    make_approved(project, pick=Pick.KING)
    sample = make_approved(project, pick=Pick.DRAW)
    export = export_of(project, BOTH)
    assert len(rows(export, "sft-messages.train.jsonl")) == 2
    [row] = rows(export, "dpo.train.jsonl")
    assert (row["chosen"], row["rejected"]) == ([said(KING)], [said(CHALLENGER)])
    left = rows(export, "excluded.jsonl")
    assert [(row["sample"], row["reason"], row["formats"]) for row in left] == [(str(sample.pk), "draw", ["dpo"])]


def test_the_final_revision_is_exported_and_can_be_preferred_to_the_replaced_answer() -> None:
    project, user = make_project(), make_user()
    sample = make_duel(project).sample
    assert sample is not None
    revise(sample, "THOUGHT: first try\n\n```bash\npwd\n```", by=user)
    latest = revise(sample, "THOUGHT: better\n\n```bash\ncat billing/totals.py\n```", by=user)
    approve(sample, by=user)
    export = export_of(project, {**BOTH, "sources": ["duels", "revisions"]})
    assert rows(export, "sft-messages.train.jsonl")[0]["messages"][-1] == said(latest.text)
    pairs = [(row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in rows(export, "dpo.train.jsonl")]
    assert pairs == [(latest.text, KING), (latest.text, CHALLENGER)]
    assert rows(export, "frozen.jsonl")[0]["revision"] == str(latest.pk)


def test_metadata_is_in_each_row_if_the_recipe_wants_it() -> None:
    project, user = make_project(), make_user("ada")
    sample = make_approved(project, by=user, score=81.5, bucket="final")
    row = rows(export_of(project, {**BOTH, "metadata": True}), "dpo.train.jsonl")[0]
    assert {key: row[key] for key in row if key not in ("prompt", "chosen", "rejected")} == NO_METADATA | {
        "id": str(sample.pk),
        "source": "turns.jsonl",
        "instance_id": sample.instance_id,
        "repo": sample.repo,
        "score": 81.5,
        "bucket": "final",
        "reviewers": ["ada"],
    }


def test_thinking_text_is_never_exported() -> None:
    project = make_project()
    duel = make_duel(project)
    answer = duel.challenger.text
    answer.thinking = "SECRET PONDERING"
    answer.save()
    thought = {"content": "<think>SECRET PONDERING</think>ls", "reasoning_content": "SECRET PONDERING"}
    set_history(duel.prompt, [*HISTORY, {"role": "assistant", **thought}, {"role": "user", "content": "ok"}])
    assert duel.sample is not None
    approve(duel.sample, by=make_user())
    export = export_of(project, {**BOTH, "metadata": True})
    everything = b"".join(content(export, file.name) for file in export.files.all())
    assert b"PONDERING" not in everything
    assert rows(export, "sft-messages.train.jsonl")[0]["messages"][2] == said("ls")


def test_the_same_recipe_on_the_same_rows_gives_the_same_bytes() -> None:
    project = make_project()
    for number in range(6):
        make_approved(project, instance_id=f"task-{number}")
    make_duel(project)
    recipe = {**BOTH, "splits": {"train": 0.5, "val": 0.5}, "seed": 3, "gzip": True, "metadata": True}
    first, second = export_of(project, recipe), export_of(project, recipe)
    assert first.pk != second.pk and first.manifest_sha256 == second.manifest_sha256
    assert {f.name: content(first, f.name) for f in first.files.all()} == {
        f.name: content(second, f.name) for f in second.files.all()
    }


def test_compressed_files_have_the_same_lines() -> None:
    project = make_project()
    make_approved(project)
    plain, packed = export_of(project, BOTH), export_of(project, {**BOTH, "gzip": True})
    name = "dpo.train.jsonl"
    assert gzip.decompress(content(packed, f"{name}.gz")) == content(plain, name)


def test_the_manifest_lists_recipe_models_and_the_hash_of_every_other_file() -> None:
    project = make_project()
    make_approved(project)
    export = export_of(project, {**BOTH, "filter": {"status": ["approved"]}})
    manifest = orjson.loads(content(export, "manifest.json"))
    others = {file.name: (file.bytes, file.sha256) for file in export.files.exclude(name="manifest.json")}
    assert {file["name"]: (file["bytes"], file["sha256"]) for file in manifest["files"]} == others
    assert manifest["recipe"]["filter"] == {"status": "approved"}
    assert manifest["frozen"] == {"file": "frozen.jsonl", "samples": 1, "revisions": 0, "trajectories": 0, "pairs": 0}
    assert [judge["name"] for judge in manifest["judges"]] == ["judge-a", "judge-b", "judge-c"]
    assert {model["side"] for model in manifest["models"]} == {"king", "challenger"}
    assert manifest["project"]["settings"]["thresholds"] == {"final": 80.0, "refined": 66.0}
    assert export.manifest_sha256 == export.files.get(name="manifest.json").sha256


def test_an_empty_export_has_counts_and_no_empty_data_file() -> None:
    export = export_of(make_project(), BOTH)
    assert export.ready and export.counts["exported"] == 0
    assert [file.name for file in export.files.all()] == [
        "README.md",
        "excluded.jsonl",
        "frozen.jsonl",
        "manifest.json",
    ]


def test_hostile_text_is_one_line_of_json() -> None:
    project = make_project()
    hostile = 'THOUGHT: "}\n{"\u2028\u2029</script>\ud7ff```bash\nprintf "\\0" \u0085\n```'
    make_approved(project, challenger=hostile)
    export = export_of(project, BOTH)
    data = content(export, "sft-messages.train.jsonl")
    assert data.count(b"\n") == 1
    assert json.loads(data)["messages"][-1]["content"] == hostile


def test_the_card_says_that_a_panel_judged_the_samples_only_if_one_did() -> None:
    project = make_project()
    make_approved(project)
    card = content(export_of(project, BOTH), "README.md").decode()
    assert "judged by a panel of models and approved by people" in card
    # As of an imported score: no verdict made it.
    Score.objects.all().delete()
    card = content(export_of(project, BOTH), "README.md").decode()
    assert "Training data for agent models, approved by people, exported by" in card


def test_the_card_has_the_license_that_the_project_names() -> None:
    settings = ProjectSettings(export=ExportSettings(license="cc-by-4.0"))
    project = make_project(settings_json=settings.model_dump(mode="json"))
    make_approved(project)
    assert 'license: "cc-by-4.0"' in content(export_of(project, BOTH), "README.md").decode()
    make_approved(other := make_project())
    assert "license:" not in content(export_of(other, BOTH), "README.md").decode()
