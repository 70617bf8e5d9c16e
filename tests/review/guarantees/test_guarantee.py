"""The whole way by REST: draw, look, prove, approve, withdraw."""

from typing import Any

import orjson
import pytest

from curation.guarantees.models import Draw, Guarantee
from curation.labels.models import Question
from curation.projects.models import AuditEntry, Project
from curation.review.guarantees import carry_out
from curation.samples.models import Flag, Sample
from tests.exports.exporting import content, reasons, rows, run_export
from tests.review.guarantees.auditing import LOOKS, SAMPLES, Caller
from tests.review.rows import judged
from tests.sampled import one_of

pytestmark = pytest.mark.django_db(transaction=True)
UNSEEN = SAMPLES - LOOKS


def test_an_audit_that_agrees_approves_the_rest_unseen(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw()
    assert (audit["samples"], audit["looked"], audit["proven"]) == (SAMPLES, 0, None)
    looked = reviewer.work_off()
    assert sorted(map(int, looked)) == sorted(Draw.objects.values_list("sample_id", flat=True))
    audit = curator("GET", f"/audits/{audit['id']}")
    assert (audit["looked"], audit["agreed"]) == (LOOKS, LOOKS)
    assert audit["proven"] == {"threshold": 50.0, "share": 1.0, "samples": UNSEEN} == audit["expected"]
    assert (audit["seconds_per_decision"], audit["seconds_saved"]) == (30.0, 30.0 * UNSEEN)

    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    guarantee = curator("GET", f"/guarantees/{made['id']}")
    assert (guarantee["state"], guarantee["approved"], guarantee["samples"]) == ("holds", UNSEEN, UNSEEN)
    assert set(curator.statuses().values()) == {"approved"}
    assert set(curator.statuses(f"&guarantee={made['id']}")) == set(curator.statuses()) - set(looked)
    by_people = curator("GET", f"/samples/{looked[0]}/decisions")["data"][0]
    assert by_people["under"] is None
    unseen = next(iter(curator.statuses(f"&guarantee={made['id']}")))
    under = curator("GET", f"/samples/{unseen}/decisions")["data"][0]
    assert under["reviewer"] == curator.user.username
    assert under["under"] == {
        "guarantee": made["id"],
        "alpha": 0.2,
        "delta": 0.1,
        "score": "score",
        "threshold": 50.0,
        "set_sha256": audit["set_sha256"],
    }
    of_guarantee = curator("GET", f"/projects/billing/decisions?guarantee={made['id']}&limit=500")["data"]
    assert len(of_guarantee) == UNSEEN


def test_deleting_a_guarantee_withdraws_it_and_keeps_what_a_person_decided_since(
    curator: Caller, reviewer: Caller
) -> None:
    audit = curator.draw()
    looked = reviewer.work_off()
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    unseen = sorted(curator.statuses(f"&guarantee={made['id']}"))
    reviewer.decide(unseen[0], "reject")
    reviewer.decide(unseen[1], "approve")
    curator("DELETE", f"/guarantees/{made['id']}")
    guarantee = curator("GET", f"/guarantees/{made['id']}")
    assert (guarantee["state"], guarantee["finished"]) == ("withdrawn", True) and guarantee["withdrawn_at"]
    assert guarantee["withdrawn_by"] == curator.user.username
    found = curator.statuses()
    assert {found[pk] for pk in looked} == {"approved"}
    assert (found[unseen[0]], found[unseen[1]]) == ("rejected", "approved")
    assert {found[pk] for pk in unseen[2:]} == {"pending"}
    assert curator.statuses(f"&guarantee={made['id']}") == {}
    curator("DELETE", f"/guarantees/{made['id']}", status=409)


def test_an_undone_look_withdraws_the_guarantee_when_it_no_longer_holds(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw()
    looked = reviewer.work_off()
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    undone = 0
    while curator("GET", f"/guarantees/{made['id']}")["state"] == "holds":
        reviewer("POST", f"/samples/{looked[undone]}/undo", status=200)
        undone += 1
    assert undone in (1, 2, 3)
    guarantee = curator("GET", f"/guarantees/{made['id']}")
    assert guarantee["withdrawn_by"] is None and "no longer prove" in guarantee["reason"]
    assert sum(status == "approved" for status in curator.statuses().values()) == LOOKS - undone
    # Decided again as before, the audit proves it again, of the same samples.
    for sample in looked[:undone]:
        reviewer.decide(sample)
    again = curator("POST", f"/audits/{audit['id']}/guarantees")
    assert (again["samples"], curator("GET", f"/guarantees/{again['id']}")["approved"]) == (UNSEEN, UNSEEN)


def test_a_withdrawn_guarantee_leaves_no_row_in_a_new_export(
    curator: Caller, reviewer: Caller, project: Project
) -> None:
    recipe: dict[str, Any] = {"formats": ["sft-messages"], "metadata": True, "near_duplicates": None}
    audit = curator.draw()
    reviewer.work_off()
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    before = run_export(project, recipe)
    found = rows(before, "sft-messages.train.jsonl")
    unseen = [row for row in found if row["guarantee"] == made["id"]]
    assert (len(found), len(unseen)) == (SAMPLES, UNSEEN)
    assert all(row["reviewers"] == [] for row in unseen)
    manifest = orjson.loads(content(before, "manifest.json"))
    assert manifest["approvals"]["people"] == LOOKS
    assert manifest["approvals"]["guarantees"] == [
        {
            "id": made["id"],
            "rows": UNSEEN,
            "alpha": 0.2,
            "delta": 0.1,
            "score": "score",
            "threshold": 50.0,
            "set_sha256": audit["set_sha256"],
            "started_by": curator.user.username,
        }
    ]
    card = content(before, "README.md").decode()
    assert "20 rows approved by people, 20 under a guarantee of 90.0 % at α = 20.0 %" in card
    left_out = run_export(project, recipe | {"guarantees": "leave_out"})
    assert len(rows(left_out, "sft-messages.train.jsonl")) == LOOKS

    # Before workers have given a single sample back, no export has it.
    Guarantee.objects.update(withdrawn_at="2026-01-01T00:00:00Z", finished=False, cursor=0)
    meanwhile = run_export(project, recipe)
    assert len(rows(meanwhile, "sft-messages.train.jsonl")) == LOOKS
    assert set(reasons(meanwhile).values()) == {"not_approved"}
    carry_out.continue_all()
    assert len(rows(run_export(project, recipe), "sft-messages.train.jsonl")) == LOOKS
    assert sum(status == "pending" for status in curator.statuses().values()) == UNSEEN


@pytest.mark.parametrize("action", one_of(4, ["reject", "refine", "skip", "flag"]))
def test_other_decisions_are_no_agreement(curator: Caller, reviewer: Caller, action: str) -> None:
    audit = curator.draw()
    reviewer.work_off(action=lambda number: "approve" if number % 2 else action)
    audit = curator("GET", f"/audits/{audit['id']}")
    assert (audit["looked"], audit["agreed"], audit["proven"]) == (LOOKS, LOOKS // 2, None)
    assert audit["why_not"].startswith("There are 10 errors in 20 looks")
    refused = curator("POST", f"/audits/{audit['id']}/guarantees", status=409)
    assert refused["code"] == "not_proven"


def test_an_approval_that_changes_the_sample_is_no_agreement(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw()
    sample = reviewer.next()
    reviewer("POST", f"/samples/{sample['id']}/revisions", {"text": "Another text.", "of": "left"})
    reviewer.decide(sample["id"], preference="left")
    reviewer.decide(reviewer.next()["id"], preference="king")
    found = curator("GET", f"/audits/{audit['id']}")
    assert (found["looked"], found["agreed"]) == (2, 0)


def test_looks_that_are_missing_count_as_errors(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw()
    reviewer.work_off(LOOKS // 2)
    found = curator("GET", f"/audits/{audit['id']}")
    assert (found["looked"], found["agreed"], found["proven"]) == (10, 10, None)
    assert found["expected"]["share"] == 1.0 and found["why_not"].startswith("10 of 20 drawn samples wait")


def test_a_sample_that_was_skipped_before_its_draw_is_not_looked_at(curator: Caller, reviewer: Caller) -> None:
    for pk in curator.statuses():
        reviewer.decide(pk, "skip")
    audit = curator.draw()
    assert (audit["looked"], audit["more_looks"]) == (0, [])
    assert "20 of 20 drawn samples wait for a look" in audit["why_not"]
    Caller(reviewer.client, reviewer.project).work_off()
    made = curator("POST", f"/audits/{audit['id']}/guarantees", {"keep_alive": 0.1})
    assert made["alive"] == {"kept": 2, "looked": 0, "errors": 0, "wealth": 1.0, "limit": 10.0}


def test_a_guarantee_that_keeps_too_many_samples_says_so(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw()
    reviewer.work_off()
    refused = curator("POST", f"/audits/{audit['id']}/guarantees", {"keep_alive": 0.3}, status=409)
    assert refused["code"] == "not_proven"
    assert "20 samples that the audit is about, 6 stay pending for people. About the other 14" in refused["detail"]


def test_nothing_is_approved_unseen_without_answers_that_an_approval_needs(
    curator: Caller, reviewer: Caller, project: Project
) -> None:
    audit = curator.draw()
    reviewer.work_off()
    Question.objects.create(project=project, name="quality", title="Quality", kind="rating", required=True)
    refused = curator("POST", f"/audits/{audit['id']}/guarantees", status=409)
    assert refused["code"] == "labels_required" and not Guarantee.objects.exists()


def test_a_bulk_decision_is_no_look(curator: Caller) -> None:
    audit = curator.draw()
    ids = [str(pk) for pk in Draw.objects.values_list("sample_id", flat=True)]
    curator("POST", "/samples/bulk", {"action": "approve", "ids": ids}, status=200)
    assert curator("GET", f"/audits/{audit['id']}")["looked"] == 0


def test_only_the_best_scores_are_approved_where_people_reject_the_others(curator: Caller, reviewer: Caller) -> None:
    # With these figures a draw that proves nothing, or all, is one of more than 10,000.
    audit = curator.draw(size=25, alpha=0.3, delta=0.2)
    score = {pk: value or 0.0 for pk, value in Sample.objects.values_list("pk", "score")}
    for _ in range(25):
        sample = reviewer.next()["id"]
        reviewer.decide(sample, "approve" if score[int(sample)] >= 70 else "reject")
    proven = curator("GET", f"/audits/{audit['id']}")["proven"]
    assert 55 < proven["threshold"] < 80 and 0 < proven["samples"] < SAMPLES - 25
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    approved = curator.statuses(f"&guarantee={made['id']}")
    assert len(approved) == proven["samples"]
    assert min(score[int(pk)] for pk in approved) >= proven["threshold"]


def test_without_a_score_all_samples_are_approved_or_none(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw(score="none")
    reviewer.work_off()
    proven = curator("GET", f"/audits/{audit['id']}")["proven"]
    assert (proven["share"], proven["samples"]) == (1.0, UNSEEN)


def test_findings_and_samples_without_a_score_are_not_covered(
    curator: Caller, reviewer: Caller, project: Project
) -> None:
    leak, secret = judged(project, score=99.0, flags=Flag.LEAK), judged(project, score=99.0, flags=Flag.SECRET)
    unscored = judged(project, score=None, bucket="unparsed")
    audit = curator.draw()
    assert (audit["samples"], audit["left_out"]) == (SAMPLES, {"held": 2, "begun": 0, "unscored": 1})
    reviewer.work_off()
    # Found after the draw: it is held out all the same.
    later = next(pk for pk, status in curator.statuses().items() if status == "pending" and int(pk) <= leak.pk - 1)
    Sample.objects.filter(pk=later).update(flags=Flag.INJECTION)
    new = judged(project, score=99.0)
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    assert made["samples"] == UNSEEN - 1
    found = curator.statuses()
    assert {found[str(pk)] for pk in (leak.pk, secret.pk, unscored.pk, later, new.pk)} == {"pending"}


def test_samples_that_people_changed_since_the_draw_are_not_approved(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw()
    reviewer.work_off()
    flagged, open_one = [pk for pk, status in sorted(curator.statuses().items()) if status == "pending"][:2]
    reviewer.decide(flagged, "flag", reason="odd")
    reviewer("POST", "/projects/billing/queue/next", {"filter": {}}, status=200)
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    assert made["samples"] == UNSEEN - 2 and curator.statuses()[flagged] == "pending"


def test_errors_are_clear(curator: Caller, reviewer: Caller, project: Project) -> None:
    path = "/projects/billing/audits"
    small = curator("POST", path, {"size": 5, "alpha": 0.2, "delta": 0.1}, status=422)
    assert "it takes" in small["detail"] and small["errors"][0]["path"] == "size"
    assert "it takes 11 looks" in small["detail"] or "it takes 12 looks" in small["detail"]
    unknown = curator("POST", path, {"score": "beauty"}, status=422)
    assert unknown["errors"][0]["path"] == "score" and "reward.<name>" in unknown["detail"]
    assert curator("POST", path, {"score": "predicted"}, status=422)["code"] == "no_model"
    missing = curator("POST", path, {"score": "reward.tests", "alpha": 0.2, "size": 20}, status=422)
    assert (missing["code"], missing["errors"][0]["message"]) == (
        "no_scored_samples",
        "40 pending samples do not have it",
    )
    assert curator("POST", path, {"filter": {"repo": "none"}}, status=409)["code"] == "no_pending_samples"
    few = curator("POST", path, {"size": 20, "alpha": 0.1, "delta": 0.1, "cluster": "repo"}, status=422)
    assert few["errors"][0]["path"] in ("cluster", "size")
    assert curator("POST", path, {"cluster": "colour"}, status=422)["errors"][0]["path"] == "cluster"
    assert reviewer("POST", path, {}, status=403) and reviewer("GET", path, status=403)
    Question.objects.create(project=project, name="quality", title="Quality", kind="rating", required=True)
    assert curator("POST", path, {"size": 20, "alpha": 0.2}, status=409)["code"] == "labels_required"


def test_with_a_cluster_one_look_for_each_counts_too(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw(cluster="repo")
    reviewer.work_off()
    found = curator("GET", f"/audits/{audit['id']}")
    drawn = len(set(Draw.objects.values_list("cluster", flat=True)))
    assert "one look for each repo" in found["method"]
    # 11 looks at different repositories prove α = 20 %, δ = 10 %.
    assert (found["proven"] is not None) == (drawn >= 11)


def test_the_guarantee_that_is_kept_alive_ends_when_people_find_errors(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw(alpha=0.3)
    reviewer.work_off()
    made = curator("POST", f"/audits/{audit['id']}/guarantees", {"keep_alive": 0.3})
    assert (made["samples"], made["alive"]["kept"]) == (UNSEEN - 6, 6)
    state = made
    for _ in range(6):
        reviewer.decide(reviewer.next()["id"], "reject")
        state = curator("GET", f"/guarantees/{made['id']}")
        if state["state"] == "withdrawn":
            break
    assert state["state"] == "withdrawn" and "kept for people" in state["reason"] and state["withdrawn_at"]
    assert 1 < state["alive"]["errors"] < 6 and state["alive"]["wealth"] >= 1 / 0.1


def test_two_reviewers_who_disagree_bound_the_promise(curator: Caller, reviewer: Caller, project: Project) -> None:
    project.settings_json = {"review": {"overlap": 2}}
    project.save()
    other = Caller(reviewer.client, project)
    audit = curator.draw(alpha=0.2)
    reviewer.work_off()
    for number in range(LOOKS):
        other.decide(other.next()["id"], "reject" if number % 2 else "approve")
    found = curator("GET", f"/audits/{audit['id']}")
    assert (found["looked"], found["agreed"]) == (LOOKS // 2, LOOKS // 2)
    noise = found["disagreement"]
    assert (noise["samples"], noise["disagreed"]) == (LOOKS, LOOKS // 2) and noise["at_least"] > 0.1
    for dispute in curator("GET", "/projects/billing/disputes?limit=500")["data"]:
        curator.decide(dispute["sample"])
    # Adjudicated as approved, all looks agree, and the disagreement still bounds the promise.
    found = curator("GET", f"/audits/{audit['id']}")
    assert (found["looked"], found["agreed"]) == (LOOKS, LOOKS)
    if noise["at_least"] > 0.2:
        assert found["proven"] is None and "disagree about 10 of 20" in found["why_not"]


def test_samples_are_approved_in_batches_that_another_worker_continues(
    curator: Caller, reviewer: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = curator.draw()
    reviewer.work_off()
    monkeypatch.setattr(carry_out, "CHUNK", 8)
    monkeypatch.setattr(carry_out, "REQUEST_SECONDS", 0.0)
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    assert curator("GET", f"/guarantees/{made['id']}")["state"] == "approving"
    carry_out.continue_all()
    assert curator("GET", f"/guarantees/{made['id']}")["approved"] == UNSEEN
    batch = curator("GET", "/projects/billing/batches")["data"][0]
    assert (batch["changed"], batch["reason"]) == (UNSEEN, f"guarantee {made['id']}")
    refused = curator("POST", "/samples/bulk/undo", {"project": "billing", "batch": batch["batch"]}, status=409)
    assert refused["code"] == "under_guarantee"


def test_the_audit_log_names_the_promise(curator: Caller, reviewer: Caller) -> None:
    audit = curator.draw()
    reviewer.work_off()
    made = curator("POST", f"/audits/{audit['id']}/guarantees")
    curator("DELETE", f"/guarantees/{made['id']}")
    entries = AuditEntry.objects.filter(action__in=["audit.create", "guarantee.create", "guarantee.withdraw"])
    assert [entry.action for entry in entries.order_by("id")] == [
        "audit.create",
        "guarantee.create",
        "guarantee.withdraw",
    ]
    assert entries.get(action="guarantee.create").data["set_sha256"] == audit["set_sha256"]
