// The hits of a search in a transcript (templates/transcript/_find.html): "2 of 7", the next and the previous one. Hits are the turns
// that the server has found, which have history and tool calls, and the words in the answers on the page.

const FOUND = "[id^='found-']";
const ANSWERS = "#plain-answers:not([hidden]) .answer__text, #plain-answers:not([hidden]) .answer__raw";
let at = -1;

const field = () => document.querySelector(".session-find input");
const highlight = (name, ranges) => window.CSS?.highlights?.set(name, new Highlight(...ranges));

function inAnswers(wanted) {
  const ranges = [];
  for (const answer of document.querySelectorAll(ANSWERS)) {
    if (!answer.checkVisibility()) continue;
    const walker = document.createTreeWalker(answer, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode.data.toLowerCase();
      for (let from = text.indexOf(wanted); from >= 0; from = text.indexOf(wanted, from + wanted.length)) {
        const range = document.createRange();
        range.setStart(walker.currentNode, from);
        range.setEnd(walker.currentNode, from + wanted.length);
        ranges.push(range);
      }
    }
  }
  return ranges;
}

// The answers first, since they are on the page.
function hits() {
  const wanted = field()?.value.trim().toLowerCase() ?? "";
  const ranges = wanted ? inAnswers(wanted) : [];
  return { wanted, ranges, all: [...ranges, ...(wanted ? document.querySelectorAll(`${FOUND} .found-turn`) : [])] };
}

function show(step = 0) {
  const input = field();
  const group = input?.form.querySelector(".find-hits");
  if (!group) return;
  const { wanted, ranges, all } = hits();
  at = all.length === 0 ? -1 : step === 0 ? Math.min(at, all.length - 1) : (at + step + all.length) % all.length;
  group.hidden = wanted === "";
  group.querySelector("[data-find-count]").textContent = all.length === 0 ? "no hits" : at < 0 ? `${all.length} hit${all.length === 1 ? "" : "s"}` : `${at + 1} of ${all.length}`;
  for (const button of group.querySelectorAll("button")) button.disabled = all.length === 0;
  const hit = all[at];
  highlight("found", ranges);
  highlight("found-now", hit instanceof Range ? [hit] : []);
  for (const turn of document.querySelectorAll(`${FOUND} .found-turn`)) turn.toggleAttribute("data-now", turn === hit);
  if (step === 0 || !hit) return;
  const element = hit instanceof Range ? hit.startContainer.parentElement : hit;
  const details = element.querySelector?.("details");
  if (details) details.open = true;
  element.scrollIntoView({ block: "center" });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-find-step]");
  if (button) show(Number(button.dataset.findStep));
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target !== field() || event.isComposing || hits().all.length === 0) return;
  event.preventDefault();
  show(event.shiftKey ? -1 : 1);
});
document.addEventListener("input", (event) => {
  if (event.target !== field()) return;
  at = -1;
  show();
});
document.addEventListener("htmx:afterSettle", (event) => { if (event.detail.target?.matches?.(FOUND)) show(); });
