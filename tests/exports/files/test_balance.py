"""Terminal balance: on preview, page, card, manifest and by the API, with a warning outside the project's band."""

import itertools
from collections import Counter
from typing import Any

import orjson
import pytest
from django.test import Client
from django.urls import reverse

from curation.exports.files.counts import ExportCounts
from curation.projects.models import Project, Role
from curation.projects.settings.document import Balance, ProjectSettings
from curation.trajectories.models import Outcome
from tests.exports.exporting import content, export_of, make_approved, make_kept
from tests.factories import make_bearer, make_member, make_project, make_scenario, make_trajectory, make_user, ticket

SFT = {"formats": ["sft-messages", "dpo"]}
BALANCE = {"kept": 4, "exit": 0.75, "panic": 0.25, "empty_queue": 0.25, "blocked": 0.25}
WARNING = "25 % of 4 kept trajectories end in panic, more than the project's band of 5 % to 20 %."


def filled(**band: float) -> Project:
    """Three exits, one of them of an empty queue, and a panic; a failed panic and a turn, which are not counted."""
    project, user = (
        make_project(settings_json=ProjectSettings(balance=Balance(**band)).model_dump(mode="json")),
        make_user(),
    )
    empty = make_scenario(project, bundle={"axes": {"task": "empty-queue"}})
    blocked = make_scenario(project, bundle={"axes": {"task": "blocked"}, "expected_terminal": "panic"})
    commands = ((f"echo {ticket(number)[:90]}",) for number in itertools.count())
    for scenario in (None, None, empty):
        make_kept(project, scenario, by=user, commands=next(commands))
    panic = {"outcome": Outcome.CORRECT_PANIC, "terminal": "panic locked"}
    make_kept(project, blocked, by=user, commands=next(commands), **panic)
    make_kept(project, by=user, commands=next(commands), outcome=Outcome.WRONG_TERMINAL, terminal="panic")
    make_trajectory(project, outcome=Outcome.CORRECT_PANIC, terminal="panic")
    for number in range(5):
        make_approved(project, by=user, challenger=f"I read it again. {ticket(number)}")
    return project


@pytest.mark.django_db(transaction=True)
def test_the_manifest_and_the_card_have_the_shares_and_the_warning() -> None:
    export = export_of(filled(panic_high=0.2), SFT)
    assert (export.counts["balance"], export.counts["warnings"]) == (BALANCE, [WARNING])
    counts = orjson.loads(content(export, "manifest.json"))["counts"]
    assert (counts["balance"], counts["warnings"]) == (BALANCE, [WARNING])
    card = content(export, "README.md").decode()
    assert "| panic | 25.0 % |" in card and "| empty-queue | 25.0 % |" in card and WARNING in card


@pytest.mark.django_db(transaction=True)
def test_the_api_warns_before_and_after_writing() -> None:
    project = filled(panic_high=0.2)
    headers = make_bearer(make_member(project, role=Role.CURATOR))

    def call(method: str, path: str, **options: Any) -> Any:
        return getattr(Client(), method)(f"/api/v1{path}", headers=headers, **options).json()

    body = {"data": {"recipe": SFT}, "content_type": "application/json"}
    preview = call("post", f"/projects/{project.slug}/exports/preview", **body)
    export = export_of(project, SFT)
    assert (preview["balance"], preview["warnings"]) == (BALANCE, [WARNING])
    assert call("get", f"/exports/{export.pk}")["warnings"] == [WARNING]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("high", "warned"), [(0.2, True), (0.25, False)])
def test_preview_and_page_show_shares_and_warn_only_outside_the_band(client: Client, high: float, warned: bool) -> None:
    project = filled(panic_high=high)
    client.force_login(make_member(project, role=Role.CURATOR))
    form = {"formats": ["sft-messages"], "train": "1", "seed": "0", "group_by": "instance_id"}
    preview = client.post(reverse("export-preview", args=[project.slug]), {**form, "sources": ["scenarios"]})
    page = client.get(reverse("export-page", args=[project.slug, export_of(project, SFT).pk]))
    for shown in (preview.content.decode(), page.content.decode()):
        assert "empty-queue" in shown and "25.0 %" in shown
        assert ("Check before you train" in shown) is warned


@pytest.mark.django_db(transaction=True)
def test_an_export_without_trajectories_has_no_balance() -> None:
    project = make_project()
    make_approved(project)
    export = export_of(project, SFT)
    assert (export.counts["balance"], export.counts["warnings"]) == (None, [])
    assert "Terminals" not in content(export, "README.md").decode()


@pytest.mark.parametrize(
    ("panics", "exits", "words"), [(0, 100, "fewer"), (4, 96, "fewer"), (5, 95, None), (50, 50, None), (51, 49, "more")]
)
def test_the_band_includes_its_limits(panics: int, exits: int, words: str | None) -> None:
    balance = ExportCounts(terminals=Counter(panic=panics, exit=exits)).balance()
    assert balance is not None
    warnings = balance.warnings(Balance())
    assert len(warnings) == (words is not None)
    assert all(str(words) in warning for warning in warnings)
