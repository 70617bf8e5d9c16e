"""The review page in real Chromium, by keys alone."""

import json
import os
import re
import time
from collections.abc import Iterator
from typing import Literal

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from curation.duels.models import Duel
from curation.projects.models import Member, Project, Role
from curation.review.models import Decision, Draft, Lease, Pick, Revision
from curation.samples.models import Flag, Sample
from tests.factories import make_duel, make_member, set_history
from tests.review.rows import sample_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SHOTS = os.environ.get("REVIEW_SCREENSHOTS", "")


@pytest.fixture
def duels(project: Project) -> list[Duel]:
    """Ten duels in the order of the queue; the third leaks."""
    return [
        make_duel(
            project,
            priority=float(n),
            challenger=f"THOUGHT: The task names it, so I read part {n}.\n\n```bash\nsed -n '{n},80p' totals.py\n```",
            flags=int(Flag.LEAK) if n == 2 else 0,
        )
        for n in range(10)
    ]


@pytest.fixture
def page(browser: Browser, live_server: LiveServer, project: Project) -> Iterator[Page]:
    client = Client()
    client.force_login(make_member(project))
    context = browser.new_context(viewport={"width": 1280, "height": 800}, base_url=live_server.url)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
    tab = context.new_page()
    failures: list[str] = []
    tab.on("pageerror", lambda error: failures.append(str(error)))
    tab.on("console", lambda line: failures.append(line.text) if "Content Security Policy" in line.text else None)
    yield tab
    context.close()
    # Taking a picture puts a style of Playwright's into the page, which the policy blocks.
    assert [text for text in failures if not (SHOTS and "inline style" in text)] == []


def shot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png")


def at(page: Page, sample: Sample) -> None:
    """Waits until the page shows this sample and the keys act again."""
    expect(page.locator("#review")).to_have_attribute("data-sample", str(sample.pk))
    expect(page.locator('[aria-busy="true"]')).to_have_count(0)


def start(page: Page, duels: list[Duel]) -> None:
    page.goto("/p/billing/queue/")
    at(page, sample_of(duels[0]))


def test_ten_samples_are_triaged_by_keys_alone(page: Page, duels: list[Duel]) -> None:
    start(page, duels)
    keys = [
        ("1", "a"),
        ("2", "a"),
        ("0", "a"),
        ("x", "2"),
        ("x", "0"),
        ("a", "1"),
        ("1", "a"),
        ("2", "a"),
        ("x", "1"),
        ("s",),
    ]
    for number, pressed in enumerate(keys):
        at(page, sample_of(duels[number]))
        if number:
            expect(page.locator("#review-title")).to_be_focused()
        for key in pressed:
            page.keyboard.press(key)
        if number < 9:
            expect(page.locator("#say")).to_contain_text(f"Sample {sample_of(duels[number + 1]).pk}.")
    at(page, sample_of(duels[9]))
    expect(page.get_by_text("you skipped this before")).to_be_visible()
    lines = list(Decision.objects.order_by("id"))
    assert [line.sample_id for line in lines] == [duel.sample_id for duel in duels]
    assert [line.action for line in lines] == ["approve"] * 3 + ["reject"] * 2 + ["approve"] * 3 + ["reject", "skip"]
    assert [line.preference for line in lines[:3]] == ["left", "right", "draw"]
    assert (
        lines[2].pick == "draw" and lines[3].reason == "leaks" and lines[4].reason == "" and lines[8].reason == "wrong"
    )
    for line in lines[:2]:
        swapped = line.seat == "challenger_left"
        assert line.pick == (Pick.CHALLENGER if (line.preference == "left") == swapped else Pick.KING)
    assert all(line.seconds is not None and line.seconds < 60 for line in lines)
    page.keyboard.press("1")
    page.keyboard.press("a")
    expect(page.get_by_text("Everything is decided")).to_be_visible()
    shot(page, "end")
    assert not Lease.objects.exists()


def test_undo_and_looking_back(page: Page, duels: list[Duel]) -> None:
    start(page, duels)
    page.keyboard.press("x")
    page.keyboard.press("1")
    at(page, sample_of(duels[1]))
    page.keyboard.press("ArrowLeft")
    at(page, sample_of(duels[0]))
    expect(page.get_by_text("judge-a", exact=True)).to_be_visible()
    shot(page, "revealed")
    page.keyboard.press("ArrowRight")
    at(page, sample_of(duels[1]))
    page.keyboard.press("z")
    at(page, sample_of(duels[0]))
    expect(page.locator("#say")).to_contain_text("Undid reject")
    expect(page.get_by_text("judge-a")).to_have_count(0)
    assert Sample.objects.get(pk=sample_of(duels[0]).pk).status == "pending"
    page.keyboard.press("z")
    expect(page.locator(".toast")).to_contain_text("no decision")


