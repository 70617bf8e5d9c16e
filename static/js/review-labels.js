// The labels of a sample (#labels): what is selected in an answer or a turn when their dialog opens is the words to mark, and
// approving asks the required questions first.

const find = (selector) => document.querySelector(selector);
const TEXTS = "#plain-answers .answer__text, #plain-answers .answer__raw, #session";
let selected = null; // { quote, place, nth } of the last selection in a text

// The selection, with its number among the places of the same words in that text.
function readSelection() {
  const selection = document.getSelection();
  const quote = selection?.toString() ?? "";
  if (!quote.trim() || selection.rangeCount === 0) return null;
  const range = selection.getRangeAt(0);
  const text = (range.commonAncestorContainer.nodeType === Node.TEXT_NODE ? range.commonAncestorContainer.parentElement : range.commonAncestorContainer).closest(TEXTS);
  if (!text) return null;
  const before = document.createRange();
  before.setStart(text, 0);
  before.setEnd(range.startContainer, range.startOffset);
  const start = before.toString().length;
  const whole = text.textContent;
  let nth = 1;
  for (let at = whole.indexOf(quote); at >= 0 && at < start; at = whole.indexOf(quote, at + 1)) nth += 1;
  return { quote, nth, place: text.closest(".answer")?.id.replace("seat-", "") ?? "" };
}

document.addEventListener("selectionchange", () => {
  if (find("#ask-labels[open]")) return;
  selected = readSelection();
});

function fill(dialog) {
  const quote = dialog.querySelector('[name="quote"]');
  selected = readSelection() ?? selected; // a press of the mouse on the button has ended the selection by now, a key has not
  if (!quote || !selected) return;
  quote.value = selected.quote;
  dialog.querySelector('[name="quote_nth"]').value = String(selected.nth);
  const place = dialog.querySelector('[name="quote_in"]');
  if (place) place.value = selected.place;
}

// Words that are typed have no number: they must be there once.
document.addEventListener("input", (event) => {
  if (event.target.matches?.('#ask-labels [name="quote"]')) find('#ask-labels [name="quote_nth"]').value = "";
});

document.addEventListener("click", (event) => {
  if (!event.target.closest?.('[data-dialog="#ask-labels"]')) return;
  find("#labels-error").textContent = "";
  fill(find("#ask-labels"));
}, true); // before the dialog takes the focus, and with it the selection

// Runs before htmx.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.('#review [name="action"][value="approve"]');
  const missing = find("#labels")?.dataset.missing;
  const dialog = find("#ask-labels");
  if (!button || !missing || !dialog) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  find("#labels-error").textContent = `Answer before you approve: ${missing}`;
  fill(dialog);
  dialog.showModal();
}, true);

document.addEventListener("htmx:load", (event) => {
  if (event.detail.elt.id === "review") selected = null;
});
