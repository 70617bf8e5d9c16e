"""The report of a run: the same figures as Markdown and on the run's page."""

from decimal import Decimal

import pytest
from django.template.loader import render_to_string
from django.test import Client

from curation.duels.models import Duel
from curation.duels.prompts.exclusions import exclude
from curation.duels.verdict.report import conclusion_of, report_of, report_section
from curation.llm.models import Endpoint
from curation.runs.models import Run
from tests.duels.running import DIMENSIONS, Models, first, make_arena, page_of, prose, report, run_to_end, serve
from tests.factories import make_bearer, make_member, make_project, make_prompt, make_run, make_user
from tests.world import world

pytestmark = pytest.mark.django_db(transaction=True)
HOSTILE = "<script>alert(1)</script>|x`y`[z](javascript:1)\x1b[31m\\"


def page(run: Run) -> str:
    context = {"project": run.project, **report_section(run)}
    return " ".join(render_to_string("duels/verdict/_report.html", context).split())


@world
def run(patched: pytest.MonkeyPatch) -> Run:
    """Three duels, one judge that flips, one that is silent and of the king's family, a prompt without a record."""
    serve(patched).says |= {"judge-b": first, "judge-c": prose}
    project, prompts = make_arena(prompts=3)
    Endpoint.objects.filter(name__in=["king", "judge-c"]).update(family="qwen")
    Endpoint.objects.filter(name="judge-a").update(price_in=Decimal(1), price_out=Decimal(1))
    make_prompt(project, history=[{"role": "user", "content": "No record of this."}])
    exclude(project=project, rows=[("acme__gone-1", "broken environment")], user=make_user())
    return run_to_end(project, min_judges=2, attempts=1)


def test_every_figure_is_in_the_report(client: Client, run: Run) -> None:
    text = report(client, run)
    for line in (
        f"# Duel run {run.pk} of {run.project.slug}",
        "- state: succeeded",
        "- king: king",
        "- challenger: challenger",
        "- duels: 3, of which 3 parsed",
        "- final: 0",
        "- refined: 3",
        "- mean answer length: winners 10.0, losers 10.0 tokens",
        "- margin (challenger minus king, points): 50.0, not known",
        "- lower bound (LCB), resampled by pull request, 3 of them (points): -13.2",
        "- lower bound (LCB), resampled by turn (points): -13.2",
        "- No parsed duel has a leak flag",
        "- The verdict rests on no informative judges of 3: judge-a parsed in no control duel with a known winner;"
        " judge-b flips in 100 % of its dimensions; judge-c parsed in 0 of 3 duels. With fewer than 2, none was left"
        " out to check it. All duels are of acme/billing: it says nothing about other repositories.",
        "| judge-a | 3 | 100.0 % | 0.0 % | 100.0 % | 0.0 % | 660 | $0.00066 |  |",
        "| judge-b | 3 | 50.0 % | 100.0 % | 100.0 % | 0.0 % | 660 | unknown |  |",
        "- challenger: 1 × no pull-request record: it cannot be challenged",
        "- excluded instance acme__gone-1: broken environment",
    ):
        assert line in text.splitlines(), [one for one in text.splitlines() if one[:18] == line[:18]]
    (silent,) = [line for line in text.splitlines() if line.startswith("| judge-c ")]
    assert "**Undecided**: it rests on 3 pull requests, 10 are needed; " in text
    assert silent.startswith("| judge-c | 0 | – | – | 0.0 % | – | 660 | unknown |") and "self-preference" in silent
    assert f"calls: {run.calls}, tokens in: {run.tokens_in}" in text
    assert "cost: $0.00066 and 19 calls of unknown cost" in text
    rows = [line for line in text[text.index("## Turns") :].splitlines() if line.startswith("| 7")]
    prompt = Duel.objects.order_by("id")[0].prompt
    place = f"turns.jsonl:{prompt.row_offset}:2"
    metrics = " | ".join(["75.0"] * len(DIMENSIONS))
    assert len(rows) == 3
    assert rows[0] == f"| 75.0 | refined | {place} | {prompt.instance_id} | read | {metrics} | flip |"


