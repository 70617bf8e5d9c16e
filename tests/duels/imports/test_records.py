"""Pull-request records: one per instance, updated by a later import, excluded if the patch is too large."""

from typing import Any

import pytest

from curation.duels.imports.records import PullRequestKind, RecordOptions
from curation.duels.models import Exclusion, Prompt, PullRequest
from curation.duels.prompts.exclusions import exclude, include
from curation.imports.sources.rows import RowRefused, SourcePosition, SourceRow
from curation.projects.models import AuditEntry
from curation.web.problems import Invalid, NotFound
from tests.factories import make_project, make_prompt, make_user
from tests.imports.bringing import bad_rows, bring
from tests.parts import shared_data

pytestmark = pytest.mark.django_db(transaction=True)
PATCH = "diff --git a/billing/totals.py b/billing/totals.py\n--- a/billing/totals.py\n+++ b/billing/totals.py\n+x\n"


def record(number: int = 1, **values: Any) -> dict[str, Any]:
    return {"instance_id": f"acme__billing-{number}", "issue": "Totals are wrong.\nMore.", "patch": PATCH} | values


def test_real_records_are_imported_and_found_by_their_prompts() -> None:
    project = make_project()
    bring(project, "turns", shared_data("turns", "swe_agent_nebius.jsonl").read_bytes())

    rows = shared_data("turns", "pr_records.jsonl").read_bytes()
    run = bring(project, "pr_records", rows, options={"keep_all": True})

    assert (run.result["records"], run.result["oversized"], run.result["bad_rows"]) == (6, 0, 0)
    assert run.result["doubtful"] == 0
    assert not Prompt.objects.of(project).without_record().exists()
    row = PullRequest.objects.get(project=project, instance_id="tomerfiliba__plumbum-366_17")
    assert row.repo == "tomerfiliba/plumbum"
    assert row.files == ["plumbum/cli/image.py"]
    assert row.text.patch.startswith("diff --git a/plumbum/cli/image.py")
    assert row.patch_tokens == len(row.text.patch) // 4


def test_a_second_import_updates_and_the_same_one_changes_nothing() -> None:
    project = make_project()
    bring(project, "pr_records", [record(1), record(2)])

    same = bring(project, "pr_records", [record(1), record(2)]).result
    changed = bring(project, "pr_records", [record(1, title="A better title"), record(3)]).result

    assert (same["records"], same["updated"], same["duplicates"]) == (0, 0, 2)
    assert (changed["records"], changed["updated"], changed["duplicates"]) == (1, 1, 0)
    assert PullRequest.objects.get(instance_id="acme__billing-1").title == "A better title"
    assert PullRequest.objects.count() == 3


def test_files_are_paths_or_objects_or_read_from_the_patch() -> None:
    rows = [
        record(1, files=["a.py", "b.py"]),
        record(2, files=[{"path": "a.py"}, {"filename": "c.py"}]),
        record(3),
        record(4, patch="--- a/x.py\n+++ b/x.py\t2024\n@@ -1 +1 @@\n-a\n+b\n"),
        record(5, files=[{"size": 3}]),
    ]

    run = bring(make_project(), "pr_records", rows)

    found = {row.instance_id[-1]: row.files for row in PullRequest.objects.all()}
    assert found == {"1": ["a.py", "b.py"], "2": ["a.py", "c.py"], "3": ["billing/totals.py"], "4": ["x.py"]}
    assert "files.0 is neither a path" in bad_rows(run)["row 5"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"issue": "x"}, "no instance_id; the row has the columns issue"),
        ({"instance_id": "a__b-1"}, "neither an issue nor a description nor a patch"),
        (record(1, patch=5), "patch is not text"),
        (record(1, instance_id="x" * 201), "instance_id is not a text of at most 200 characters"),
    ],
)
def test_an_invalid_record_is_refused_with_the_error(row: dict[str, Any], said: str) -> None:
    with pytest.raises(RowRefused) as refused:
        PullRequestKind().parse(SourceRow(0, row, SourcePosition()), RecordOptions())
    assert said in str(refused.value)


def test_one_character_does_not_cost_a_record() -> None:
    run = bring(make_project(), "pr_records", [record(1, issue="a\x00b"), record(2)])
    assert (run.result["records"], run.result["replaced"], run.result["bad_rows"]) == (2, 1, 0)
    assert PullRequest.objects.get(instance_id="acme__billing-1").text.issue == "a\N{REPLACEMENT CHARACTER}b"


def test_an_oversized_patch_excludes_its_instance_until_it_fits_or_a_person_decides() -> None:
    project, user = make_project(settings_json={"limits": {"max_patch_tokens": 100}}), make_user()
    prompts = {number: make_prompt(project, instance_id=f"acme__billing-{number}") for number in (1, 2, 3)}
    large = PATCH + "+x\n" * 200

    run = bring(project, "pr_records", [record(1, patch=large), record(2, patch=large), record(3)])

    assert run.result["oversized"] == 2
    assert Exclusion.objects.get(instance_id="acme__billing-1").reason == (
        f"oversized pull request ({len(large) // 4} tokens)"
    )
    assert list(Prompt.objects.of(project).answerable()) == [prompts[3]]

    include(project=project, instance_ids=["acme__billing-1"], user=user)
    bring(project, "pr_records", [record(1, patch=large), record(2)])
    assert set(Prompt.objects.of(project).answerable()) == set(prompts.values())


def test_exclusions_are_set_in_bulk_with_a_reason_and_deleted() -> None:
    project, user = make_project(), make_user()
    exclude(project=project, rows=[("a", "broken environment"), ("b", "no tests")], user=user)

    results = exclude(project=project, rows=[("a", "flaky"), ("b", "no tests"), ("c", "flaky")], user=user)

    assert [result.outcome for result in results] == ["changed", "unchanged", "added"]
    assert dict(Exclusion.objects.values_list("instance_id", "reason")) == {"a": "flaky", "b": "no tests", "c": "flaky"}
    assert include(project=project, instance_ids=["a", "zzz"], user=user) == 1
    assert AuditEntry.objects.filter(action="exclusion.remove", data={"exclusions": {"a": "flaky"}}).count() == 1
    with pytest.raises(NotFound):
        include(project=project, instance_ids=["a"], user=user)
    with pytest.raises(Invalid, match=r"exclusions.0.reason"):
        exclude(project=project, rows=[("a", " ")], user=user)
    with pytest.raises(Invalid, match="At most 500"):
        exclude(project=project, rows=[(str(number), "x") for number in range(501)], user=user)
