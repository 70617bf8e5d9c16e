import re
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from curation.duels.models import Duel, Verdict
from curation.duels.score.models import ScorePanel
from curation.projects.models import Project
from curation.samples.models import Flag
from tests.factories import make_duel, make_run

pytestmark = pytest.mark.usefixtures("signed_in")
HOSTILE = "THOUGHT: <script>alert(1)</script> \x1b[31m\n\n```bash\necho '</code><b>'\n```"


def html(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_a_tab_filters_the_list_and_keeps_the_run(client: Client, project: Project) -> None:
    run = make_run(project)
    make_duel(project, run=run, bucket="final", instance_id="the-best")
    make_duel(project, run=run, bucket="defeat", instance_id="the-lost")
    make_duel(project, bucket="final", instance_id="another-run")
    shown = html(client, f"/p/acme/duels/?run={run.pk}&bucket=final")
    assert "the-best" in shown and "the-lost" not in shown and "another-run" not in shown
    assert f'href="/p/acme/duels/?bucket=defeat&amp;run={run.pk}"' in shown
    assert f'href="/p/acme/duels/?bucket=final&amp;run={run.pk}" aria-current="page"' in shown
    assert '<a class="chip__remove" href="/p/acme/duels/?bucket=final"' in shown


def test_every_condition_is_a_chip_and_goes_with_those_that_need_it(client: Client, project: Project) -> None:
    run = make_run(project)
    make_duel(project, run=run)
    shown = html(client, f"/p/acme/duels/?run={run.pk}&judge=judge-a&said=parsed&score_min=10")
    removed = re.findall(r'href="([^"]+)" aria-label="Remove the filter ([^"]+)"', shown)
    assert [(unescape(url), label) for url, label in removed] == [
        ("/p/acme/duels/?score_min=10", f"run {run.pk}"),
        (f"/p/acme/duels/?run={run.pk}&score_min=10", "judge judge-a"),
        (f"/p/acme/duels/?run={run.pk}&judge=judge-a&score_min=10", "said parsed"),
        (f"/p/acme/duels/?run={run.pk}&judge=judge-a&said=parsed", "score from 10"),
    ]
    assert all(client.get(unescape(url)).status_code == 200 for url, _ in removed)


def test_the_list_pages_by_keyset_in_a_fixed_number_of_queries(client: Client, project: Project) -> None:
    counts = []
    for _ in range(2):
        for _ in range(3):
            make_duel(project)
        with CaptureQueriesContext(connection) as queries:
            html(client, "/p/acme/duels/")
        counts.append(len(queries))
    assert counts[0] == counts[1]
    first = html(client, "/p/acme/duels/?limit=4")
    assert "cursor=" in first


def test_an_empty_list_says_how_to_create_duels(client: Client, project: Project) -> None:
    assert "No duels yet" in html(client, "/p/acme/duels/")


def test_a_duel_shows_answers_facts_leaks_and_verdicts_escaped(client: Client, project: Project) -> None:
    duel = make_duel(project, challenger=HOSTILE, flags=Flag.LEAK)
    duel.challenger.leak_score = 0.5
    span = {"start": 9, "end": 17, "token": "<script>", "kind": "text", "place": "patch", "offset": 0}
    duel.challenger.leak_spans = [span]
    duel.challenger.save()
    Verdict.objects.filter(duel=duel, judge="judge-c").update(
        parsed=False, dimensions={}, raw="<img src=x>", reason="why"
    )
    shown = html(client, f"/p/acme/duels/{duel.pk}/")
    assert "<script>alert" not in shown and "<img src=x>" not in shown and "\x1b" not in shown
    assert '<mark class="leak">&lt;script&gt;</mark>' in shown
    assert "&lt;script&gt;" in shown and "&lt;img src=x&gt;" in shown
    for part in ("judge-a", "King first", "unparsed", "1 bash block", "leak score 0.50", "leak", "70.0", "2 messages"):
        assert part in shown
    assert f'href="/p/acme/samples/{duel.sample_id}/"' in shown


def test_each_judge_has_one_row_with_both_orders_flips_marked_and_answers_named(
    client: Client, project: Project
) -> None:
    duel = make_duel(project)
    Verdict.objects.filter(duel=duel, judge="judge-b", order="king_first").update(
        dimensions={**dict.fromkeys(("grounding", "progress", "protocol", "efficiency"), 0), "correctness": 1},
        reason="Answer 1 edits <b>, answer 2 only reads.",
        raw="Answer 1 edits <b>, so 1.",
    )
    shown = html(client, f"/p/acme/duels/{duel.pk}/")
    rows = {name: shown.split(f'<th scope="row">{name}')[1].split("</tbody>")[0] for name in ("judge-a", "judge-b")}
    assert all(shown.count(f'<th scope="row">{name}') == 1 for name in rows)
    digest = ScorePanel.objects.get().digest
    assert f'judged by <span title="Panel {digest}">judge-a, judge-b, judge-c</span>' in " ".join(shown.split())
    assert f">{digest}<" not in shown
    assert rows["judge-a"].count("verdicts__flip") == 0 and rows["judge-b"].count("verdicts__flip") == 2
    assert "2 flips" in rows["judge-b"]
    # Correctness: the king with the king first, the challenger with the challenger first.
    first_cell = rows["judge-b"].split("</td>")[0]
    assert first_cell.index("</span>king</span>") < first_cell.index("</span>challenger</span>")
    named = '<span class="renamed" title="The judge wrote: {}">{}</span>'
    assert named.format("Answer 1", "The king") + " edits &lt;b&gt;, " in rows["judge-b"]
    assert named.format("answer 2", "the challenger") + " only reads." in rows["judge-b"]
    # The same words name the other answer in the other order.
    assert rows["judge-a"].count(named.format("The second", "The challenger")) == 1
    assert rows["judge-a"].count(named.format("The second", "The king")) == 1
    assert "Answer 1 edits &lt;b&gt;, so 1." in rows["judge-b"]
    assert "opponent" not in rows["judge-b"]


def test_a_duel_against_the_reference_names_it(client: Client, project: Project) -> None:
    duel = make_duel(project)
    duel.king, duel.opponent = None, "reference"
    duel.save()
    shown = html(client, f"/p/acme/duels/{duel.pk}/")
    assert ">Reference<" in shown and "Reference first" in shown and ">The reference</span>" in shown


@pytest.mark.parametrize("expected", [-1, 1])
@pytest.mark.parametrize(
    ("control", "added", "told"),
    [
        ("fault", "with a planted fault", "one answer has a planted fault, so the other one is better"),
        ("bribe", "with a bribe for the judge", "one has a bribe for the judge, which must not win by it"),
    ],
)
def test_a_control_duel_opens_from_its_list_and_shows_both_sides(
    client: Client, project: Project, expected: int, control: str, added: str, told: str
) -> None:
    run = make_run(project)
    duel = make_duel(project, challenger="the answer itself")
    Duel.objects.filter(pk=duel.pk).update(
        control=control, expected=expected, planted="the answer with more", king=None, sample=None
    )
    listed = html(client, "/p/acme/duels/?control=true")
    (address,) = re.findall(r'href="(/p/acme/duels/\d+/)"', listed)
    assert "Control duels: their outcome is known." in listed
    shown = html(client, f"{address}?run={run.pk}")
    assert told in shown
    king, challenger = re.findall(r'<article class="answer">.*?</article>', shown)
    faulty, sound = (king, challenger) if expected == 1 else (challenger, king)
    assert added in faulty and "the answer with more" in faulty
    assert "the answer itself" in sound and added not in sound


def test_the_pages_of_preferences_have_their_words(client: Client, project: Project) -> None:
    Project.objects.update(settings_json={"data": {"kind": "preferences"}})
    duel = make_duel(project)
    assert ">Rejected</a>" in html(client, "/p/acme/duels/")
    page = html(client, f"/p/acme/duels/{duel.pk}/")
    section = page[page.index('<div class="figures">') : page.index("<h2>History")]
    assert ">Chosen<" in section and ">Rejected<" in section and "the chosen first" in section
    assert ">King<" not in section and ">Challenger<" not in section and "bash block" not in section
