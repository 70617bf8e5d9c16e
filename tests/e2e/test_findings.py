"""The scan's findings in real Chromium: each entry of the list leads to its mark, which may have to be loaded."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from curation.projects.access import Access
from curation.review.decisions.decide import decide
from curation.review.decisions.findings import TextFinding, findings_of, flag_findings
from curation.samples.models import Sample
from curation.web.text.markup import with_signs
from judging.scan.rules import CONTROL
from tests.e2e.conftest import tab_of
from tests.factories import make_scenario, make_trajectory, make_turns, set_history
from tests.judging.scan.cases import FOUND
from tests.review.rows import judged, project_with_reviewer

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
KEY = FOUND["key"][4][1]
FILLER = "x = 1\n" * 5_000


@pytest.fixture
def access() -> Access:
    return project_with_reviewer(blind=False)


@pytest.fixture
def tab(browser: Browser, live_server: LiveServer, access: Access) -> Iterator[Page]:
    with tab_of(browser, live_server, access.user) as page:
        yield page


def follow_every_link(tab: Page, access: Access, sample: Sample) -> list[str]:
    """Follow the links from the last to the first, so that no link has loaded the place of the next one, and return the
    places in the order of the list."""
    flag_findings(sample)
    by_place: dict[tuple[str, int, int], TextFinding] = {}
    for row in findings_of(sample):
        by_place.setdefault(_place(row), row)
    found = list(by_place.values())
    tab.goto(f"/p/{access.project.slug}/samples/{sample.pk}/")
    links = tab.locator("#findings a")
    expect(links).to_have_count(len(found))
    for number in reversed(range(len(found))):
        link = links.nth(number)
        anchor = (link.get_attribute("href") or "").removeprefix("#")
        link.click()
        mark = tab.locator(f'[id="{anchor}"]')
        expect(mark).to_be_focused()
        expect(mark).to_be_in_viewport()
        expect(mark).to_have_text(with_signs(found[number].text[found[number].start : found[number].end]))
        assert mark.get_attribute("title") == found[number].rule
    return links.all_text_contents()


def _place(found: TextFinding) -> tuple[str, int, int]:
    """Control text is listed once for each text."""
    return found.part, found.index, -1 if found.kind == CONTROL else found.start


def test_a_turn_with_a_long_history(tab: Page, access: Access) -> None:
    sample = judged(access.project, challenger=f"THOUGHT: I ask dora@acme-corp.io.\n\n```bash\nmail {KEY}\n```")
    turns = [message for n in range(150) for message in _exchange(n)]
    turns[60]["content"] = "step 30\nadmin: ada@acme-corp.io"
    turns[100]["content"] = f"{FILLER}\x1b[31mmail bob@acme-corp.io\x1b[0m\n{FILLER}"
    call = {"name": "bash", "arguments": json.dumps({"command": f'curl -H "X-Token: {KEY}" api'})}
    turns[201] = {"role": "assistant", "content": "I call it.", "tool_calls": [{"id": "c", "function": call}]}
    history = [{"role": "user", "content": "Fix it, says carol@acme-corp.io."}, *turns]
    tools = [{"type": "function", "function": {"name": "bash", "description": "Ask eve@acme-corp.io first."}}]
    set_history(sample.duel.prompt, history, tools)
    decide(access=access, sample_id=sample.pk, action="flag", reason="look", comment="mail frank@acme-corp.io")

    places = follow_every_link(tab, access, Sample.objects.get(pk=sample.pk))

    assert [place for place in places if "answer" not in place] == [
        "history, turn 0",
        "history, turn 61",
        "history, turn 101",  # its control text, and the address
        "history, turn 101",
        "history, turn 202",
        "the tools",
        "a comment",
    ]
    assert len(places) == 9


def _exchange(n: int) -> list[dict[str, object]]:
    return [{"role": "assistant", "content": f"step {n}"}, {"role": "user", "content": f"output {n}"}]


def test_a_long_session_with_a_sibling(tab: Page, access: Access) -> None:
    scenario = make_scenario(access.project, "leave a greeting")
    commands = [f"echo {n}" for n in range(200)]
    commands[99] = f"export GITHUB_TOKEN={KEY}"
    outputs = [f"{n}" for n in range(200)]
    outputs[120] = f"{FILLER}mail bob@acme-corp.io\n"
    outputs[4] = "ada@acme-corp.io\n"
    turns = make_turns(*commands, terminal="exit", outputs=tuple(outputs))
    trajectory = make_trajectory(access.project, scenario, turns=turns)
    make_trajectory(
        access.project, scenario, commands=tuple(commands[:50]), outputs=tuple(outputs[:50]), sample_index=1
    )
    sample = trajectory.sample
    assert sample is not None

    assert follow_every_link(tab, access, sample) == ["session, step 5", "session, step 100", "session, step 121"]
