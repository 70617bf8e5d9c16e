"""How pages write counts, shares, durations and money (`curation.web.text.figures`), with one row of everything."""

import re
from collections.abc import Iterator
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from curation.duels.models import Exclusion
from curation.evaluations.models import (
    ContaminationCheck,
    EvaluatedModel,
    Evaluation,
    ScreenedAnswer,
    ScreenedAnswerText,
    Split,
    SplitRow,
    SplitRowText,
)
from curation.exports.models import Export, ExportFile
from curation.llm.models import Endpoint
from curation.projects.models import Deletion, Project
from curation.review.models import Batch, Decision
from curation.runs.models import Call, Item, Run, RunEvent
from curation.trajectories.models import Pair, Replay
from curation.web.text.figures import counted
from curation.webhooks.models import Delivery, Webhook
from tests.e2e.addresses import OF_PROJECT
from tests.factories import (
    make_duel,
    make_endpoint,
    make_project,
    make_prompt,
    make_pull_request,
    make_run,
    make_sample,
    make_scenario,
    make_trajectory,
    make_user,
)

ROOT = Path(__file__).resolve().parents[2]
# The kind of samples that a question is about; a rate with a decimal.
ALLOWED = re.compile(r"about_label|floatformat:1")
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SOURCES = [*TEMPLATES, *sorted((ROOT / "curation").rglob("*.py"))]
NOUN = re.compile(r"""counted(?::"|\([^"']+, ["'])([a-z -]+)["']""")
# Nouns that are counted somewhere, by their last word: `failed item` is an item.
PLURALS = sorted(
    {counted(2, noun.split()[-1])[2:] for path in SOURCES for noun in NOUN.findall(path.read_text())} - {"ns"}
)
WRONG = {
    "one of several": re.compile(rf"(?<![\w.,:/#-])1 (?:[a-z]+ )?(?:{'|'.join(PLURALS)})\b"),
    "a thousand milliseconds": re.compile(r"\d{4,} ?ms\b"),
    "no space before the sign": re.compile(r"\d%"),
    "the dollar sign at the end": re.compile(r"\d ?\$(?!\d)"),
    "a zero below zero": re.compile(r"(?<![\w.-])[-−]0(?:\.0+)?(?![\d.:])"),
}
# A number and a plural noun: the filter `counted` knows the singular too.
PLURAL_AFTER_VALUE = re.compile(rf"\{{\{{([^{{}}]*)\}}\}} ?(?:[a-z]+ )?(?:{'|'.join(PLURALS)})\b")
# A page's title and heading, and what remains of them where a name is missing.
NAMES = re.compile(r"<(title|h1)[^>]*>(.*?)</", re.DOTALL)
NAMELESS = re.compile(r"^\s*$|: *·|^\s*·")
SIGN_AFTER_VALUE = re.compile(r"\}\}(?:<span class=\"unit\">)?(?:%|ms\b)")


