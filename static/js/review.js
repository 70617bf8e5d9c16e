// The review page beyond the generic keys: picks, questions before a decision, the diff, the editor, time spent, focus.
//   <button data-pick="left" data-key="1">      sets the preference of #decide; pressed again it clears it, unless the sample is decided
//   <button data-asks-pick>                     asks for a pick first, while #review[data-needs-pick] and nothing is picked
//   <button data-asks-edit>                     asks what becomes of an edit that is open and not saved
//   <button data-asks-change>                   asks before a decided sample (#review[data-kept]) is decided again
//   <button data-go-on>                         in such a question: presses the button that asked
//   <button data-diff>, <button data-edit>, <button data-editor-close>, <button data-comment>

const find = (selector) => document.querySelector(selector);
const say = (text) => document.dispatchEvent(new CustomEvent("say", { detail: { text } }));

// --- picks -----------------------------------------------------------------------------------------------------------
let asked = null; // the button that waits for an answer
const answered = new Set(); // the questions that it has been answered

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
  // Only a pick that was made on this page is cleared by a second press; one that came with it is confirmed.
  const clears = "made" in field.dataset && field.value === button.dataset.pick && !dialog && !("kept" in find("#review").dataset);
  field.value = clears ? "" : button.dataset.pick;
  field.dataset.made = "";
  showPick();
  say(field.value ? `Picked ${field.value}` : "Pick cleared");
  document.dispatchEvent(new Event("draft:touched"));
  if (dialog) goOn(dialog);
  else if ("oneKey" in find("#review").dataset && field.value && field.value !== "draw") find('#decide [value="approve"]').click();
}

function goOn(dialog) {
  const then = asked;
  answered.add(dialog.id);
  dialog.close("go on");
  then?.click();
}

const isEdited = (area) => Boolean(area) && ("edited" in area.dataset || area.value !== area.defaultValue);

// The question that this button must ask now, with its words.
function question(button) {
  const { kept, needsPick } = find("#review").dataset;
  const picked = preference()?.value ?? "";
  const [edit, draft] = [find("#ask-edit"), find("#ask-draft")];
  if ("asksEdit" in button.dataset && draft && !find("#refine-text") && "drafted" in find("#review").dataset && !answered.has(draft.id)) return draft;
  if ("asksEdit" in button.dataset && edit && !answered.has(edit.id) && isEdited(find("#refine-text"))) {
    edit.querySelector("[data-edited]").textContent = `Your edit of the ${find('#refine [name="preference"]').value || "shown"} answer is not saved.`;
    return edit;
  }
  const change = find("#ask-change");
  if ("asksChange" in button.dataset && change && !answered.has(change.id)) {
    const action = button.textContent.replace(/\s+\S+$/, "").trim().toLowerCase();
    change.querySelector("[data-change]").textContent = `${kept} Decide it again: ${[action, picked].filter(Boolean).join(" ")}?`;
    return change;
  }
  if (!("asksPick" in button.dataset) || needsPick === undefined) return null;
  const edits = "edit" in button.dataset; // a draw is no answer that could be edited
  find('#ask-pick [data-pick="draw"]').hidden = edits;
  return picked === "" || (edits && picked === "draw") ? find("#ask-pick") : null;
}

// Runs before htmx.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-asks-pick], [data-asks-change]");
  if (!button?.closest("#review")) return;
  if (button !== asked) answered.clear();
  const dialog = question(button);
  asked = dialog ? button : null;
  if (!dialog) return answered.clear();
  event.preventDefault();
  event.stopImmediatePropagation();
  dialog.showModal();
  dialog.addEventListener("close", () => { if (dialog.returnValue !== "go on") answered.clear(); dialog.returnValue = ""; }, { once: true });
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
  const text = find("#refine-text");
  if (isEdited(text)) find("#review").dataset.drafted = "";
  if (isEdited(text) && text.value) find("[data-draft-badge]").hidden = false;
  document.dispatchEvent(new Event("draft:closing"));
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
  else if ("goOn" in button.dataset) goOn(button.closest("dialog"));
  else if ("comment" in button.dataset) openComment();
  else if ("openEdit" in button.dataset) openEdit(button.closest("dialog"));
});

