"""The main job on real agent turns, in real Chromium and by keys: from files of turns to files for a trainer."""

import json
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from playwright.sync_api import Page, Route, expect

from curation.duels.models import Verdict
from tests.duels.recomputed import Figures, bucket, lower_bound, recompute
from tests.e2e.conftest import OpenTab
from tests.model_server import ModelServer
from tests.parts import shared_data
from tests.product import Product
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.browser]
LAYOUTS = {"swe_agent_nebius.jsonl": ("trajectory", "ai"), "mini_coder.jsonl": ("messages", "assistant")}
JUDGES = ("judge-a", "judge-b", "judge-prose")
SLUG = "turns"
FINE = "THOUGHT: I read the part in question.\n\n```bash\nsed -n '1,40p' setup.py\n```"
# One reviewer's way through the queue: the keys, and the newest decision after them.
KEYS: list[tuple[tuple[str, ...], dict[str, str | None]]] = [
    (("1", "a"), {"action": "approve", "preference": "left"}),
    (("2", "a"), {"action": "approve", "preference": "right"}),
    (("x", "2"), {"action": "reject", "reason": "leaks"}),
    (("x", "0"), {"action": "reject", "reason": ""}),
    (("s",), {"action": "skip"}),
    (("f", "type:names a person", "Control+Enter"), {"action": "flag", "reason": "names a person"}),
    (("0", "a"), {"action": "approve", "preference": "draw"}),
    (("e", "2", "Control+a", f"type:{FINE}", "Control+Enter"), {"action": "approve", "preference": "right"}),
    (("1", "a"), {"action": "approve", "preference": "left"}),
]


@dataclass
class Triage:
    """The samples in the order in which they were decided."""

    decided: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def product(unfinished_product: Product) -> Product:
    """It has a project of its own, and does not wait for the demo's."""
    return unfinished_product


