// j and k walk through rows or turns: the container says data-rows="turn" (the word for the keys dialog), its members data-row.
// The focus goes to [data-row-focus], else the first summary or link, so Enter does what the row does. v ticks its checkbox.

const container = () => [...document.querySelectorAll("[data-rows]")].find((element) => element.checkVisibility());

function move(rows, step) {
  const items = [...rows.querySelectorAll("[data-row]")].filter((item) => item.checkVisibility());
  if (items.length === 0) return;
  const at = items.findIndex((item) => item.contains(document.activeElement) || item.classList.contains("is-current"));
  const next = items[Math.min(items.length - 1, Math.max(0, at === -1 ? (step > 0 ? 0 : items.length - 1) : at + step))];
  for (const item of items) item.classList.toggle("is-current", item === next);
  const target = next.querySelector("[data-row-focus]") ?? next.querySelector("summary, a[href], button") ?? next;
  if (target === next) next.tabIndex = -1;
  target.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("key:free", (event) => {
  const rows = container();
  if (!rows) return;
  const { key } = event.detail;
  if (key === "j" || key === "k") {
    event.preventDefault();
    move(rows, key === "j" ? 1 : -1);
  } else if (key === "v") {
    const box = document.activeElement?.closest("[data-row]")?.querySelector('input[type="checkbox"]');
    if (!box) return;
    event.preventDefault();
    box.click();
  }
});

// A search result's link (data-shows-turn) has loaded the part of the transcript with its turn: open it there.
document.addEventListener("htmx:afterSettle", (event) => {
  const turn = event.detail.requestConfig?.elt?.dataset.showsTurn;
  const row = turn && [...document.querySelectorAll("[data-transcript] [data-turn]")].find((one) => one.dataset.turn.split(" ").includes(turn));
  if (!row) return;
  if (row instanceof HTMLDetailsElement) row.open = true;
  (row.querySelector("[data-row-focus], summary") ?? row).focus({ preventScroll: true });
  row.scrollIntoView({ block: "center" });
});
document.addEventListener("click", (event) => { if (event.target.closest?.("a[data-shows-turn]")) event.preventDefault(); });

// The row that has the focus by mouse or Tab is the one j and k start from.
document.addEventListener("focusin", (event) => {
  const row = event.target.closest?.("[data-row]");
  if (!row) return;
  for (const item of row.closest("[data-rows]")?.querySelectorAll("[data-row].is-current") ?? []) {
    if (item !== row) item.classList.remove("is-current");
  }
  row.classList.add("is-current");
});

// One box ticks them all: <input type="checkbox" data-check-all="name">; [data-check-count] says how many are ticked.
function countChecked(name) {
  const boxes = [...document.querySelectorAll(`input[type="checkbox"][name="${CSS.escape(name)}"]`)];
  const ticked = boxes.filter((box) => box.checked).length;
  for (const all of document.querySelectorAll(`[data-check-all="${CSS.escape(name)}"]`)) {
    all.checked = ticked > 0 && ticked === boxes.length;
    all.indeterminate = ticked > 0 && ticked < boxes.length;
  }
  for (const text of document.querySelectorAll(`[data-check-count="${CSS.escape(name)}"]`)) text.textContent = `${ticked} selected`;
  for (const button of document.querySelectorAll(`[data-needs-checked="${CSS.escape(name)}"]`)) button.disabled = ticked === 0;
}
document.addEventListener("change", (event) => {
  const box = event.target;
  if (!(box instanceof HTMLInputElement) || box.type !== "checkbox") return;
  const name = box.dataset.checkAll ?? box.name;
  if (!name) return;
  if (box.dataset.checkAll) {
    for (const one of document.querySelectorAll(`input[type="checkbox"][name="${CSS.escape(name)}"]`)) one.checked = box.checked;
  }
  countChecked(name);
});
