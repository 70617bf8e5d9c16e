"""Approved sessions leave as ATIF documents, and come in again as the same."""

import copy
import gzip
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.imports.layouts.agents import atif
from curation.imports.layouts.agents.atif import REVIEW
from curation.trajectories.imported.document import document_of, with_review, write_document
from curation.trajectories.models import Trajectory
from curation.trajectories.recorded import RecordedTexts
from tests.exports.exporting import approve, content, export_of, make_approved, make_kept, reasons, reject, rows
from tests.factories import called, make_imported, make_project, make_user
from tests.imports.layouts.agents.test_atif import documents

RECIPE = {"formats": ["atif"], "filter": {"status": "approved"}}
FILE = "atif.train.jsonl"
DONE = {"source": "agent", "message": "Done."}
MARKS = st.fixed_dictionaries(
    {}, optional={"learn": st.just(False), "label": st.sampled_from(["correct", "wrong", "useless", "risky"])}
)


def without_review(document: Any) -> Any:
    """The document without what our review says in it."""
    document = copy.deepcopy(document)
    for part in [document, *document["steps"]]:
        del_from = part.get("extra") or {}
        if del_from.pop(REVIEW, None) is not None and not del_from:
            del part["extra"]
    return document


@settings(max_examples=40)
@given(documents(), st.data())
def test_any_document_comes_back_the_same_but_for_the_marks(document: Any, data: st.DataObject) -> None:
    for part in [document, *document["steps"]]:  # an extra that is there, but empty, is one afterwards
        if not part.get("extra"):
            part.pop("extra", None)
    [session] = atif.read(document).sessions
    marks = {str(n): data.draw(MARKS) for n in range(len(session.steps)) if data.draw(st.booleans())}
    marks = {position: mark for position, mark in marks.items() if mark}
    recorded = RecordedTexts(list(session.steps), document_of(session), marks)
    written = write_document(recorded, session.metadata, name="1", agent="", model="", cost=None)
    reviewed = with_review(written, recorded, {"decision": "approved"})
    assert without_review(reviewed) == document
    extras = {str(number): step.get("extra", {}) for number, step in enumerate(reviewed["steps"])}
    assert {number: extra[REVIEW] for number, extra in extras.items() if REVIEW in extra} == marks
    [again] = atif.read(orjson.loads(orjson.dumps(reviewed))).sessions
    assert [step["message"] for step in again.steps] == [step["message"] for step in session.steps]


def make_run(project: Any, *steps: dict[str, Any], **values: Any) -> Trajectory:
    trajectory = make_imported(project, *steps, **values)
    approve(trajectory.sample, by=make_user())
    return trajectory


@pytest.mark.django_db(transaction=True)
def test_marks_labels_and_trims_are_said_beside_all_steps() -> None:
    project = make_project()
    marks = {"2": {"learn": False, "label": "wrong"}, "4": {"end": True}}
    run = make_run(
        project, called("ls", "a\n"), called("pwd", "/", 2), DONE, marks=marks, rewards={"tests": 1.0}, source_id="t-1"
    )
    turn, lost = make_approved(project, by=make_user()), make_imported(project, task="lost")
    reject(lost.sample, by=make_user())
    export = export_of(project, {**RECIPE, "filter": {}, "metadata": True, "gzip": True, "reasoning": "drop"})
    (document,) = map(orjson.loads, gzip.decompress(content(export, f"{FILE}.gz")).splitlines())
    assert [step.get("extra") for step in document["steps"]] == [None, None, {REVIEW: marks["2"]}, None, None]
    assert len(document["steps"]) == 5 and document["agent"]["name"] == "terminus-2"
    assert document["extra"] == {
        REVIEW: {
            "sample": str(run.sample_id),
            "decision": "approved",
            "outcome": "solved",
            "rewards": {"tests": 1.0},
            "trimmed_after": 4,
        }
    }
    assert reasons(export) == {str(turn.pk): "no_session", str(lost.sample_id): "rejected"}
    [session] = atif.read(document).sessions
    assert (session.origin.id, session.learned) == ("t-1", {2: False, 4: False})


@pytest.mark.django_db(transaction=True)
def test_rollouts_are_documents_and_the_files_are_never_parquet() -> None:
    project = make_project()
    make_kept(project)
    export = export_of(project, {**RECIPE, "formats": ["atif", "sft-messages"], "parquet": True})
    (document,) = rows(export, FILE)
    assert document["schema_version"] == atif.VERSION
    assert document["agent"] == {"name": "winnow", "version": "unknown", "model_name": "operator-a"}
    assert "config_name: atif" not in content(export, "README.md").decode()


@pytest.mark.django_db(transaction=True)
def test_secrets_anywhere_in_a_document_keep_it_out_and_addresses_are_masked() -> None:
    project = make_project()
    key = "AKIA" + "Q3EGRDXV7PLMN5TA"
    hidden = make_run(project, called("ls", ""), metadata={"extra": {"note": f"key {key}"}})
    make_run(project, called("pwd", "", extra={"by": "jane.roe@corp-mail.io"}), task="mail")
    export = export_of(project, RECIPE)
    assert reasons(export) == {str(hidden.sample_id): "secret"}
    (document,) = rows(export, FILE)
    assert document["steps"][2]["extra"] == {"by": "<EMAIL>"}
