// Links to a part of a page: #turn-12, #turn-12-line-3, #verdict-4, #decision-9. Opening one unfolds, marks and focuses it; a turn that a
// windowed transcript has not loaded is loaded first ([data-window]: the address of its windows).
//   <a class="link-here" href="#turn-12">Copy link</a>   copies its address; with a line of that turn selected, the address of the line
//   <button data-outline aria-controls="…">         shows and hides the outline, whose lines are such links; <form data-jump> goes to a turn
// An address is that of [data-permalink] around it, else of the page.

const TURN = /^turn-(\d+)(?:-line-(\d+))?$/;
const STEP = /^step-(\d+)$/;
const KNOWN = { verdict: "This page does not show that verdict. While a sample is pending, its verdicts may be hidden.", decision: "This page does not show that decision.", turn: "This transcript has no such turn.", step: "This session has no such step." };
let selected = { turn: "", line: 0 };

const say = (text) => document.dispatchEvent(new CustomEvent("say", { detail: { text } }));

function turnElement(turn) {
  const within = (place) => [...document.querySelectorAll(`${place} [data-turn]`)].find((one) => one.dataset.turn.split(" ").includes(turn));
  return within("[data-transcript]") ?? within("main");
}

function mark(target) {
  for (const before of document.querySelectorAll(".is-linked")) before.classList.remove("is-linked");
  if (target.closest(".review__side") && document.documentElement.hasAttribute("data-drawer-closed")) document.querySelector("[data-drawer]")?.click();
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  target.classList.add("is-linked");
  const focus = target.matches("mark") ? target : (target.querySelector("[data-row-focus], summary") ?? target);
  if (focus.tabIndex < 0) focus.tabIndex = -1;
  focus.focus({ preventScroll: true });
  // Content that is loaded beside it may move it once more.
  const scroll = () => { if (target.isConnected) target.scrollIntoView({ block: "center" }); };
  scroll();
  requestAnimationFrame(() => requestAnimationFrame(scroll));
}

async function load(wanted) {
  const address = document.querySelector("[data-window]")?.dataset.window;
  if (!address) return false;
  await window.htmx.ajax("GET", `${address}?${wanted}&main=1`, { target: "[data-transcript]", swap: "innerHTML settle:0ms" });
  return true;
}

async function show(id, { mayLoad = true } = {}) {
  const found = document.getElementById(id);
  if (found) return void mark(found);
  const [, turn, line] = TURN.exec(id) ?? [];
  const element = turn && turnElement(turn);
  if (element && (!line || !mayLoad)) return void mark(element);
  const [, step] = STEP.exec(id) ?? [];
  const wanted = turn ? `turn=${turn}${line ? `&line=${line}` : ""}` : step && `step=${step}`;
  if (wanted && mayLoad && await load(wanted)) return void show(id, { mayLoad: false });
  if (element) return void mark(element);
  const text = KNOWN[id.split("-")[0]];
  if (text && /^(turn|step|verdict|decision)-\d/.test(id)) document.dispatchEvent(new CustomEvent("toast", { detail: { text, tone: "borderline" } }));
}

const fromAddress = () => { if (location.hash.length > 1) show(decodeURIComponent(location.hash.slice(1))); };

// A page of review replaces itself once it has claimed its sample; the link is followed there.
const isWaiting = () => document.querySelector("#review:not([data-sample]) form[hx-post]");
window.addEventListener("load", () => setTimeout(() => { if (!isWaiting()) fromAddress(); }, 0));
window.addEventListener("hashchange", fromAddress);
let followed = Boolean(document.querySelector("#review[data-sample]"));
document.addEventListener("htmx:load", (event) => {
  if (followed || event.detail.elt.id !== "review") return;
  followed = true;
  setTimeout(fromAddress, 0);
});

// --- a link's address ------------------------------------------------------------------------------------------------------
// The turn and line where the selection begins: newlines before it, from the first line of its block on.
function selection() {
  const range = window.getSelection()?.rangeCount ? window.getSelection().getRangeAt(0) : null;
  if (!range || range.collapsed) return { turn: "", line: 0 };
  const start = range.startContainer instanceof Element ? range.startContainer : range.startContainer.parentElement;
  const block = start?.closest("[data-line]");
  if (!block) return { turn: "", line: 0 };
  const before = document.createRange();
  before.setStart(block, 0);
  before.setEnd(range.startContainer, range.startOffset);
  return { turn: block.dataset.of ?? start.closest("[data-turn]")?.dataset.turn ?? "", line: Number(block.dataset.line) + before.toString().split("\n").length - 1 };
}
// Pressing a link with the mouse clears the selection.
document.addEventListener("pointerdown", () => { selected = selection(); }, true);
document.addEventListener("keydown", () => { selected = selection(); }, true);

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a.link-here");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  let { hash } = link;
  const turns = link.closest("[data-turn]")?.dataset.turn.split(" ") ?? [];
  if (selected.line && turns.includes(selected.turn)) hash = `#turn-${selected.turn}-line-${selected.line}`;
  const base = link.closest("[data-permalink]")?.dataset.permalink ?? location.pathname + location.search;
  link.dataset.copy = new URL(base + hash, location.href).href; // copy.js copies it
  if (base === location.pathname + location.search) history.replaceState(history.state, "", hash);
  mark(document.getElementById(hash.slice(1)) ?? link.closest("[data-turn], [id]") ?? link);
}, true);

// --- the outline -----------------------------------------------------------------------------------------------------------
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-outline]");
  if (!button) return;
  const outline = document.getElementById(button.getAttribute("aria-controls"));
  outline.hidden = !outline.hidden;
  button.setAttribute("aria-expanded", String(!outline.hidden));
  say(outline.hidden ? "Outline closed" : "Outline open");
  if (outline.hidden || outline.childElementCount) event.stopImmediatePropagation(); // it is loaded once
  if (!outline.hidden) outline.querySelector("[data-jump] input")?.focus();
}, true);
document.addEventListener("htmx:load", (event) => {
  const outline = event.detail.elt.closest?.(".outline");
  if (outline && !outline.classList.contains("outline--beside") && event.detail.elt.matches(".outline__head") && !outline.contains(document.activeElement)) outline.querySelector("[data-jump] input")?.focus();
});
document.addEventListener("submit", (event) => {
  if (!event.target.matches?.("[data-jump]")) return;
  event.preventDefault();
  const hash = `#${event.target.dataset.jump === "step" ? "step" : "turn"}-${event.target.querySelector("input").value}`;
  if (location.hash === hash) fromAddress();
  else location.hash = hash;
});
// A line that was followed before is followed again.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#turn-"]:not(.link-here)');
  if (link && link.hash === location.hash) fromAddress();
});
