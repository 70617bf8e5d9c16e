"""In real Chromium: own keys, columns of tables, links to parts of a page, the outline of a long transcript."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from curation.duels.models import Verdict
from curation.projects.models import Member, Preferences, Project, Role
from curation.review.models import Decision, Lease
from curation.samples.models import SavedView
from tests.e2e.conftest import tab_of
from tests.factories import make_duel, make_member, make_trajectory, set_history
from tests.review.rows import sample_of
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TWO_FRAMES = "() => new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)))"
SELECT = """(pre, words) => {
    const range = document.createRange();
    const at = pre.textContent.indexOf(words);
    range.setStart(pre.firstChild, at);
    range.setEnd(pre.firstChild, at + words.length);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
}"""


@pytest.fixture
def tab(browser: Browser, live_server: LiveServer, project: Project) -> Iterator[Page]:
    with tab_of(browser, live_server, make_member(project), expected=("422", "Unprocessable")) as page:
        yield page


def settled(tab: Page) -> None:
    expect(tab.locator("#review[data-sample]")).to_be_visible()
    tab.evaluate(TWO_FRAMES)  # the page says only then that its keys wait for the sample
    expect(tab.locator('[aria-busy="true"]')).to_have_count(0)
    expect(tab.locator("html[data-keys-wait]")).to_have_count(0)


def test_keys_of_ones_own_act_and_are_printed(tab: Page, project: Project) -> None:
    for n in range(2):
        make_duel(project, priority=float(n))
    tab.goto("/preferences/")
    tab.get_by_label("Approve; gate a scenario").fill("z")
    tab.keyboard.press("Control+Enter")
    expect(tab.locator("#id_approve_error")).to_contain_text("“Undo”")
    tab.get_by_label("Undo", exact=True).fill("Z")
    tab.get_by_label("Pick the left answer").fill("q")
    tab.keyboard.press("Control+Enter")
    expect(tab.get_by_text("Your keys are saved.")).to_be_visible()
    assert Preferences.objects.get().keys == {"approve": "z", "undo": "Z", "pick_left": "q"}
    tab.goto("/p/billing/queue/")
    settled(tab)
    expect(tab.get_by_role("button", name="Approve z")).to_be_visible()
    tab.keyboard.press("?")
    expect(tab.locator("#keys li", has_text="Approve").locator("kbd")).to_have_text("z")
    tab.keyboard.press("Escape")
    tab.keyboard.press("a")
    settled(tab)
    assert not Decision.objects.exists()
    first = tab.locator("#review").get_attribute("data-sample")
    tab.keyboard.press("q")
    tab.keyboard.press("z")
    expect(tab.locator(".review__last")).to_have_text(f"Sample {first}: approved left · Z")
    settled(tab)
    tab.keyboard.press("x")
    expect(tab.get_by_role("button", name="no reason 0")).to_be_visible()
    tab.keyboard.press("q")  # the first reason, whose key was 1
    settled(tab)
    assert Decision.objects.filter(action="reject").exclude(reason="").exists()
    tab.keyboard.press("Shift+Z")
    settled(tab)
    assert Decision.objects.filter(action="undo").count() == 1


def test_columns_are_hidden_widened_and_kept(tab: Page, project: Project) -> None:
    for n in range(3):
        make_duel(project, priority=float(n))
    tab.goto("/p/billing/samples/")
    tab.get_by_role("button", name="Columns of this table").click()
    tab.get_by_label("Show Status").select_option("never")
    tab.get_by_label("Width of Instance").fill("260")
    tab.get_by_role("radio", name="compact").check()
    tab.goto("/p/billing/prompts/")  # at once: the choice is kept
    until(Preferences.objects.filter(density="compact").exists)
    tab.goto("/p/billing/samples/")
    expect(tab.get_by_role("columnheader", name="Status")).to_be_hidden()
    box = tab.get_by_role("columnheader", name="Instance").bounding_box()
    assert box and abs(box["width"] - 260) < 2
    tab.get_by_role("link", name="Created").click()  # htmx replaces the table
    tab.wait_for_url("**sort=**")
    expect(tab.get_by_role("columnheader", name="Status")).to_be_hidden()
    assert Preferences.objects.get().density == "compact"


def test_columns_are_moved_and_pinned_and_kept(tab: Page, project: Project) -> None:
    for n in range(3):
        make_duel(project, priority=float(n))
    tab.goto("/p/billing/samples/")
    before = order_of(tab)
    tab.get_by_role("button", name="Columns of this table").click()
    tab.get_by_role("button", name="Move Status up").click()
    tab.get_by_label("Pin Instance").check()
    at = before.index("Status")
    swapped = [*before[: at - 1], "Status", before[at - 1], *before[at + 1 :]]
    moved = ["Instance", *(name for name in swapped if name != "Instance")]
    assert order_of(tab) == moved
    pinned = tab.get_by_role("columnheader", name="Instance")
    expect(pinned).to_have_css("position", "sticky")
    until(lambda: Preferences.objects.filter(tables__sample__pinned=["Instance"]).exists())
    tab.goto("/p/billing/samples/")
    assert order_of(tab) == moved
    tab.get_by_role("link", name="Created").click()  # htmx replaces the table
    tab.wait_for_url("**sort=**")
    expect(tab.get_by_role("columnheader", name="Created")).to_have_attribute("aria-sort", "ascending")
    assert order_of(tab) == moved
    tab.get_by_role("button", name="Columns of this table").click()
    tab.get_by_role("button", name="Reset to defaults").click()
    assert order_of(tab) == before


def order_of(tab: Page) -> list[str]:
    """The names of the columns, from left to right."""
    names: list[str] = tab.locator("table[data-rows=sample] thead th").all_inner_texts()
    return [name for name in names if name.strip()]


def test_columns_with_one_value_are_chips_and_the_preview_is_wide(tab: Page, project: Project) -> None:
    Member.objects.update(role=Role.CURATOR)  # whom blind review hides nothing
    for n in range(3):
        made = make_duel(project, priority=float(n)).sample
        assert made
        sample = made
        sample.source, sample.repo, sample.preview = "codegen", f"acme/repo{n % 2}", "sed -n 1,20p a.py && pytest " * 7
        sample.save()
    tab.goto("/p/billing/samples/")
    first = tab.locator("table[data-rows=sample] thead th").nth(1)
    expect(first).to_have_text("Sample")
    expect(tab.get_by_role("columnheader", name="Source")).to_be_hidden()
    same = tab.locator(".table-same .chip").filter(has_text="Source")
    expect(same).to_have_text("Source codegen")
    expect(tab.locator("table[data-rows=sample] tbody tr").first).to_contain_text("acme/repo")
    preview, table = (
        tab.locator(f"table[data-rows=sample]{part}").first.bounding_box() for part in (" td.table__main", "")
    )
    assert preview and table and preview["width"] >= 0.4 * table["width"]
    assert tab.locator("a.table__lines").first.evaluate("link => link.clientHeight") > 30  # two lines

    tab.get_by_role("button", name="Columns of this table").click()
    tab.get_by_label("Show Source").select_option("always")
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("columnheader", name="Source")).to_be_visible()
    expect(same).to_have_count(0)

    sample.source = "other"
    sample.save()
    tab.goto("/p/billing/samples/?source=codegen&status=pending")
    assert tab.locator(".table-same").get_by_text("pending").count() == 0  # the filter's chip says it


def test_a_view_is_saved_with_the_filter_that_is_shown_and_opened_from_the_menu(tab: Page, project: Project) -> None:
    make_duel(project)
    tab.goto("/p/billing/samples/")
    tab.get_by_label("Status", exact=True).select_option("pending")  # htmx replaces the table
    tab.wait_for_url("**status=pending*")
    tab.get_by_text("Views", exact=True).click()
    tab.locator(".menu__list").get_by_role("button", name="Save this view").click()
    tab.get_by_label("Name").fill("Undecided")
    tab.keyboard.press("Enter")
    expect(tab.get_by_text("View “Undecided” saved.")).to_be_visible()
    assert SavedView.objects.get().query == "status=pending"
    tab.goto("/p/billing/samples/")
    tab.get_by_text("Views", exact=True).click()
    tab.get_by_role("link", name="Undecided").click()
    tab.wait_for_url("**/samples/?status=pending")


def long_history(count: int) -> list[dict[str, str]]:
    lines = "\n".join(f"line {line}" for line in range(1, 41))
    return [
        {"role": "user", "content": "the task"},
        *(
            {"role": "assistant", "content": f"THOUGHT {n}\n\n```bash\nls dir{n}\n```"}
            if n % 2
            else {"role": "user", "content": f"<returncode>{int(n == 600)}</returncode>\noutput {n}\n{lines}"}
            for n in range(1, count)
        ),
    ]


def test_links_and_the_outline_lead_into_a_long_transcript(tab: Page, project: Project) -> None:
    duel = make_duel(project)
    sample = sample_of(duel)
    set_history(duel.prompt, long_history(1152))
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.goto(f"/p/billing/samples/{sample.pk}/#turn-600-line-7")
    line = tab.locator("#turn-600-line-7")
    expect(line).to_be_in_viewport()
    expect(line).to_have_text("line 5")
    expect(line).to_be_focused()
    tab.goto("/p/billing/queue/")
    tab.reload()
    settled(tab)
    tab.keyboard.press("t")
    expect(tab.locator(".outline input")).to_be_focused()
    tab.get_by_role("button", name="1 error").click()
    expect(tab.locator(".outline__lines a")).to_have_count(1)
    tab.locator(".outline__lines a").click()
    turn = tab.locator('[data-transcript] [data-turn="600"]')
    expect(turn).to_be_in_viewport()
    expect(turn).to_have_class("turn turn--output is-linked is-current")
    turn.locator("pre").evaluate(SELECT, "line 3")
    turn.get_by_role("link", name="Link to turn 600").click()
    expect(turn.get_by_role("link", name="Link to turn 600")).to_have_text("Copied")
    copied = tab.evaluate("navigator.clipboard.readText()")
    assert copied.endswith(f"/p/billing/samples/{sample.pk}/#turn-600-line-5")
    tab.keyboard.press("t")
    tab.keyboard.press("t")
    tab.keyboard.type("900")
    tab.keyboard.press("Enter")
    expect(tab.locator('[data-transcript] [data-turn="900"]')).to_be_in_viewport()
    tab.keyboard.press("Escape")
    tab.keyboard.press("1")
    tab.keyboard.press("a")
    expect(tab.locator(".review__last")).to_contain_text("approved")
    decision = Decision.objects.get()
    tab.goto(f"/p/billing/samples/{sample.pk}/#decision-{decision.pk}")
    expect(tab.locator(f"#decision-{decision.pk}")).to_be_in_viewport()
    expect(tab.locator(f"#decision-{decision.pk}")).to_have_class("is-linked")
    tab.goto(f"/p/billing/samples/{sample.pk}/#verdict-999")
    tab.reload()
    expect(tab.locator(".toast")).to_contain_text("does not show that verdict")


def test_links_lead_into_sessions_and_to_verdicts(tab: Page, project: Project) -> None:
    outputs = tuple("\n".join(f"out {n} {line}" for line in range(90)) for n in range(200))
    row = make_trajectory(project, commands=tuple(f"cmd {n}" for n in range(200)), outputs=outputs)
    verdict = Verdict.objects.filter(duel=make_duel(project, status="approved")).latest("pk")
    tab.goto(f"/p/billing/samples/{row.sample_id}/#turn-202-line-80")
    line = tab.locator("#turn-202-line-80")
    expect(line).to_be_focused()
    expect(line).to_be_in_viewport()
    expect(line).to_have_text("out 100 79")
    for path in (f"samples/{verdict.duel.sample_id}", f"duels/{verdict.duel_id}"):
        tab.goto(f"/p/billing/{path}/#verdict-{verdict.pk}")
        expect(tab.locator(f"#verdict-{verdict.pk}")).to_be_in_viewport()
        expect(tab.locator(f"#verdict-{verdict.pk}.is-linked")).to_have_count(1)


def test_from_the_page_of_a_sample_to_the_queue_the_lease_stays(tab: Page, project: Project) -> None:
    make_duel(project, priority=0.0)
    first = sample_of(make_duel(project, priority=1.0))
    tab.goto(f"/p/billing/samples/{first.pk}/")
    settled(tab)
    lease = Lease.objects.get()
    tab.keyboard.press("g")
    tab.keyboard.press("q")
    tab.wait_for_url("**/queue/")
    settled(tab)
    expect(tab.locator("#review")).to_have_attribute("data-sample", str(first.pk))
    tab.goto("/p/billing/samples/")  # by now the page that was left has said so
    assert Lease.objects.get().pk == lease.pk
