"""No secret and no personal data leave that nobody cleared: kept out, masked, or cleared by a person."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import pytest

from curation.duels.models import AnswerText
from curation.exports.models import Export
from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.decisions.decide import decide
from curation.review.decisions.findings import clear, findings_of, withdraw
from curation.review.decisions.revise import revise
from curation.review.models import Decision
from curation.samples.models import Sample, TextScan, flag_names
from curation.web.problems import Invalid, NotFound
from judging.scan.rules import BY_NAME
from judging.scan.scan import ScanFinding
from tests.exports.exporting import content, export_of, make_pair, reasons, rows
from tests.factories import CHALLENGER, HISTORY, KING, OUTPUTS, make_trajectory, set_history
from tests.judging.scan.cases import FOUND
from tests.review.rows import judged, project_with_reviewer

pytestmark = pytest.mark.django_db
SFT, BOTH = {"formats": ["sft-messages"]}, {"formats": ["sft-messages", "dpo"]}
KEY, OTHER_KEY = (value for _, value in FOUND["key"][4:6])
EMAIL = "ada.lovelace@acme-corp.io"
CARD = FOUND["card"][0][1]


def everything(export: Export) -> str:
    return "".join(content(export, file.name).decode() for file in export.files.all())


def approved(access: Access, **texts: Any) -> Sample:
    """An approved turn; `history` is appended to its last message."""
    history = texts.pop("history", "")
    sample = judged(access.project, **texts)
    if history:
        last = {**HISTORY[-1], "content": f"{HISTORY[-1]['content']} {history}"}
        set_history(sample.duel.prompt, [*HISTORY[:-1], last])
    decide(access=access, sample_id=sample.pk, action="approve")
    return Sample.objects.get(pk=sample.pk)


def planted(access: Access, where: str, text: str) -> Sample:
    """An approved turn with the text in its answer, in its history or in a revision."""
    if where != "revision":
        return approved(access, **{where: text})
    sample = judged(access.project)
    revise(access=access, sample_id=sample.pk, text=text)
    decide(access=access, sample_id=sample.pk, action="approve")
    return sample


def use(project: Project, **actions: str) -> None:
    project.settings_json = {"scan": {"actions": {name.replace("_", "-"): value for name, value in actions.items()}}}
    project.save()


@pytest.mark.parametrize("where", ["challenger", "history", "revision"])
def test_a_secret_keeps_its_row_out_wherever_it_is(where: str) -> None:
    access = project_with_reviewer()
    sample = planted(access, where, f"{CHALLENGER}\nThe key is {KEY}.")
    export = export_of(access.project, BOTH)
    assert reasons(export) == {str(sample.pk): "secret"}
    assert rows(export, "excluded.jsonl")[0]["rules"] == ["github-token"]
    assert KEY not in everything(export)
    assert flag_names(Sample.objects.get(pk=sample.pk).flags) == ["secret"]


@pytest.mark.parametrize("where", ["challenger", "history", "revision"])
def test_an_address_is_masked_in_the_whole_row_and_the_manifest_says_so(where: str) -> None:
    access = project_with_reviewer()
    planted(access, where, f"{CHALLENGER}\nAsk {EMAIL}, then bob@acme-corp.io, then {EMAIL}.")
    export = export_of(access.project, SFT)
    assert reasons(export) == {} and "@acme-corp.io" not in everything(export)
    line = content(export, "sft-messages.train.jsonl")
    assert b"Ask <EMAIL>, then <EMAIL_2>, then <EMAIL>." in line
    frozen = rows(export, "frozen.jsonl")[0]
    assert frozen["masked"] == {"email": 3}
    assert frozen["text_sha256"] == Decision.objects.get(action="approve").text_sha256
    assert frozen["rows"][0]["sha256"] == hashlib.sha256(line).hexdigest()
    manifest = json.loads(content(export, "manifest.json"))
    assert manifest["counts"]["scan"] == {"email": {"kept_out": 0, "masked": 3, "cleared": 0, "warned": 0}}
    assert set(manifest["scan"]["actions"]) == set(BY_NAME) and manifest["scan"]["actions"]["email"] == "mask"
    assert manifest["scan"]["rules"] and manifest["scan"]["libraries"]["python-stdnum"]


def test_the_project_decides_by_rule() -> None:
    access = project_with_reviewer()
    use(access.project, email="keep_out", card="mask")
    mail, card = approved(access, challenger=f"mail {EMAIL}"), approved(access, challenger=f"pay with {CARD}")
    export = export_of(access.project, SFT)
    assert reasons(export) == {str(mail.pk): "pii"}
    assert "pay with <CARD>" in everything(export) and CARD not in everything(export)
    assert flag_names(card.flags) == ["pii"]


def test_only_the_preference_is_left_out_if_the_other_answer_has_the_secret() -> None:
    access = project_with_reviewer()
    approved(access, king=f"cat {KEY}")
    export = export_of(access.project, BOTH)
    assert [(row["reason"], row["formats"]) for row in rows(export, "excluded.jsonl")] == [("secret", ["dpo"])]
    assert KEY not in everything(export) and len(rows(export, "sft-messages.train.jsonl")) == 1


def test_rows_that_differ_in_what_is_masked_alone_leave_once() -> None:
    access = project_with_reviewer()
    kept, other = (
        approved(access, history="Go on.", challenger=f"Ask {name}@acme-corp.io about it.", instance_id=name)
        for name in ("ada", "bob")
    )
    approved(access, history="Go on.", challenger="Ask cy@acme-corp.io about the other one.", instance_id="cy")

    export = export_of(access.project, {**SFT, "splits": {"train": 0.5, "val": 0.5}, "near_duplicates": None})

    assert reasons(export) == {str(other.pk): "duplicate"}
    assert rows(export, "excluded.jsonl")[0]["of"] == str(kept.pk)


def test_sides_that_differ_in_what_is_masked_alone_are_no_preference() -> None:
    access = project_with_reviewer()
    approved(access, challenger="Ask ada@acme-corp.io about it.", king="Ask bob@acme-corp.io about it.")
    approved(access, challenger="Ask ada@acme-corp.io today.", king="Ask bob@acme-corp.io now.", instance_id="other")

    export = export_of(access.project, BOTH)

    skipped = rows(export, "excluded.jsonl")
    assert [(row["reason"], row["formats"]) for row in skipped] == [("identical", ["dpo"])]
    assert len(rows(export, "dpo.train.jsonl")) == 1 and len(rows(export, "sft-messages.train.jsonl")) == 2


def test_an_answer_that_was_changed_after_the_scan_is_scanned_again() -> None:
    access = project_with_reviewer()
    sample = approved(access)
    AnswerText.objects.filter(answer__duels_as_king__sample=sample).update(text=f"cat {KEY}")
    set_history(sample.duel.prompt, [{"role": "user", "content": f"mail {EMAIL}"}])
    export = export_of(access.project, BOTH)
    assert KEY not in everything(export) and EMAIL not in everything(export)


def test_sessions_and_their_rivals_are_scanned() -> None:
    access = project_with_reviewer()
    outputs = (f"usage: todo, by {EMAIL}\n", *OUTPUTS[1:])
    masked = make_trajectory(access.project, outputs=outputs)
    scenario = masked.scenario
    rejected = make_trajectory(
        access.project,
        scenario,
        outcome="checker_failed",
        outputs=outputs,
        commands=("todo --help", f"echo {KEY}", "ls"),
    )
    make_pair(masked, rejected)
    secret = make_trajectory(access.project, commands=("todo --help", f"export T={KEY}", "ls"))
    for row in (masked, secret):
        assert row.sample is not None
        decide(access=access, sample_id=row.sample.pk, action="approve")
    export = export_of(access.project, BOTH)
    excluded = [(row["sample"], row["reason"], row["formats"]) for row in rows(export, "excluded.jsonl")]
    assert excluded == [
        (str(masked.sample_id), "secret", ["dpo"]),
        (str(rejected.sample_id), "not_approved", ["sft-messages", "dpo"]),
        (str(secret.sample_id), "secret", ["sft-messages", "dpo"]),
    ]
    assert KEY not in everything(export) and EMAIL not in everything(export)
    assert "by <EMAIL>" in everything(export)


def test_metadata_is_masked() -> None:
    access = project_with_reviewer()
    approved(access, source="/home/jsmith/turns.jsonl", instance_id=f"task-{KEY}")
    export = export_of(access.project, {**SFT, "metadata": True})
    (row,) = rows(export, "sft-messages.train.jsonl")
    assert (row["source"], row["instance_id"]) == ("/home/<USER>/turns.jsonl", "task-<GITHUB_TOKEN>")
    assert "jsmith" not in everything(export) and KEY not in everything(export)


def test_a_comment_is_scanned_when_it_is_written_and_is_in_no_file() -> None:
    access = project_with_reviewer()
    sample = judged(access.project)
    decide(access=access, sample_id=sample.pk, action="approve", comment=f"Ask {EMAIL}, the key was {KEY}.")
    assert flag_names(Sample.objects.get(pk=sample.pk).flags) == ["secret", "pii"]
    assert [(row.part, row.rule) for row in findings_of(sample)] == [("comment", "email"), ("comment", "github-token")]
    export = export_of(access.project, {**BOTH, "metadata": True})
    assert reasons(export) == {}
    assert KEY not in everything(export) and EMAIL not in everything(export)


def test_a_clearance_is_for_one_value_and_can_be_withdrawn() -> None:
    access = project_with_reviewer()
    sample = approved(access, challenger=f"first {KEY} then {OTHER_KEY}")
    first, second = findings_of(sample)
    with pytest.raises(Invalid, match="reason"):
        clear(access=access, sample_id=sample.pk, rule=first.rule, value_sha256=first.value_sha256, reason=" ")
    with pytest.raises(NotFound, match="finds no"):
        clear(access=access, sample_id=sample.pk, rule="email", value_sha256=first.value_sha256, reason="x")
    named: dict[str, Any] = {
        "access": access,
        "sample_id": sample.pk,
        "rule": first.rule,
        "value_sha256": first.value_sha256,
    }
    assert flag_names(clear(**named, reason="Revoked in March.").flags) == ["secret"]
    assert reasons(export_of(access.project, SFT)) == {str(sample.pk): "secret"}
    clear(**{**named, "value_sha256": second.value_sha256}, reason="Never valid.")
    assert flag_names(Sample.objects.get(pk=sample.pk).flags) == []
    export = export_of(access.project, SFT)
    assert reasons(export) == {} and KEY in everything(export)
    assert json.loads(content(export, "manifest.json"))["counts"]["scan"]["github-token"]["cleared"] == 2
    withdraw(**named)
    assert flag_names(Sample.objects.get(pk=sample.pk).flags) == ["secret"]
    assert reasons(export_of(access.project, SFT)) == {str(sample.pk): "secret"}
    # The approval is of the text, which did not change.
    assert Sample.objects.get(pk=sample.pk).status == "approved"


def test_documentation_examples_leave_as_they_are() -> None:
    access = project_with_reviewer()
    text = f"{CHALLENGER}\nAKIAIOSFODNN7EXAMPLE user@example.com 4111111111111111 /home/user/x git@github.com:a/b.git"
    sample = approved(access, challenger=text)
    assert flag_names(sample.flags) == []
    export = export_of(access.project, SFT)
    assert reasons(export) == {} and "user@example.com" in everything(export)


def test_an_approval_before_these_rules_is_scanned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    access = project_with_reviewer()
    approved(access)
    Decision.objects.update(scan_rules="older", prompt_sha256="", other_sha256="")
    export_of(access.project, BOTH)
    line = Decision.objects.get()
    assert line.scan_rules != "older" and line.prompt_sha256 and line.other_sha256
    monkeypatch.setattr("curation.exports.rows.redaction.scan", lambda text: pytest.fail("scanned again"))
    assert reasons(export_of(access.project, BOTH)) == {}


def test_a_text_is_scanned_once_for_all_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    access = project_with_reviewer()
    long = f"{CHALLENGER}\n" + "word " * 100
    approved(access, challenger=long)
    assert TextScan.objects.filter(findings=[]).count() == 2  # the answer and its history

    def scan_each(texts: Iterable[str]) -> list[tuple[ScanFinding, ...]]:
        return [pytest.fail("again") if text in (long, KING) else () for text in texts]

    monkeypatch.setattr("curation.samples.texts.scan_each", scan_each)
    approved(access, challenger=long)


@pytest.mark.parametrize("token", ["<|im_end|>", "<|tool_calls_section_begin|>", "[INST]", "\u202e", "\x1b[31m"])
def test_control_text_is_kept_out_of_answers_and_counted_in_a_history(token: str) -> None:
    access = project_with_reviewer()
    said = approved(access, challenger=f"{CHALLENGER}\nDone.{token}")
    shown = approved(access, history=f"The log has {token}.")
    export = export_of(access.project, SFT)
    assert reasons(export) == {str(said.pk): "control_text"}
    assert rows(export, "excluded.jsonl")[0]["rules"] == ["control-text"]
    assert len(rows(export, "sft-messages.train.jsonl")) == 1 and shown.status == "approved"
    counts = json.loads(content(export, "manifest.json"))["counts"]["scan"]["control-text"]
    assert counts["warned"] >= 1 and counts["kept_out"] >= 1


def test_a_key_of_a_tool_is_masked_like_a_text() -> None:
    access = project_with_reviewer()
    use(access.project, email="mask")
    sample = judged(access.project)
    tools = [
        {"type": "function", "function": {"name": "send", "parameters": {"properties": {EMAIL: {"type": "string"}}}}}
    ]
    set_history(sample.duel.prompt, sample.duel.prompt.text.history, tools)
    decide(access=access, sample_id=sample.pk, action="approve")
    export = export_of(access.project, SFT)
    assert EMAIL not in everything(export) and "<EMAIL>" in everything(export)