function openComment() {
  if (document.documentElement.hasAttribute("data-drawer-closed")) find("[data-drawer]").click();
  find("#comment").focus();
}

function openEdit(dialog) {
  dialog.close();
  find("[data-edit]").click();
}

document.addEventListener("key:free", (event) => {
  if (event.detail.key === "escape" && closeEditor()) event.preventDefault();
});

// Keys of duels that do nothing for a trajectory explain what to press instead.
const printedKey = (key) => find(`[data-key="${key}"] kbd`)?.textContent ?? key;
const decideIt = () => `Press ${printedKey("a")} to approve or ${printedKey("x")} to reject it.`;
const NOT_HERE = {
  0: () => `A trajectory has no sides, so there is no draw. ${decideIt()}`,
  d: () => `There are no two answers to compare. Press ${printedKey("n")} to compare with the next sibling.`,
};
document.addEventListener("key:free", (event) => {
  const text = NOT_HERE[event.detail.key]?.();
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
    if ([...dialog.querySelectorAll("button kbd")].some((kbd) => kbd.textContent === event.key)) return; // a person's own key
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
document.addEventListener("click", (event) => {
  const form = event.target.closest?.('button[name="action"]')?.form;
  if (form?.id === "decide") form.elements.seconds.value = elapsed().toFixed(1);
}, true);

// A suggestion that has arrived below the fold is scrolled to; while somebody types, they are told instead.
let typedAt = 0;
document.addEventListener("input", (event) => { if (event.target.id === "refine-text") typedAt = Date.now(); });

function showSuggestion(suggestion) {
  if (suggestion.hasAttribute("hx-trigger")) return; // it is still being written
  const scroll = () => find("#suggest")?.scrollIntoView({ block: "end" });
  if (Date.now() - typedAt > 2000) return scroll();
  document.dispatchEvent(new CustomEvent("toast", { detail: { text: "The suggestion is there, below your text.", action: { label: "Show", run: scroll } } }));
}

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
    answered.clear();
    showPick();
    onSwapped();
    find(".content")?.scrollTo(0, 0);
    find("#review-title")?.focus({ preventScroll: true });
  } else if (elt.id === "refine") {
    find("#editor").hidden = false;
    const text = find("#refine-text");
    text.focus();
    text.setSelectionRange(text.value.length, text.value.length);
  } else if (elt.id === "suggestion") showSuggestion(elt);
  else if (elt.closest?.("#diff-answers")) showPick();
});

// --- keys that are pressed while a sample is being replaced ------------------------------------------------------------
// Whole gestures (a pick and `a`, `x` and its reason) wait in their order, each for one sample, until that sample is painted. Only
// blind duels have them: where one key decides, it may have been for the sample before. Every other key is refused in words. After a
// refusal the keys of the same burst are refused too, so that the rest of one gesture is never the begin of another.
const MOST_WAITING = 8;
const GUARD_MS = 300;
const BURST_MS = 500;
let waiting = [];
let replacing = false; // from the request until the new sample is painted
let replaced = null; // the element of the sample that the request was sent from
let inBurst = 0;

function showWaiting() {
  document.documentElement.toggleAttribute("data-keys-wait", replacing || inBurst > 0 || waiting.length > 0);
  find("#review")?.setAttribute("aria-busy", String(replacing || inBurst > 0));
}

function refuse(keys, why = "The next sample was not there yet.") {
  if (keys.length === 0) return;
  const text = `Not used: ${keys.slice(-MOST_WAITING).map(printedKey).join(" ")}. ${why}`;
  document.dispatchEvent(new CustomEvent("toast", { detail: { text, tone: "borderline", id: "keys" } }));
  if ("refused" in find("#review").dataset) return; // it has no key that could decide
  clearTimeout(inBurst);
  inBurst = setTimeout(() => { inBurst = 0; showWaiting(); }, BURST_MS);
  showWaiting();
}

document.addEventListener("key:busy", (event) => {
  const { key } = event.detail;
  if (!find("#review") || !(replacing || inBurst || waiting.length)) return;
  event.preventDefault();
  if (!inBurst && /^[0-9ax]$/.test(key) && waiting.length < MOST_WAITING) waiting.push(key);
  else refuse([key]);
});

