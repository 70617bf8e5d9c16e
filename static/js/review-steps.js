// Marks of a session's steps on the review page. The chosen step is the one with the focus; if it is not the agent's, the marks are
// refused in words.
//   <article data-marked="4">                 a step of the agent, by its step_id; its marks are in #marks-4
//   <div class="stepbar" data-url="…">        <button data-learn>, <button data-learn="range">, <button data-label="wrong">
//   <button data-trim form="decide">          approves up to the chosen step
// From the server: the event "marked" with the version of the sample.

const bar = () => document.querySelector(".stepbar");
const chosen = () => document.querySelector("#session [data-row].is-current");
const marksOf = (step) => document.getElementById(`marks-${step}`)?.dataset ?? {};
const tell = (text) => document.dispatchEvent(new CustomEvent("toast", { detail: { text, tone: "borderline", id: "step" } }));
let anchor = 0; // the step that was masked last

function show() {
  if (!bar()) return;
  const row = chosen();
  const step = row?.dataset.marked;
  bar().querySelector("[data-step-shown]").textContent = row ? `Step ${row.querySelector(".step__number")?.textContent}${step ? "" : ", not the agent's"}` : "No step chosen";
  const { labelled, whyNot } = step ? marksOf(step) : {};
  for (const button of bar().querySelectorAll("[data-label]")) button.setAttribute("aria-pressed", String(button.dataset.label === labelled));
  bar().querySelector("[data-learn]").firstChild.textContent = whyNot === "not learned" ? "Unmask " : "Mask ";
}

function stepToMark() {
  const step = chosen()?.dataset.marked;
  if (!step) tell(chosen() ? "Only steps of the agent are marked. Move to one with j or k." : "Choose a step first, with j or k.");
  return step;
}

function send(values) {
  const version = document.querySelector('#decide [name="version"]').value;
  window.htmx.ajax("POST", bar().dataset.url, { source: bar(), target: bar(), swap: "none", values: { version, ...values } });
}

function mark(button) {
  const step = stepToMark();
  if (!step) return;
  if (button.dataset.label) return send({ first: step, last: step, label: marksOf(step).labelled === button.dataset.label ? "" : button.dataset.label });
  if (button.dataset.learn === "range") {
    if (!anchor) return tell("Mask the first step of the range, then press this at its last.");
    return send({ first: anchor, last: step, learn: "false" });
  }
  const masked = marksOf(step).whyNot === "not learned";
  anchor = masked ? 0 : step;
  send({ first: step, last: step, learn: String(masked) });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.(".stepbar [data-learn], .stepbar [data-label]");
  if (button) mark(button);
});

// Before review.js asks its questions and htmx sends the form.
window.addEventListener("click", (event) => {
  const button = event.target.closest?.('#review [form="decide"], #decide button, [data-go-on]');
  const trim = document.querySelector('#decide [name="trim"]');
  if (!button || !trim || "goOn" in button.dataset) return;
  trim.value = "";
  if (!("trim" in button.dataset)) return;
  trim.value = stepToMark() ?? "";
  if (trim.value) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}, true);

document.addEventListener("marked", (event) => {
  for (const field of document.querySelectorAll('#review [name="version"]')) field.value = event.detail.version;
  show();
});
document.addEventListener("focusin", show);
document.addEventListener("htmx:oobAfterSwap", show);
document.addEventListener("htmx:load", (event) => {
  const { elt } = event.detail;
  if (elt.id === "review") anchor = 0;
  else if (elt.id === "session") elt.querySelector(".divergence")?.scrollIntoView({ block: "center" }); // a sibling was chosen
  show();
});
