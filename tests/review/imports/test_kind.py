"""Imported samples: the layouts, the resulting samples, and their deciders."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from curation.duels.judge.pairing import pair
from curation.duels.models import Answer, Duel, Prompt
from curation.imports import row_kinds
from curation.labels.models import Question
from curation.projects.models import AuditEntry, Member, Project, Role
from curation.projects.removal.carry_out import carry_out
from curation.review.decisions.decide import decide
from curation.review.models import Decision
from curation.runs.models import Run
from curation.runs.removal import delete_row
from curation.samples.models import Sample
from curation.web.problems import Invalid
from tests.factories import make_bearer, make_pull_request
from tests.imports.bringing import as_lines, bad_rows, end, upload
from tests.review.importing import ASKED, FIVE, FOUR, access_to, bring_samples, texts

pytestmark = pytest.mark.django_db(transaction=True)
METADATA = {
    **dict.fromkeys(("scenario", "tier", "task"), ""),
    "id": "77",
    "source": "turns.jsonl",
    "instance_id": "acme__billing-9",
    "repo": "acme/billing",
    "score": 84.5,
    "bucket": "final",
    "reviewers": ["ada"],
    "run": "3",
}


def test_rows_become_turns_with_an_answer_and_its_rival_and_others_are_named(project: Project, user: User) -> None:
    pair = {"prompt": ASKED, "chosen": [FOUR], "rejected": [FIVE]}
    rows = [{"prompt": "Two?", "completion": "Four."}, {"messages": [FOUR]}, pair]
    run = bring_samples(project, user, rows)
    figures = [run.result[name] for name in ("rows", "bad_rows", "samples", "pending")]
    assert (figures, bad_rows(run)) == ([3, 1, 2, 2], {"row 2": "nothing comes before the answer"})
    duels = list(Duel.objects.order_by("id").select_related("challenger__text", "king__text", "sample__text"))
    assert [texts(duel) for duel in duels] == [("Four.", None), ("Four.", "Five.")]
    assert [duel.opponent for duel in duels] == ["none", "king"]
    for duel in duels:
        assert duel.sample is not None and (duel.sample.status, duel.sample.bucket) == ("pending", "")
        assert "Four." in duel.sample.text.body


def test_decisions_of_a_file_are_pending_unless_they_are_taken_over(project: Project, user: User) -> None:
    rows = [{**METADATA, "messages": [*ASKED, FOUR]}, {"prompt": "a", "chosen": "b", "rejected": "c"}]
    run = bring_samples(project, user, rows)
    assert (run.result["pending"], run.result["approved"]) == (2, 0)
    assert not Decision.objects.exists()
    sample = Sample.objects.order_by("pk")[0]
    assert (sample.source, sample.instance_id, sample.repo) == ("turns.jsonl", "acme__billing-9", "acme/billing")
    assert (sample.score, sample.bucket, sample.model) == (84.5, "final", "(imported)")


def test_decisions_that_are_taken_over_are_those_of_the_person_who_imports(project: Project, user: User) -> None:
    rows = [
        {**METADATA, "messages": [*ASKED, FOUR]},
        {"prompt": "a", "chosen": "b", "rejected": "c"},
        {"prompt": "d", "completion": "e", "label": False},
        {"messages": [*ASKED, FIVE]},
    ]
    run = bring_samples(project, user, rows, decisions=True)
    figures = {name: run.result[name] for name in ("samples", "approved", "rejected", "pending")}
    assert figures == {"samples": 4, "approved": 2, "rejected": 1, "pending": 1}
    lines = list(Decision.objects.order_by("sample_id"))
    assert [(line.action, line.pick, line.reviewer) for line in lines] == [
        ("approve", "candidate", user),
        ("approve", "candidate", user),
        ("reject", "", user),
    ]
    assert {line.reason for line in lines} == {f"Import {run.pk}: the decision in the file"}
    assert lines[0].comment == "The file names ada." and lines[0].text_sha256
    assert {line.batch for line in lines} == {f"import-{run.pk}"}
    entry = AuditEntry.objects.get(action="sample.import_decisions")
    assert (entry.actor, entry.data) == (user, {"approved": 2, "rejected": 1, "run": run.pk})


def test_decisions_that_are_refused_are_counted(project: Project, user: User) -> None:
    Question.objects.create(project=project, name="why", title="Why", kind="text", required=True)
    rows = [{"prompt": "a", "completion": "b", "label": True}, {"prompt": "d", "completion": "e", "label": False}]
    run = bring_samples(project, user, rows, decisions=True)
    figures = {name: run.result[name] for name in ("approved", "rejected", "refused", "pending")}
    assert figures == {"approved": 0, "rejected": 1, "refused": 1, "pending": 1}


def test_only_who_may_review_takes_decisions_over(project: Project, user: User, client: Client) -> None:
    key = upload(project, as_lines([{"prompt": "a", "chosen": "b", "rejected": "c"}]), "rows.jsonl")
    body = {"kind": "samples", "upload": key, "options": {"decisions": True}}
    for path, sent in (
        (f"/api/v1/projects/{project.slug}/imports", body),
        (f"/api/v1/projects/{project.slug}/runs", {"kind": "import", "params": body}),
    ):
        refused = client.post(path, sent, content_type="application/json", headers=make_bearer(user, "read", "run"))
        assert refused.status_code == 403 and "review" in refused.json()["detail"]
    headers = make_bearer(user, "read", "run", "review")
    launched = client.post(
        f"/api/v1/projects/{project.slug}/imports", body, content_type="application/json", headers=headers
    )
    assert launched.status_code == 202
    clone = f"/api/v1/runs/{launched.json()['id']}/clone"
    assert client.post(clone, headers=make_bearer(user, "read", "run")).status_code == 403
    # A person who lost the right before the work begins decides nothing.
    Member.objects.filter(user=user).update(role=Role.VIEWER)
    run = end(Run.objects.get(pk=launched.json()["id"]))
    assert run.state == "failed" and "may no longer review" in run.error
    assert not Sample.objects.exists()


def test_the_same_rows_under_another_name_or_in_another_format_add_nothing(project: Project, user: User) -> None:
    rows = [{"prompt": ASKED, "chosen": [FOUR], "rejected": [FIVE]}, {"prompt": "d", "completion": "e", "label": True}]
    bring_samples(project, user, rows, decisions=True)
    again = bring_samples(project, user, [*rows, *rows], "renamed.jsonl", decisions=True)
    chat = bring_samples(project, user, [{"messages": [*ASKED, FOUR]}], "chat.jsonl")
    assert (again.result["samples"], again.result["duplicates"]) == (0, 4)
    assert (chat.result["samples"], chat.result["duplicates"]) == (0, 1)
    assert (Sample.objects.count(), Answer.objects.count(), Decision.objects.count()) == (2, 3, 2)


@pytest.mark.parametrize(
    ("order", "most"),
    [((0, 1, 2, 3), 1), ((0, 1, 2, 3), 1000), ((1, 3, 0, 2), 1), ((1, 3, 0, 2), 2), ((3, 0, 2, 1), 2)],
)
def test_labelled_rows_of_one_prompt_are_one_sample_wherever_they_are(
    project: Project, user: User, monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...], most: int
) -> None:
    monkeypatch.setattr(row_kinds, "MOST_ROWS", most)
    rows = [
        {"prompt": "a", "completion": "good", "label": True},
        {"prompt": "a", "completion": "bad", "label": False},
        {"prompt": "b", "completion": "alone", "label": False},
        {"prompt": "c", "completion": "wanted", "label": True},
    ]
    given = [rows[number] for number in order]
    run = bring_samples(project, user, given, decisions=True)
    found = {texts(duel): duel.sample.status for duel in Duel.objects.all() if duel.sample}
    assert found == {("good", "bad"): "approved", ("alone", None): "rejected", ("wanted", None): "approved"}
    figures = {name: run.result[name] for name in ("samples", "approved", "rejected", "pending", "duplicates")}
    assert figures == {"samples": 3, "approved": 2, "rejected": 1, "pending": 0, "duplicates": 0}
    assert Prompt.objects.count() == 3
    again = bring_samples(project, user, given, "again.jsonl", decisions=True)
    assert (again.result["samples"], Duel.objects.count()) == (0, 3)


@pytest.mark.parametrize("first", [True, False])
def test_halves_in_different_chunks_cost_no_queries_of_their_own(
    project: Project, user: User, monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    def cost(pairs: int) -> int:
        """A chunk of one half of each pair, then one of the others."""
        monkeypatch.setattr(row_kinds, "MOST_ROWS", pairs)
        rows = [
            {"prompt": f"{pairs}: {number}", "completion": f"{label}", "label": label}
            for label in (first, not first)
            for number in range(pairs)
        ]
        with CaptureQueriesContext(connection) as queries:
            run = bring_samples(project, user, rows, f"{pairs}.jsonl")
        assert run.result["samples"] == pairs
        return len(queries)

    cost(2)  # the first import recognises the kind of data
    assert cost(40) - cost(4) <= 4


def test_a_secret_in_the_other_half_of_an_earlier_chunk_is_flagged(
    project: Project, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_kinds, "MOST_ROWS", 1)
    secret = "export TOKEN=ghp_" + "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY1zA2"
    rows = [{"prompt": "a", "completion": "good", "label": True}, {"prompt": "a", "completion": secret, "label": False}]
    bring_samples(project, user, rows)
    sample = Sample.objects.get()
    assert "secret" in sample.shown_flags(hidden=False) and secret in sample.text.body and sample.version == 2


def test_an_import_with_its_decisions_can_be_undone_until_somebody_decides(project: Project, user: User) -> None:
    rows = [{"prompt": str(number), "chosen": "b", "rejected": "c"} for number in range(2)]
    first = bring_samples(project, user, rows, decisions=True)
    access = access_to(project, user)
    carry_out(delete_row(access=access, row=first, label=first.label).pk)
    assert not (Sample.objects.exists() or Duel.objects.exists() or Answer.objects.exists() or Prompt.objects.exists())


def test_a_sample_with_one_answer_is_approved_without_a_pick(project: Project, user: User, client: Client) -> None:
    bring_samples(project, user, [{"messages": [*ASKED, {**FOUR, "train": True}, ASKED[0], {**FIVE, "train": True}]}])
    sample = Sample.objects.get()
    client.force_login(user)
    page = client.post(reverse("sample-page", args=[project.slug, sample.pk])).content.decode()
    assert "Five." in page and 'data-pick="' not in page and "data-needs-pick" not in page
    assert "trained" in page
    shown = client.get(f"/api/v1/samples/{sample.pk}").json()["answers"]
    assert (shown["opponent"], shown["king"]) == ("none", None)
    duel = Duel.objects.get()
    assert client.get(f"/api/v1/duels/{duel.pk}").json()["king"] is None
    assert client.get(reverse("duel-page", args=[project.slug, duel.pk])).status_code == 200
    access = access_to(project, user)
    for preference in ("king", "draw", "left"):
        with pytest.raises(Invalid, match="one answer"):
            decide(access=access, sample_id=sample.pk, action="approve", preference=preference)
    assert decide(access=access, sample_id=sample.pk, action="approve").pick == "candidate"


def test_an_imported_answer_is_held_against_the_record_of_its_instance(project: Project, user: User) -> None:
    make_pull_request(project, "acme__billing-9", patch="+def round_half_even_totals(rows):", files=["billing/x.py"])
    row = {**METADATA, "messages": [*ASKED, {"role": "assistant", "content": "I call round_half_even_totals now."}]}
    bring_samples(project, user, [row])
    sample = Sample.objects.get()
    assert sample.shown_flags(hidden=False) == ["leak"] and sample.bucket == "refined"


def test_the_preview_says_what_arrives_as_what(project: Project, user: User, client: Client) -> None:
    key = upload(project, as_lines([{"prompt": "a", "chosen": "b", "rejected": "c"}]), "rows.jsonl")
    for options, word in (({}, "pending"), ({"decisions": True}, "approved, as your decision")):
        body = {"kind": "samples", "upload": key, "options": options}
        path = f"/api/v1/projects/{project.slug}/imports/preview"
        found = client.post(path, body, content_type="application/json", headers=make_bearer(user)).json()
        assert found["layout"] == "preferences (chosen, rejected)"
        assert word in found["shown"][0]["text"]
        assert [line["text"] for line in found["shown"][1:]] == ["b", "c"]


def test_the_page_takes_decisions_over_by_choice(project: Project, user: User, client: Client) -> None:
    client.force_login(user)
    key = upload(project, as_lines([{"prompt": "a", "chosen": "b", "rejected": "c"}]), "rows.jsonl")
    client.post(reverse("import-new", args=[project.slug]), {"kind": "samples", "upload": key, "decisions": "on"})
    run = Run.objects.get()
    assert run.params["options"] == {"decisions": True}


def test_an_imported_turn_of_its_source_meets_no_reference(project: Project, user: User) -> None:
    bring_samples(project, user, [{"messages": [*ASKED, FOUR]}])
    prompts = Prompt.objects.of(project)
    assert list(pair(project=project, prompts=prompts, entrants=lambda side: Q(), mode=1)) == []
    assert list(pair(project=project, prompts=prompts, entrants=lambda side: Q(), mode=2)) == []


def test_training_marks_and_labels_beside_messages_decide(project: Project, user: User) -> None:
    rows = [
        {"messages": [*ASKED, {**FIVE, "loss": False}, *ASKED, FOUR]},
        {"messages": [{"role": "user", "content": "Clean up."}, FIVE], "label": False},
        {"conversations": [{"from": "human", "value": "Tidy."}, {"from": "gpt", "value": "rm"}], "kto_tag": False},
        {"messages": [{"role": "user", "content": "Free space."}, FOUR], "rejected_response": "rm -rf /"},
    ]
    run = bring_samples(project, user, rows, decisions=True)
    assert bad_rows(run) == {}
    duels = Duel.objects.order_by("id").select_related("sample", "challenger__text", "king__text", "prompt__text")
    found = {texts(duel): duel.sample.status for duel in duels if duel.sample}
    assert found == {
        ("Four.", None): "pending",
        ("Five.", None): "rejected",
        ("rm", None): "rejected",
        ("Four.", "rm -rf /"): "approved",
    }
    assert all("train" not in message for message in duels[0].prompt.text.history)


def test_tools_and_the_system_prompt_of_other_columns_make_other_rows(project: Project, user: User) -> None:
    tool = {"name": "ls", "description": "List", "parameters": {"type": "object", "properties": {}}}
    row = {"prompt": "Free space.", "chosen": "du", "rejected": "rm"}
    run = bring_samples(
        project,
        user,
        [
            row | {"system": "Never delete."},
            row | {"system_prompt": "Delete all."},
            row | {"available_tools": [tool]},
            row | {"functions": [{**tool, "name": "du"}]},
        ],
    )
    assert (run.result["samples"], run.result["duplicates"]) == (4, 0)
    stored = list(Prompt.objects.order_by("id").select_related("text"))
    assert [prompt.text.history[0]["content"] for prompt in stored[:2]] == ["Never delete.", "Delete all."]
    assert [prompt.text.tools[0]["function"]["name"] for prompt in stored[2:]] == ["ls", "du"]


def test_what_follows_the_last_answer_is_context_and_reasoning_is_apart(project: Project, user: User) -> None:
    thought = {"role": "assistant", "content": "The user wants the folder.\n</think>\n\npwd"}
    rows = [
        {"messages": [*ASKED, thought]},
        {"messages": [*ASKED, FOUR, {"role": "tool", "tool_call_id": "1", "content": "a.py"}]},
        {"messages": [*ASKED, FIVE, {"role": "user", "content": "Thanks."}]},
        {"messages": [*ASKED, {"role": "assistant", "content": "a \x00 b"}]},
    ]
    run = bring_samples(project, user, rows)
    assert (run.result["samples"], bad_rows(run)) == (4, {})
    answers = Answer.objects.order_by("id").select_related("text")
    assert [(answer.text.text, answer.text.thinking) for answer in answers] == [
        ("pwd", "The user wants the folder."),
        ("Four.", ""),
        ("Five.", ""),
        ("a \N{REPLACEMENT CHARACTER} b", ""),
    ]
    account = {entry["field"]: (entry["rows"], entry["becomes"]) for entry in run.result["account"]}
    assert account["messages after the answer"] == (2, "ignored")


def test_a_thousand_samples_at_once_are_imported(project: Project, user: User) -> None:
    rows = [{"prompt": f"What is {number}?", "completion": "A number."} for number in range(1_100)]
    assert bring_samples(project, user, rows).state == "succeeded"
    assert Sample.objects.count() == 1_100