// Presses what waits for this sample: at most one decision.
function pressWaiting() {
  const root = find("#review");
  const mayPress = "needsPick" in root.dataset && !("refused" in root.dataset) && !document.querySelector("dialog[open]");
  while (mayPress && waiting.length > 0) {
    const [first, second = ""] = waiting;
    const isPick = /^[012]$/.test(first);
    if (!isPick && first !== "x") break; // the begin of this gesture went to another sample
    const oneKey = "oneKey" in root.dataset && /^[12]$/.test(first);
    const decides = oneKey || (isPick ? second === "a" : /^\d$/.test(second));
    document.documentElement.removeAttribute("data-keys-wait");
    for (const key of waiting.splice(0, decides && !oneKey ? 2 : 1)) document.body.dispatchEvent(Object.assign(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }), { isDeclared: true }));
    if (decides || first === "x") return showWaiting();
  }
  refuse(waiting.splice(0));
  showWaiting();
}

function afterPaint(run) {
  const once = () => { clearTimeout(late); const then = run; run = () => {}; then(); };
  const late = setTimeout(once, 200); // a hidden tab paints nothing
  requestAnimationFrame(() => requestAnimationFrame(once));
}

function onSwapped() {
  const { sample, needsPick, refused } = find("#review").dataset;
  replacing = sample !== undefined && refused === undefined;
  if (!replacing) return pressWaiting(); // nothing here can be decided
  showWaiting();
  const guard = needsPick === undefined ? GUARD_MS : 0;
  afterPaint(() => setTimeout(() => { replacing = false; pressWaiting(); }, guard));
}

function beginReplacing(root) {
  replacing = true;
  replaced = root;
  showWaiting();
}

document.addEventListener("htmx:beforeSend", (event) => {
  const { elt, target } = event.detail;
  if (target?.id === "review" && !elt.closest("[data-background]")) beginReplacing(target);
});
document.addEventListener("review:held", () => beginReplacing(find("#review")));
document.addEventListener("review:free", () => {
  replacing = false;
  pressWaiting();
});

// Without an answer that replaces the sample, what waited for the next one is refused.
document.addEventListener("htmx:afterRequest", (event) => {
  const { target, xhr } = event.detail;
  if (target?.id !== "review" || (xhr.status >= 200 && xhr.responseText.includes('id="review"'))) return;
  replacing = false;
  refuse(waiting.splice(0));
  showWaiting();
});

// A click that was meant for the sample before acts no more than its key would. Where the same sample is shown again, it was meant
// for that one. Clicks that keys make are not trusted.
document.addEventListener("click", (event) => {
  const button = event.target.closest?.("#review button");
  const root = find("#review");
  const isSame = replaced !== root && replaced?.dataset.sample === root.dataset.sample;
  if (!button || !event.isTrusted || !replacing || isSame) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const text = "The click was not used: the next sample was not there yet.";
  document.dispatchEvent(new CustomEvent("toast", { detail: { text, tone: "borderline", id: "keys" } }));
}, true);

document.addEventListener("key:free", (event) => {
  const { key } = event.detail;
  if (key === "escape") refuse(waiting.splice(0));
  if (!/^[0-9axefsdz]$/.test(key) || !("refused" in (find("#review")?.dataset ?? {}))) return;
  event.preventDefault();
  refuse([key], `Press ${printedKey("o")} to open the sample as it is now.`);
});

// A page that the browser kept shows a sample as it was: Back reads it again.
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
showPick();

// Leaving the page of one sample releases its lease at once, unless the queue is next, which shows the sample again.
// The lease of a queue's sample runs on until it lapses.
document.addEventListener("click", (event) => {
  const queue = document.querySelector('[data-goto="q"]')?.pathname;
  const link = event.target.closest?.("a[href]");
  if (link?.pathname === queue && !event.ctrlKey && !event.metaKey && !event.shiftKey) delete find("#review")?.dataset.release;
});
window.addEventListener("pagehide", () => {
  const { release } = find("#review")?.dataset ?? {};
  const until = find("#review time[data-until]")?.dateTime;
  if (!release || !until) return;
  const form = new FormData();
  form.set("csrfmiddlewaretoken", JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"]);
  form.set("until", until);
  navigator.sendBeacon(release, form);
});