class _Shown(HTMLParser):
    """The text of a page that a person reads or hears, without scripts and curl lines."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in ("script", "style", "template")
        self.parts += [
            f"\n{value}\n" for name, value in attrs if name in ("title", "aria-label", "placeholder") and value
        ]
        self.parts.append("\n" if tag not in ("span", "b", "strong", "a", "kbd", "code") else "")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in ("script", "style", "template")
        self.parts.append("\n" if tag in ("td", "th", "dt", "dd", "p", "li", "div", "option") else "")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def shown_text(page: str) -> str:
    parser = _Shown()
    parser.feed(page)
    return re.sub(r"[ \t]+", " ", "".join(parser.parts))


def wrong_in(text: str) -> Iterator[str]:
    for name, pattern in WRONG.items():
        for found in pattern.finditer(text):
            yield f"{name}: …{text[max(0, found.start() - 40) : found.end() + 20]}…"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1 rows", "one of several"),
        ("Trying 1 failed items again.", "one of several"),
        ("took 12345 ms", "a thousand milliseconds"),
        ("62% of them", "no space before the sign"),
        ("0.5 $", "the dollar sign at the end"),
        ("behind by -0.0 points", "a zero below zero"),
    ],
)
def test_the_rules_find_what_they_are_for(text: str, name: str) -> None:
    assert [found.partition(":")[0] for found in wrong_in(text)] == [name]


@pytest.mark.parametrize(
    "text", ["1 row", "21 rows", "840 ms", "62 % of 10", "$0.50", "2026-01-05 10:00", "run 1, rows"]
)
def test_the_rules_leave_alone_what_is_right(text: str) -> None:
    assert list(wrong_in(text)) == []


def test_templates_count_with_the_filter() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in TEMPLATES
        for match in PLURAL_AFTER_VALUE.finditer(path.read_text())
        if not ALLOWED.search(match[1])
    ]
    assert found == []


def test_templates_write_shares_and_milliseconds_with_the_filters() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in TEMPLATES
        for match in SIGN_AFTER_VALUE.finditer(path.read_text())
    ]
    assert found == []


@pytest.fixture
def world(client: Client) -> dict[str, list[str]]:
    """A project with one row of everything, and the arguments of its pages by the name of their address."""
    user = make_user("ada", is_staff=True, is_superuser=True)
    project = make_project("demo", user=user)
    client.force_login(user)
    endpoint = make_endpoint(project, "large", price_in=Decimal("0.5"), price_out=Decimal(2), rpm=1, tpm=1)
    run = make_run(project, state="succeeded", stage="judge", params={"mode": 2}, **ONE_ITEM)
    Item.objects.create(run=run, stage="judge", key="a", state="failed", reason="It failed.")
    RunEvent.objects.create(run=run, message="Launched.")
    call = _call(project, run, endpoint)
    duel = make_duel(project, run=run)
    make_pull_request(project, duel.prompt.instance_id, patch_tokens=1, files=["a"])
    prompt = make_prompt(project, history=[{"role": "user", "content": "Fix it."}], tokens=1)
    Exclusion.objects.create(project=project, instance_id="acme__other", reason="broken")
    Decision.objects.create(
        sample=make_sample(project, status="approved", decided_by=user),
        reviewer=user,
        action="approve",
        seconds=3725,
        version=1,
    )
    Batch.objects.create(project=project, key="b", reviewer=user, action="approve", changed=1, restored=0)
    scenario = make_scenario(project)
    chosen = make_trajectory(project, scenario, run=run, commands=("todo",), outputs=("ok\n",), tokens=1)
    rejected = make_trajectory(
        project, scenario, run=run, commands=("ls",), outputs=("ok\n",), outcome="wrong_terminal", sample_index=1
    )
    Pair.objects.create(project=project, run=run, scenario=scenario, chosen=chosen, rejected=rejected, at=1)
    Replay.objects.create(trajectory=chosen, run=run, agrees=True)
    export = _export(project)
    evaluation, answer = _evaluation(project)
    hook = Webhook.objects.create(project=project, url="https://example.org/hook", events=["run.finished"], nonce="n")
    Delivery.objects.create(
        webhook=hook, event="run.finished", body={}, due_at=timezone.now(), attempts=1, latency_ms=12_345
    )
    deletion = Deletion.objects.create(
        noun="run", target_id=0, project_id=project.pk, label="run 0", requested_by=user, counts={"items": 1}
    )
    slug = [project.slug]
    detail = {
        "duel-page": duel.pk,
        "prompt-page": prompt.pk,
        "sample-page": duel.sample_id,
        "scenario-page": scenario.pk,
        "trajectory-page": chosen.pk,
        "run-page": run.pk,
        "run-items": run.pk,
        "run-calls": run.pk,
        "call-exports": call.pk,
        "export-page": export.pk,
        "evaluation-page": evaluation.pk,
        "evaluation-calls": evaluation.pk,
        "split-page": evaluation.split_id,
        "model-usage": endpoint.name,
        "sample-count": None,
        "sample-bulk-confirm": None,
    }
    pages = {name: [*slug, *([str(pk)] if pk is not None else [])] for name, pk in detail.items()}
    return {
        **dict.fromkeys(OF_PROJECT, slug),
        **pages,
        "evaluation-call": [*slug, str(evaluation.pk), str(answer.pk)],
        "home": [],
        "project-overview": [],
        "components": [],
        "change-password": [],
        "notification-list": [],
        "deletion-page": [str(deletion.pk)],
    }


QUERY = {"sample-bulk-confirm": "?action=approve&all=1"}
ONE_ITEM: dict[str, Any] = {
    "items_total": 1,
    "items_failed": 1,
    "calls": 1,
    "tokens_in": 1,
    "tokens_out": 1,
    "cost": Decimal("0.00012"),
    "cost_unknown_calls": 1,
}


def _call(project: Project, run: Run, endpoint: Endpoint) -> Call:
    return Call.objects.create(
        project=project,
        run=run,
        endpoint=endpoint,
        endpoint_name=endpoint.name,
        content_hash="0" * 64,
        status="ok",
        latency_ms=12_345,
        first_token_ms=1_234,
        tokens_in=1,
        tokens_out=1,
        cost=Decimal("0.00012"),
    )


def _export(project: Project) -> Export:
    counts = {
        "samples": 1,
        "exported": 1,
        "rows": {"dpo": {"train": 1, "val": 1}},
        "excluded": {"draw": 1},
        "groups": {"group_by": "repo", "groups": 1},
        "tokens": {"edges": [1000], "rows": [1, 1]},
        "balance": {"kept": 1, "exit": 0.625, "panic": 0.0, "empty_queue": 0.0, "blocked": 0.0},
        "contamination": {
            "samples": 1,
            "left_out": True,
            "held_out": [{"label": "test", "rows": 1, "whole_only": 1}],
            "levels": {"prompt": 1},
            "embedded": 1,
            "not_embedded": 1,
        },
    }
    run = make_run(project, "export", state="succeeded", **ONE_ITEM)
    export = Export.objects.create(project=project, run=run, recipe={"formats": ["dpo"]}, counts=counts, ready=True)
    ExportFile.objects.create(export=export, name="dpo.train.jsonl", format="dpo", split="train", rows=1, bytes=1)
    return export


def _evaluation(project: Project) -> tuple[Evaluation, ScreenedAnswer]:
    run = make_run(project, "evaluate", state="succeeded", **ONE_ITEM)
    split = Split.objects.create(project=project, name="held out", rows_count=1)
    row = SplitRow.objects.create(split=split, number=0, tier="easy", preview="List the users")
    SplitRowText.objects.create(row=row, messages=[{"role": "user", "content": "List the users"}], expected="ls")
    evaluation = Evaluation.objects.create(project=project, run=run, split=split, family={"name": "shell"})
    rates = dict.fromkeys(("fmt", "xtr", "exact", "svc", "op_token", "service_and_op", "exact_shell"), 1.0)
    figures = {"model": "large", "n": 1, "errors": 1, "cut": 1, "lat": 12.345, "len": 1, **rates}
    intervals = {name: [0.2, 1.0] for name in rates}
    by = EvaluatedModel.objects.create(
        evaluation=evaluation, place=0, name="large", figures={**figures, "intervals": intervals}, **RANK
    )
    flags = dict.fromkeys(rates, True)
    answer = ScreenedAnswer.objects.create(
        evaluation=evaluation, by=by, row=row, mark="exact", latency_ms=12_345, length=1, **flags
    )
    ScreenedAnswerText.objects.create(screened=answer, completion="ls", extracted="ls")
    counts = {"rows": 1, "training_rows": 1, "contaminated": 1, "whole_only": 1, "not_embedded": 1, "prompt": 1}
    checked = make_run(project, "contamination", state="succeeded", **ONE_ITEM)
    ContaminationCheck.objects.create(split=split, run=checked, against="an upload", counts=counts, ready=True)
    return evaluation, answer


RANK: dict[str, Any] = {"xtr": 1.0, "exact": 1.0, "lat": 12.345}


@pytest.mark.django_db
def test_pages_with_one_row_of_everything(client: Client, world: dict[str, list[str]]) -> None:
    found = []
    for name, args in world.items():
        answer = client.get(reverse(name, args=args) + QUERY.get(name, ""), follow=True)
        assert answer.status_code == 200, name
        page = answer.content.decode()
        found += [f"{name}: {wrong}" for wrong in wrong_in(shown_text(page))]
        found += [f"{name}: {tag} of nothing: {text}" for tag, text in NAMES.findall(page) if NAMELESS.search(text)]
    assert found == []


@pytest.mark.django_db
def test_a_filter_has_the_words_of_the_badges(client: Client, world: dict[str, list[str]]) -> None:
    url = reverse("sample-list", args=world["sample-list"])
    page = client.get(f"{url}?status=needs_refine").content.decode()
    assert '<option value="needs_refine" selected>Needs refining</option>' in page
    assert "status <b>Needs refining</b>" in page
    several = client.get(f"{url}?bucket=final,refined").content.decode()
    assert '<option value="final,refined" selected>Final or Refined</option>' in several


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "query", "text"),
    [
        ("duel-list", "?bucket=final", "No duel matches"),
        ("run-list", "?state=queued", "No run matches"),
        ("suggestion-list", "?outcome=kept", "No suggestion matches"),
        ("call-list", "?model=other", "No call matches"),
    ],
)
def test_a_filter_without_rows_can_be_cleared(client: Client, name: str, query: str, text: str) -> None:
    user = make_user()
    url = reverse(name, args=[make_project("demo", user=user).slug])
    client.force_login(user)
    page = client.get(url + query).content.decode()
    assert text in page and f'href="{url}">Clear the filter</a>' in page
    assert text not in client.get(url).content.decode()
