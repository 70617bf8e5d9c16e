"""The audit log in words."""

import pytest

from curation.projects.audit_words import details, said


@pytest.mark.parametrize(
    ("action", "words"),
    [
        ("project.update", "changed project"),
        ("sample.bulk_approve", "approved sample, in bulk"),
        ("sample.undo", "undid sample"),
        ("scenario.take_in", "took in scenario"),
        ("pull_request.clear_doubt", "cleared doubt of pull request"),
        ("run.deleted", "run was deleted"),
        ("run.succeeded", "run succeeded"),
        ("sample.look", "looked at sample"),
    ],
)
def test_an_action_is_a_sentence(action: str, words: str) -> None:
    assert said(action) == words


def test_a_change_has_its_value_before_and_after() -> None:
    data = {"fields": ["name", "guidelines"], "settings": {"panel.swap": [True, False]}, "moved": []}
    assert details("project.update", data) == ["fields: name, guidelines", "panel.swap: yes → no"]
    assert details("sample.reject", {"reason": "leaks", "comment": ""}) == ["reason: leaks"]
