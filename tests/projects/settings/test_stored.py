"""Stored settings are read once, and a change of the document is seen at once."""

from typing import Any

import pytest
from pydantic import ValidationError

from curation.projects.models import Project


def test_a_change_in_place_is_seen_and_equal_documents_are_read_once() -> None:
    first, second = Project(), Project()
    assert first.settings is second.settings
    first.settings_json["review"] = {"blind": False}
    assert (first.settings.review.blind, second.settings.review.blind) == (False, True)


def test_settings_that_others_read_too_cannot_be_changed() -> None:
    review: Any = Project().settings.review
    with pytest.raises(ValidationError, match="frozen"):
        review.blind = False