def test_blind_until_decided_and_an_approval_asks_which(page: Page, duels: list[Duel]) -> None:
    start(page, duels)
    text = page.content()
    for hidden in ("king-a", "challenger-a", "judge-a", "Left · "):
        assert hidden not in text
    page.keyboard.press("a")
    expect(page.get_by_role("dialog", name="Which answer?")).to_be_visible()
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert not Decision.objects.exists()
    shot(page, "blind")
    page.keyboard.press("1")
    expect(page.locator("#seat-left")).to_have_attribute("data-picked", "true")
    page.keyboard.press("1")
    expect(page.locator("#seat-left")).to_have_attribute("data-picked", "false")


def test_refine_with_control_enter(page: Page, duels: list[Duel]) -> None:
    start(page, duels)
    page.keyboard.press("e")
    page.keyboard.press("2")
    area = page.locator("#refine-text")
    expect(area).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(area).to_have_count(0)
    page.keyboard.press("e")
    expect(area).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("THOUGHT: I read the totals.\n\n```bash\ncat totals.py\nls\n```")
    expect(page.locator("#protocol")).to_contain_text("2 commands")
    shot(page, "refine")
    page.keyboard.press("Control+Enter")
    at(page, sample_of(duels[1]))
    revision = Revision.objects.get()
    line = Decision.objects.get()
    assert revision.text == "THOUGHT: I read the totals.\n\n```bash\ncat totals.py\nls\n```"
    assert (line.action, line.revision, line.preference) == ("approve", revision, "right")
    assert not Draft.objects.exclude(text="").exists()


def test_no_key_acts_while_typing_in_a_dialog_or_on_repeat(page: Page, duels: list[Duel]) -> None:
    start(page, duels)
    page.keyboard.press("c")
    expect(page.locator("#comment")).to_be_focused()
    page.keyboard.type("as extra zeal")
    expect(page.locator("#comment")).to_have_value("as extra zeal")
    page.keyboard.press("Escape")
    expect(page.locator("#comment")).not_to_be_focused()
    page.keyboard.press("Backspace")
    page.keyboard.press("Delete")
    page.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', {key: 's', repeat: true, bubbles: true}))")
    page.keyboard.press("x")
    expect(page.get_by_role("dialog", name="Reject: why?")).to_be_visible()
    page.keyboard.press("s")
    expect(page.locator("#reject-reason")).to_have_value("s")
    page.keyboard.type("low")
    shot(page, "reject")
    assert not Decision.objects.exists()
    page.keyboard.press("Enter")
    at(page, sample_of(duels[1]))
    line = Decision.objects.get()
    assert (line.action, line.reason, line.comment) == ("reject", "slow", "as extra zeal")


def test_two_quick_presses_decide_once(page: Page, duels: list[Duel]) -> None:
    start(page, duels)
    page.keyboard.press("1")
    page.keyboard.press("a")
    page.keyboard.press("a")
    page.keyboard.press("a")
    at(page, sample_of(duels[1]))
    page.wait_for_timeout(300)
    assert Decision.objects.count() == 1