@pytest.fixture(autouse=True)
def own_slug(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second try has a project of its own."""
    monkeypatch.setitem(globals(), "SLUG", f"turns-{secrets.token_hex(3)}")


@pytest.mark.timeout(600)  # beside the making of the demo
def test_from_files_of_turns_to_files_for_a_trainer(
    open_tab: OpenTab, product: Product, model_server: ModelServer, tmp_path: Path
) -> None:
    files = [shared_data("turns", name) for name in (*LAYOUTS, "pr_records.jsonl")]
    tab = open_tab().page
    make_project(tab)
    model_server.behave("judge-prose", text="Both answers have their merits.")
    for name in ("king-a", "challenger-a", *JUDGES):
        add_model(tab, name, model_server.api_base)
    models_answer(tab)
    for file in files:
        import_file(tab, file)
    turns = sum(turns_of(file, *LAYOUTS[file.name]) for file in files if file.name in LAYOUTS)
    assert len(product.rows(f"/projects/{SLUG}/prompts")) == turns
    run = duel(tab, product)
    the_verdict_is_as_recomputed(tab, product, run, turns)
    triage = decide(tab, product)
    export(tab, product, triage, tmp_path)


def turns_of(file: Path, column: str, role: str) -> int:
    """Assistant turns that have a history."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return sum(message["role"] == role and place > 1 for row in rows for place, message in enumerate(row[column]))


def go(tab: Page, key: str, title: str) -> None:
    tab.keyboard.press("g")
    tab.keyboard.press(key)
    expect(tab.locator("h1")).to_contain_text(title)


def type_into(tab: Page, label: str, text: str) -> None:
    tab.get_by_label(label, exact=True).focus()
    tab.keyboard.press("Control+a")
    tab.keyboard.type(text)


def make_project(tab: Page) -> None:
    tab.goto("/projects/new/")
    expect(tab.get_by_label("Name")).to_be_focused()
    tab.keyboard.type("Real turns")
    tab.keyboard.press("Tab")
    tab.keyboard.type(SLUG)
    tab.keyboard.press("Control+Enter")
    tab.wait_for_url(f"**/p/{SLUG}/")


def add_model(tab: Page, name: str, api_base: str) -> None:
    go(tab, "m", "Models")
    tab.get_by_role("link", name="New endpoint").press("Enter")
    expect(tab.locator("h1")).to_have_text("New endpoint")
    type_into(tab, "Name", name)
    type_into(tab, "Model", f"openai/{name}")
    tab.locator("#id_api_base").focus()
    tab.keyboard.type(api_base)
    tab.locator("#id_price_in").focus()
    tab.keyboard.type("0.5")
    tab.locator("#id_price_out").focus()
    tab.keyboard.type("1.5")
    tab.keyboard.press("Control+Enter")
    expect(tab.locator("tr", has=tab.get_by_role("link", name=name, exact=True))).to_be_visible()


def models_answer(tab: Page) -> None:
    """*Test* makes one real call and shows its time and cost."""
    row = tab.locator("tr", has=tab.get_by_role("link", name="king-a", exact=True))
    held: dict[str, Route] = {}

    def hold(route: Route) -> None:
        """The first request of each method waits; those after it pass."""
        if route.request.method in held:
            route.continue_()
        else:
            held[route.request.method] = route

    tab.route("**/king-a/test/", hold)
    tab.reload()  # waits for the end of loading: before htmx is there the key would do nothing
    # Requests of the loading page are answered after the key, and must not hide the key's result.
    with tab.expect_request(lambda request: request.method == "POST"):
        row.get_by_role("button", name="Test").press("Enter")
        held["GET"].continue_()
    tab.wait_for_timeout(300)
    held["POST"].continue_()
    tab.unroute("**/king-a/test/")
    expect(row).to_contain_text("answers", timeout=120_000)
    expect(row).to_contain_text(re.compile(r"\d m?s\b"))
    expect(row).to_contain_text("tokens")


def import_file(tab: Page, file: Path) -> None:
    go(tab, "p", "Prompts")
    tab.get_by_role("link", name=re.compile("^Import")).first.press("Enter")
    expect(tab.locator("h1")).to_have_text("Import rows")
    tab.get_by_label("Kind of rows").select_option("pr_records" if file.name == "pr_records.jsonl" else "turns")
    tab.locator("#id_file").set_input_files(file)
    tab.locator("#id_file").focus()
    tab.keyboard.press("p")
    preview = tab.locator("#preview")
    expect(preview).to_contain_text("no errors")
    expect(preview).to_contain_text("JSON lines")
    tab.keyboard.press("Control+Enter")
    ended(tab)


def ended(tab: Page) -> None:
    """The run's page comes to its end by itself, and then asks no more."""
    tab.wait_for_url(re.compile(r"/runs/\d+/$"))
    live = tab.locator("#run-live")
    expect(live.locator(".badge--solid").first).to_have_text("succeeded", timeout=120_000, ignore_case=True)
    assert live.get_attribute("hx-trigger") is None


def duel(tab: Page, product: Product) -> dict[str, Any]:
    go(tab, "r", "Runs")
    tab.keyboard.press("n")
    expect(tab.locator("h1")).to_contain_text("duel", ignore_case=True)
    tab.get_by_label("King model").select_option("king-a")
    tab.get_by_label("Challenger model").select_option("challenger-a")
    for name in JUDGES:
        tab.get_by_role("checkbox", name=name).press("Space")
    tab.locator("summary", has_text="Advanced").press("Enter")
    type_into(tab, "Judges needed optional", "2")
    tab.keyboard.press("Tab")
    expect(tab.locator("#estimate")).to_contain_text("Calls")
    expect(tab.locator("#estimate")).to_contain_text("$")
    tab.keyboard.press("Control+Enter")
    ended(tab)
    run: dict[str, Any] = product.get(f"/runs/{tab.url.rstrip('/').rsplit('/', 1)[-1]}")
    return run


def the_verdict_is_as_recomputed(tab: Page, product: Product, run: dict[str, Any], turns: int) -> None:
    duels = {row["id"]: row for row in product.rows(f"/projects/{SLUG}/duels", run=run["id"])}
    verdicts = [SimpleNamespace(duel_id=pk, **one) for pk, row in duels.items() for one in row["verdicts"]]
    found = recompute(cast("list[Verdict]", verdicts), list(JUDGES), min_judges=2)
    assert len(duels) == turns == len(found.scores)
    for pk, row in duels.items():
        assert row["score"] == pytest.approx(found.scores[cast(int, pk)], abs=1e-4)
        assert row["bucket"] == bucket(row["score"], held="leak" in row["flags"])
        assert row["metrics"] == pytest.approx(found.metrics[cast(int, pk)], abs=1e-4)
    clusters = [duels[str(pk)]["instance_id"] for pk in found.scores]
    result = run["result"]
    assert result["margin"] == pytest.approx(found.margin, abs=1e-4)
    assert result["lcb"] == pytest.approx(lower_bound(list(found.scores.values()), clusters), abs=3)
    # Six pull requests, and judges that control duels do not tell from chance.
    assert (result["accepted"], result["decision"]) == (False, "undecided")
    the_page_prints(tab, found, result, turns)


def the_page_prints(tab: Page, found: Figures, result: dict[str, Any], turns: int) -> None:
    verdict = tab.locator("#run-verdict")
    expect(verdict).to_contain_text("undecided: not accepted")
    assert number(verdict, "Margin") == pytest.approx(found.margin, abs=0.051)
    assert number(verdict, "Lower bound by turn") == pytest.approx(result["lcb_unclustered"], abs=0.051)
    assert number(verdict, "Parsed") == turns
    for judge in result["judges"]:
        cells = tab.locator("tr", has=tab.get_by_role("cell", name=judge["name"])).locator("td").all_inner_texts()
        shown = [float(text.rstrip(" %")) / 100 if text.strip(" –") else None for text in cells[2:5]]
        name = judge["name"]
        assert shown[2] == pytest.approx(found.parse[name], abs=0.0051)
        if name in found.wins:
            assert shown[:2] == pytest.approx([found.wins[name], found.flips[name]], abs=0.0051)
    for name in ("final", "refined", "defeat", "unparsed"):
        assert f"{result['buckets'][name]}" in verdict.locator("a", has_text=name).inner_text()


def number(verdict: Any, label: str) -> float:
    text = verdict.locator(".figure", has_text=label).locator(".figure__value").first.inner_text()
    return float(re.match(r"-?[\d.]+", text.replace("\N{MINUS SIGN}", "-"))[0])  # type: ignore[index]


def at_another(tab: Page, before: str) -> str:
    """The sample that the page shows, once it is another than before and the keys act again."""
    expect(tab.locator("#review")).not_to_have_attribute("data-sample", before)
    expect(tab.locator('[aria-busy="true"]')).to_have_count(0)
    return tab.locator("#review").get_attribute("data-sample") or ""


def press(tab: Page, keys: tuple[str, ...]) -> None:
    for key in keys:
        if key.startswith("type:"):
            tab.keyboard.type(key.removeprefix("type:"))
        else:
            tab.keyboard.press(key)
        if key == "e":
            expect(tab.get_by_role("dialog", name="Which answer?")).to_be_visible()
        if key == "2" and keys[0] == "e":
            expect(tab.locator("#refine-text")).to_be_focused()


def newest(product: Product, sample: str) -> dict[str, Any]:
    """The newest line of the sample's log that is no undo. The page shows the next sample before it is written."""

    def lines() -> list[dict[str, Any]]:
        return [line for line in product.get(f"/samples/{sample}/decisions")["data"] if line["action"] != "undo"]

    until(lambda: bool(lines()))
    return lines()[-1]


def decide(tab: Page, product: Product) -> Triage:
    triage = Triage()
    go(tab, "q", "Queue")
    sample = at_another(tab, "")
    for keys, expected in KEYS:
        press(tab, keys)
        following = at_another(tab, sample)
        line = newest(product, sample)
        assert {name: line[name] for name in expected} == expected
        assert line["reviewer"] == "demo"
        triage.decided.append(sample)
        sample = following
    undo_and_look_back(tab, product, triage, sample)
    return triage


def undo_and_look_back(tab: Page, product: Product, triage: Triage, sample: str) -> None:
    last = triage.decided[-1]
    tab.keyboard.press("z")
    assert at_another(tab, sample) == last
    until(lambda: newest(product, last)["undone"] is True)
    assert product.get(f"/samples/{last}")["status"] == "pending"
    press(tab, ("2", "a"))
    sample = at_another(tab, last)
    tab.keyboard.press("ArrowLeft")
    assert at_another(tab, sample) == last
    expect(tab.get_by_text("judge-a").first).to_be_visible()
    tab.keyboard.press("ArrowRight")
    assert at_another(tab, last) == sample


def export(tab: Page, product: Product, triage: Triage, folder: Path) -> None:
    from datasets import load_dataset  # noqa: PLC0415 - most processes of tests need none

    go(tab, "e", "Exports")
    tab.get_by_role("link", name=re.compile("^New export")).first.press("Enter")
    expect(tab.locator("#preview")).to_contain_text("sft-messages", timeout=120_000)
    # The models' answers differ in a line, so their histories are often nearly the same. Leaving the page during a
    # preview would end its request.
    with tab.expect_response(lambda answer: answer.url.endswith("/preview/"), timeout=120_000):
        tab.get_by_label("Near duplicates from").fill("")
    tab.keyboard.press("Control+Enter")
    tab.wait_for_url(re.compile(r"/exports/\d+/$"))
    rows = {}
    for name in ("sft-messages", "dpo"):
        link = tab.get_by_role("link", name=f"{name}.train.jsonl", exact=True)
        expect(link).to_be_visible(timeout=60_000)
        with tab.expect_download() as download:
            link.press("Enter")
        path = folder / f"{name}.jsonl"
        download.value.save_as(path)
        rows[name] = list(load_dataset("json", data_files=str(path), split="train", cache_dir=str(folder / "cache")))
    kept = [answers(product, sample) for sample in triage.decided if status(product, sample) == "approved"]
    assert len(kept) == 5
    assert {row["messages"][-1]["content"] for row in rows["sft-messages"]} == {chosen for chosen, _ in kept}
    assert {(row["chosen"][-1]["content"], row["rejected"][-1]["content"]) for row in rows["dpo"]} == {
        (chosen, rejected) for chosen, rejected in kept if rejected
    }


def status(product: Product, sample: str) -> str:
    return str(product.get(f"/samples/{sample}")["status"])


def answers(product: Product, sample: str) -> tuple[str, str]:
    """The answers of an approved sample for a trainer: the kept one, and the other one (none after a draw)."""
    line = newest(product, sample)
    shown = product.get(f"/duels/{product.get(f'/samples/{sample}')['duel']}")
    texts = {"challenger": shown["challenger"]["text"], "king": shown["king"]["text"]}
    if line["preference"] == "draw":
        return texts["challenger"], ""
    challenger = (line["preference"] == "left") == (line["seat"] == "challenger_left")
    one, other = ("challenger", "king") if challenger else ("king", "challenger")
    return (FINE if line["revision"] else texts[one]), texts[other]
