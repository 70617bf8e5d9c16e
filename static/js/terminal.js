// Transcripts: rows.js moves through their entries by j and k; this adds the first and the last step, and gaps:
//   <button data-step="first" data-goto="g">First <kbd>g g</kbd></button>, <button data-step="last" data-key="shift+g">
//   <div class="gap"><div data-row><button hx-get="…" hx-target="closest .gap" hx-swap="outerHTML">   entries not loaded yet
// j or k at a gap loads it and moves on to the next entry.

const rows = () => [...(document.querySelector('[data-rows="step"]')?.querySelectorAll("[data-row]") ?? [])];

function goTo(row) {
  const target = row?.querySelector("[data-row-focus], button");
  if (!target) return;
  target.focus({ preventScroll: true }); // rows.js marks the row that has the focus
  row.scrollIntoView({ block: "nearest" });
}

document.addEventListener("click", (event) => {
  const { step } = event.target.closest?.("[data-step]")?.dataset ?? {};
  if (step) goTo(rows().at(step === "first" ? 0 : -1));
});

// Runs after rows.js, so the focus is already on the gap's button.
document.addEventListener("key:free", (event) => {
  const { key } = event.detail;
  if (key !== "j" && key !== "k") return;
  const button = document.activeElement?.closest(".gap button");
  if (!button) return;
  const gap = button.closest(".gap");
  const [before, after, inside] = [gap.previousElementSibling, gap.nextElementSibling, gap.parentElement];
  const beyond = () => (key === "j" ? (before?.nextElementSibling ?? inside.firstElementChild) : (after?.previousElementSibling ?? inside.lastElementChild));
  document.addEventListener("htmx:afterSwap", () => goTo(beyond()), { once: true });
  button.click();
});

// A link to one step (#step-12) focuses it. Deferred, because the browser moves the focus when it scrolls there itself.
function openLinked() {
  if (location.hash.startsWith("#step-")) goTo(document.getElementById(location.hash.slice(1)));
}
window.addEventListener("load", () => setTimeout(openLinked, 0));
window.addEventListener("hashchange", openLinked);
