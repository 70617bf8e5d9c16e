// The review page beyond the generic keys: picks, questions before a decision, the diff, the editor, time spent, focus.
//   <button data-pick="left" data-key="1">      sets the preference of #decide; pressed again it clears it
//   <button data-asks-pick>                     asks for a pick first, while #review[data-needs-pick] and nothing is picked
//   <button data-diff>, <button data-edit>, <button data-editor-close>

const find = (selector) => document.querySelector(selector);
const say = (text) => document.dispatchEvent(new CustomEvent("say", { detail: { text } }));

// --- picks -----------------------------------------------------------------------------------------------------------
let asked = null; // the button that waits for a pick

const preference = () => find('#decide [name="preference"]');

function showPick() {
  const picked = preference()?.value ?? "";
  for (const button of document.querySelectorAll("#review [data-pick]")) {
    if (!button.closest("dialog")) button.setAttribute("aria-pressed", String(button.dataset.pick === picked));
  }
  for (const place of ["left", "right"]) {
    const seat = find(`#seat-${place}`);
    if (seat) seat.dataset.picked = String(picked ? place === picked || picked === "draw" : "kept" in seat.dataset);
  }
}

function pick(button) {
  const field = preference();
  if (!field) return;
  const dialog = button.closest("dialog");
  field.value = field.value === button.dataset.pick && !dialog ? "" : button.dataset.pick;
  showPick();
  say(field.value ? `Picked ${field.value}` : "Pick cleared");
  if (!dialog) return;
  const then = asked;
  asked = null;
  dialog.close();
  then?.click();
}

// Runs before htmx: while blind, an approval or an edit needs a pick.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-asks-pick]");
  if (!button || preference()?.value !== "" || !("needsPick" in (find("#review")?.dataset ?? {}))) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  asked = button;
  find("#ask-pick")?.showModal();
}, true);

// --- diff and editor -------------------------------------------------------------------------------------------------
async function toggleDiff(button) {
  const [plain, diff] = [find("#plain-answers"), find("#diff-answers")];
  if (!diff.childElementCount) await window.htmx.ajax("GET", diff.dataset.url, { target: "#diff-answers", swap: "innerHTML" });
  if (!diff.childElementCount) return; // the request failed and shows its own message
  diff.hidden = !diff.hidden;
  plain.hidden = !diff.hidden;
  button.setAttribute("aria-pressed", String(!diff.hidden));
  showPick();
  say(diff.hidden ? "Diff off" : "Diff on");
}

function closeEditor() {
  const editor = find("#editor");
  if (!editor || editor.hidden) return false;
  editor.replaceChildren();
  editor.hidden = true;
  find("[data-edit]")?.focus({ preventScroll: true });
  return true;
}

document.addEventListener("click", (event) => {
  const edit = event.target.closest?.("[data-edit]");
  if (!edit || !find("#refine-text")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  find("#refine-text").focus();
}, true);

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button");
  if (!button?.closest("#review")) return;
  if ("pick" in button.dataset) pick(button);
  else if ("diff" in button.dataset) toggleDiff(button);
  else if ("editorClose" in button.dataset) closeEditor();
});

document.addEventListener("key:free", (event) => {
  if (event.detail.key === "escape" && closeEditor()) event.preventDefault();
});

// Keys of duels that do nothing for a trajectory explain what to press instead.
const NOT_HERE = {
  1: "A trajectory has no sides to pick. Press a to approve or x to reject it.",
  2: "A trajectory has no sides to pick. Press a to approve or x to reject it.",
  0: "A trajectory has no sides, so there is no draw. Press a to approve or x to reject it.",
  d: "There are no two answers to compare. Press n to compare with the next sibling.",
};
document.addEventListener("key:free", (event) => {
  const text = NOT_HERE[event.detail.key];
  if (!text || !("rollout" in (find("#review")?.dataset ?? {}))) return;
  event.preventDefault();
  document.dispatchEvent(new CustomEvent("toast", { detail: { text } }));
});

// --- findings: a link jumps to its mark, in a folded turn too; htmx loads the part of a transcript that has it ----------
let wanted = ""; // the id of a mark that is being loaded

function showMark(id) {
  const mark = document.getElementById(id);
  if (!mark) return false;
  for (let fold = mark.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (mark.closest("#plain-answers[hidden]")) find("#review button[data-diff]")?.click();
  mark.tabIndex = -1;
  mark.focus({ preventScroll: true });
  mark.scrollIntoView({ block: "center" });
  return true;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.(".findings a");
  if (!link) return;
  event.preventDefault();
  wanted = link.hash.slice(1);
  if (showMark(wanted)) wanted = "";
  else window.htmx.trigger(link, "load-mark");
});

document.addEventListener("htmx:afterSettle", () => {
  if (wanted && showMark(wanted)) wanted = "";
});

// --- dialogs: letters go into the field, Enter presses the dialog's own button ------------------------------------------
document.addEventListener("keydown", (event) => {
  const dialog = event.target.closest?.("#review dialog");
  if (!dialog || event.isComposing) return;
  if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && event.target instanceof HTMLInputElement) {
    event.preventDefault(); // the browser would press the form's first button, which approves
    dialog.querySelector("[data-enter]")?.click();
  } else if (/^\p{L}$/u.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey && !(event.target instanceof HTMLInputElement)) {
    dialog.querySelector("[data-type-into]")?.focus(); // focused before the letter is typed, so it goes there
  }
}, true);

// --- time spent: only while the page is visible ---------------------------------------------------------------------
let spent = 0;
let since = performance.now();

function elapsed() {
  if (!document.hidden) {
    spent += performance.now() - since;
    since = performance.now();
  }
  return spent / 1000;
}
document.addEventListener("visibilitychange", () => {
  if (document.hidden) spent += performance.now() - since;
  since = performance.now();
});
document.addEventListener("htmx:configRequest", (event) => {
  if (event.target.matches?.("#decide, #refine")) event.detail.parameters.seconds = elapsed().toFixed(1);
});

// --- after a swap ----------------------------------------------------------------------------------------------------
// A refusal comes with the sample as it is now and a notice: show both instead of a bare message.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, target } = event.detail;
  const refused = xhr.status === 409 || xhr.status === 412;
  if (refused && target?.id === "review" && xhr.responseText.includes('id="review"')) {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  }
});

document.addEventListener("htmx:load", (event) => {
  const { elt } = event.detail;
  if (elt.id === "review") {
    spent = 0;
    since = performance.now();
    asked = null;
    find(".content")?.scrollTo(0, 0);
    find("#review-title")?.focus({ preventScroll: true });
  } else if (elt.id === "refine") {
    find("#editor").hidden = false;
    const text = find("#refine-text");
    text.focus();
    text.setSelectionRange(text.value.length, text.value.length);
  } else if (elt.closest?.("#diff-answers")) showPick();
});

// Leaving the page of one sample releases its lease at once. The lease of a queue's sample runs on until it lapses.
window.addEventListener("pagehide", () => {
  const { release } = find("#review")?.dataset ?? {};
  const until = find("#review time[data-until]")?.dateTime;
  if (!release || !until) return;
  const form = new FormData();
  form.set("csrfmiddlewaretoken", JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"]);
  form.set("until", until);
  navigator.sendBeacon(release, form);
});