def test_flag_diff_turns_and_find(page: Page, duels: list[Duel]) -> None:
    duel = duels[0]
    history = [{"role": "user", "content": "Fix totals."}] + [
        {"role": ("assistant", "user")[n % 2], "content": f"THOUGHT: step {n}.\n\n```bash\nls {n}\n```"}
        for n in range(60)
    ]
    set_history(duel.prompt, history)
    start(page, duels)
    page.keyboard.press("d")
    expect(page.locator("#diff-answers ins").first).to_be_visible()
    expect(page.locator("#plain-answers")).to_be_hidden()
    page.keyboard.press("1")
    expect(page.locator('#diff-answers [data-pick="left"]')).to_have_attribute("aria-pressed", "true")
    shot(page, "diff")
    page.keyboard.press("d")
    expect(page.locator("#plain-answers")).to_be_visible()
    expect(page.locator("#seat-left")).to_have_attribute("data-picked", "true")

    page.keyboard.press("j")
    expect(page.locator(".turn.is-current .turn__role")).to_have_text("task")
    page.keyboard.press("k")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".turn.is-current .turn__size")).to_contain_text("58")

    page.locator(".folded-turns").last.click()
    expect(page.get_by_text("THOUGHT: step 20.").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("step 7.")
    expect(page.get_by_text("turn with “step 7.”")).to_be_visible()
    page.locator('[id^="found-"] summary').first.click()
    expect(page.locator("mark.found").first).to_have_text("step 7.")
    shot(page, "find")
    page.keyboard.press("Escape")

    page.keyboard.press("f")
    expect(page.locator("#flag-reason")).to_be_focused()
    page.keyboard.type("names a person")
    page.keyboard.press("Control+Enter")
    at(page, sample_of(duels[1]))
    line = Decision.objects.get()
    assert (line.action, line.reason) == ("flag", "names a person")


def test_a_draft_survives_a_lost_network_and_a_reload(page: Page, duels: list[Duel]) -> None:
    start(page, duels)
    page.context.set_offline(True)
    page.keyboard.press("c")
    page.keyboard.type("typed while offline")
    expect(page.locator("#review [data-draft-state]").first).to_contain_text("Kept in this browser")
    kept = page.evaluate("JSON.stringify(localStorage)")
    ((key, text),) = ((key, text) for key, text in json.loads(kept).items() if key.startswith("winnow-draft:"))
    assert key.endswith(f":billing:{duels[0].sample_id}") and "typed while offline" in text
    page.context.set_offline(False)
    expect(page.locator("#review [data-draft-state]").first).to_have_text("Draft saved.")
    assert Draft.objects.get().comment == "typed while offline"
    page.reload()
    at(page, sample_of(duels[0]))
    expect(page.locator("#comment")).to_have_value("typed while offline")


def test_a_stale_decision_shows_what_changed(page: Page, duels: list[Duel]) -> None:
    start(page, duels)
    Sample.objects.filter(pk=sample_of(duels[0]).pk).update(version=4, status="rejected")
    page.keyboard.press("2")
    page.keyboard.press("a")
    expect(page.get_by_role("alert").filter(has_text="Nothing was overwritten")).to_be_visible()
    shot(page, "stale")
    assert not Decision.objects.exists()


def test_every_key_is_printed_and_every_field_has_a_name(page: Page, duels: list[Duel]) -> None:
    start(page, duels)
    printed = {"arrowleft": "←", "arrowright": "→", "mod+enter": "Ctrl+Enter"}
    for key in ("a", "x", "e", "s", "f", "0", "d", "z", "1", "2"):
        button = page.locator(f'#review [data-key="{key}"]:visible')
        assert printed.get(key, key) in button.locator("kbd").all_inner_texts(), key
        assert button.get_attribute("aria-keyshortcuts") == key
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('#review :is(button, a, input, textarea, summary):not([type=hidden])')]
            .filter(e => e.checkVisibility())
            .filter(e => !(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim()))
            .map(e => e.outerHTML)"""
    )
    assert nameless == []
    page.keyboard.press("?")
    expect(page.locator("dialog#keys")).to_contain_text("Approve")
    shot(page, "keys")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("q")
    at(page, sample_of(duels[0]))


def test_the_page_of_one_sample_is_given_back_when_it_is_left(page: Page, duels: list[Duel]) -> None:
    page.goto(f"/p/billing/samples/{duels[3].sample_id}/")
    at(page, sample_of(duels[3]))
    page.reload()
    at(page, sample_of(duels[3]))
    page.wait_for_timeout(300)
    assert Lease.objects.filter(sample=sample_of(duels[3])).count() == 1
    page.goto("about:blank")
    deadline = time.monotonic() + 10
    while Lease.objects.exists() and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert not Lease.objects.exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_narrow_screen_everything_can_be_reached(
    page: Page, duels: list[Duel], scheme: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 400, "height": 800})
    start(page, duels)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for name in ("Approve", "Reject"):
        box = page.get_by_role("button", name=re.compile(f"^{name} ")).bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 400 and box["y"] + box["height"] <= 800
    shot(page, f"narrow-{scheme}")
    page.locator("#seat-right").scroll_into_view_if_needed()
    page.locator('#seat-right [data-pick="right"]').click()
    page.get_by_role("button", name=re.compile("^Approve ")).click()
    at(page, sample_of(duels[1]))
    assert Decision.objects.get().preference == "right"
    if scheme == "dark":
        page.set_viewport_size({"width": 1280, "height": 800})
        shot(page, "dark")


def test_an_edge_of_the_buckets_is_moved_by_mouse_and_by_keys_and_says_what_moves(page: Page, project: Project) -> None:
    for score in (82.0, 83.0, 88.0):
        make_duel(project, score=score, bucket="final")
    Member.objects.update(role=Role.CURATOR)  # a blind reviewer sees no figure of pending samples
    page.goto(f"/p/{project.slug}/thresholds/")
    edge = page.get_by_role("slider", name="Final from")
    expect(edge).to_be_visible()
    box = edge.bounding_box()
    plot = page.locator(".nsewdrag").first.bounding_box()
    assert box and plot
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(plot["x"] + plot["width"] * 0.85, box["y"] + 60, steps=3)
    page.mouse.up()
    expect(page.locator("#edge-final")).to_have_value("85")
    moves = page.locator("#moves tbody tr")
    expect(moves).to_have_count(1)
    expect(moves.first).to_contain_text("final")
    expect(moves.locator(".num").first).to_have_text("2")
    edge.press("ArrowLeft")
    edge.press("ArrowLeft")
    expect(moves.locator(".num").first).to_have_text("1")
    assert page.url.endswith("final=83")
    edge.press("Home")
    expect(page.locator("#edge-final")).to_have_value("66")  # an edge stops at the other one
