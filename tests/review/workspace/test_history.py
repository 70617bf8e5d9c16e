import re

import pytest
from django.test import Client

from curation.projects.access import Access
from curation.projects.models import Project
from curation.review.decisions.decide import decide
from curation.review.decisions.revise import revise
from curation.review.models import Lease
from curation.samples.models import Flag
from tests.factories import make_duel, set_history
from tests.review.browsing import HTMX, body, url
from tests.review.rows import judged, sample_of

pytestmark = pytest.mark.django_db


def test_the_panel_claims_nothing_and_stays_blind_until_decided(client: Client, me: Access, project: Project) -> None:
    sample = judged(project, flags=int(Flag.LEAK))
    page = body(client.get(url("sample-panel", sample.pk), headers=HTMX))
    assert "shown after the decision" in page and "king-a" not in page and "leak" not in page
    assert not Lease.objects.exists()
    decide(access=me, sample_id=sample.pk, action="approve", preference="king")
    page = body(client.get(url("sample-panel", sample.pk), headers=HTMX))
    assert "judge-a" in page and "kept" in page and "leak" in page


def test_leak_spans_and_revisions_are_shown_after_the_decision(client: Client, me: Access, project: Project) -> None:
    duel = make_duel(project, challenger="THOUGHT: call parse_comma now.\n\n```bash\ngrep parse_comma src\n```")
    text = duel.challenger.text.text
    starts = [text.index("parse_comma"), text.rindex("parse_comma")]
    duel.challenger.leak_spans = [{"start": start, "end": start + 11} for start in starts]
    duel.challenger.leak_flag = True
    duel.challenger.save()
    page = body(client.post(url("sample-page", duel.sample_id)))
    assert "<mark" not in page
    decide(access=me, sample_id=sample_of(duel).pk, action="approve")
    page = body(client.post(url("sample-page", duel.sample_id)))
    assert page.count('<mark class="leak">parse_comma</mark>') == 2
    revise(access=me, sample_id=sample_of(duel).pk, text="THOUGHT: call split now.", note="no names")
    page = body(client.post(url("sample-page", duel.sample_id)))
    assert "<b>Revision 1</b> of the challenger" in page and "no names" in page and "<del>" in page and "<ins>" in page


def test_the_diff_marks_the_words_of_one_side(client: Client, me: Access, project: Project) -> None:
    sample = judged(project, king="a b c", challenger="a x c")
    decide(access=me, sample_id=sample.pk, action="approve")
    page = body(client.get(url("answer-diff", sample.pk)))
    assert "<del>b</del>" in page and "<ins>x</ins>" in page


def test_hostile_history_is_escaped_and_control_characters_are_shown(
    client: Client, me: Access, project: Project
) -> None:
    history = [
        {"role": "user", "content": "<script>alert(1)</script>"},
        {"role": "assistant", "content": "THOUGHT: x\n\n```bash\necho '<img src=x>' \x1b]0;title\x07\n```"},
        {"role": "user", "content": "\x1b[31mred\x1b[0m \u202eevil"},
    ]
    duel = make_duel(project)
    set_history(duel.prompt, history)
    page = body(client.post(url("sample-page", duel.sample_id)))
    assert "<script>alert" not in page and "<img src=x>" not in page
    assert not re.search("[\x07\x1b\u202e]", page)
    assert "␛[31m" not in page, "colours of a terminal say nothing here"
    assert "␛]0;title␇" in page and "⟨U+202E⟩" in page


def test_a_long_history_opens_with_its_task_and_last_turns_and_loads_windows(
    client: Client, me: Access, project: Project
) -> None:
    history = [{"role": "system", "content": "s"}, {"role": "user", "content": "the task"}]
    history += [{"role": ("assistant", "user")[n % 2], "content": f"turn number {n}"} for n in range(200)]
    duel = make_duel(project)
    set_history(duel.prompt, history)
    pk = duel.sample_id
    page = body(client.post(url("sample-page", pk)))
    assert "the task" in page and "turn number 199" in page and "turn number 150" not in page
    assert "197 turns folded" in page
    window = body(client.get(url("history-window", pk), {"start": 1, "end": 198, "bottom": 1}))
    assert "157 turns folded" in window
    assert "turn number 195" in window and "turn number 156" in window and "turn number 155" not in window
    assert "turn number 42" in body(client.get(url("history-turn", pk, 44)))
    assert client.get(url("history-turn", pk, 900)).status_code == 404
    found = body(client.get(url("history-find", pk), {"q": "NUMBER 42"}))
    assert "<strong>1 turn</strong>" in found and "q=NUMBER%2042" in found
    marked = body(client.get(url("history-turn", pk, 44), {"q": "number 42"}))
    assert '<mark class="found">number 42</mark>' in marked


def test_a_huge_output_comes_in_pieces_and_raw(client: Client, me: Access, project: Project) -> None:
    duel = make_duel(project)
    history = [
        {"role": "user", "content": "task"},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "line of output\n" * 80_000 + "needle"},
    ]
    set_history(duel.prompt, history)
    pk = duel.sample_id
    page = client.post(url("sample-page", pk))
    assert len(page.content) < 120_000 and "Show more" in body(page)
    more = body(client.get(url("history-turn", pk, 2), {"start": 16_000}))
    assert "from character 16,000" in more and "start=32000" in more
    assert '<mark class="found">needle</mark>' in body(client.get(url("history-turn", pk, 2), {"q": "needle"}))
    raw = client.get(url("history-raw", pk))
    assert raw["Content-Type"].startswith("text/plain") and raw.content.endswith(b"needle")
    assert client.get(url("history-raw", pk), {"turn": 1}).content == b"x"