def test_the_page_shows_the_same(client: Client, run: Run) -> None:
    html = page(run)
    assert "no informative judges of 3" in html and "undecided" in html
    for part in ("50.0", "judge-a", "100.0 %", "own family", "no pull-request record", "unknown"):
        assert part in html
    assert f"/p/{run.project.slug}/samples/?run={run.pk}&amp;bucket=refined" in html
    assert f"/p/{run.project.slug}/duels/?run={run.pk}" in html
    assert f"/api/v1/runs/{run.pk}/report.md" in html
    assert "acme__gone-1" in html and "broken environment" in html


def test_the_runs_page_has_the_section(client: Client, run: Run) -> None:
    shown = page_of(client, run)
    assert 'id="run-verdict"' in shown and f"/api/v1/runs/{run.pk}/report.md" in shown


def test_a_bucket_of_the_report_is_a_filter_of_the_samples(client: Client, run: Run) -> None:
    bearer = make_bearer(make_member(run.project, role="curator"))
    listed = client.get(f"/api/v1/projects/{run.project.slug}/samples?run={run.pk}&bucket=refined", headers=bearer)
    assert len(listed.json()["data"]) == run.result["buckets"]["refined"] == 3


def test_a_report_keeps_the_scores_of_its_run_after_a_rescore(client: Client, run: Run) -> None:
    before = report(client, run)
    project = run.project
    project.settings_json |= {"thresholds": {"final": 10, "refined": 5}}
    project.save()
    again = run_to_end(project, "rescore", judges=["judge-b"], weights={"correctness": 0})
    assert again.scores.filter(bucket="final").count() == 3
    assert report(client, run) == before
    assert "- final: 3" in report(client, again)


def test_the_report_says_why_a_challenger_is_not_accepted(client: Client, models: Models) -> None:
    models.says |= dict.fromkeys(("judge-a", "judge-b", "judge-c"), first)
    project, _ = make_arena(prompts=2)
    run = run_to_end(project)
    for text in (report(client, run), page(run)):
        assert "ndecided" in text
        assert "the margin of 0.00 points is below 2" in text
        assert "points is not above 0" in text


def test_without_a_parsed_duel_nothing_is_said_to_be_free_of_flags(client: Client, models: Models) -> None:
    models.says["judge-a"] = prose
    project, _ = make_arena(prompts=1, judges=("judge-a",))
    run = run_to_end(project, attempts=1)
    text = report(client, run)
    assert "no duel was parsed" in text and "No parsed duel has" not in text + page(run)
    assert "| judge-a | 0 | – | – | 0.0 % |" in text


def test_a_run_without_a_verdict_says_so(client: Client, run: Run) -> None:
    early = make_run(run.project, result={})
    assert "There is no verdict yet." in report(client, early)
    assert "The verdict is the last stage of the run." in page(early)


def test_an_unknown_cost_is_never_shown_as_0(client: Client, models: Models) -> None:
    project, _ = make_arena(prompts=1)
    run = run_to_end(project)
    assert "cost: unknown (8 calls of unknown cost)" in report(client, run)


def test_hostile_text_is_escaped_in_both(client: Client, models: Models) -> None:
    project, prompts = make_arena(prompts=1)
    prompts[0].source, prompts[0].instance_id = HOSTILE, HOSTILE
    prompts[0].save()
    project.pull_requests.update(instance_id=HOSTILE)
    exclude(project=project, rows=[("acme__gone-1", HOSTILE)], user=make_user())
    run = run_to_end(project)
    _hurt_reason(run)
    text, html = report(client, run), page(run)
    assert "<script" not in text and "<script" not in html
    assert "\x1b" not in text and "](javascript" not in text.replace("\\]", "")
    (row,) = [line for line in text[text.index("## Turns") :].splitlines() if line.startswith("| 100")]
    cells = row.replace("\\\\", "").replace("\\|", "").count("|")
    assert cells == 12
    assert "&lt;script&gt;alert(1)" in html


def _hurt_reason(run: Run) -> None:
    result = {**run.result, "skipped": {"judge": {HOSTILE: 1}}}
    Run.objects.filter(pk=run.pk).update(result=result)
    run.refresh_from_db()


def test_a_margin_that_is_rounded_to_zero_is_no_lead_and_has_no_sign() -> None:
    run = make_run(make_project(), result={"accepted": False, "margin": -0.04, "lcb": -0.04, "leaks": 1})

    assert conclusion_of(run) == "Not accepted: the challenger is level with its opponent; the lower bound is 0.0."
    assert report_of(run).pairs[0]["without_flagged"][0].startswith("Without the duel that has a leak flag: ")
