// Drafts of the comment, the refined text and the note ([data-draft="name"]): sent to the server while typing, or kept in this
// browser until the server can be reached again. [data-draft-state] shows where the draft is.

const PREFIX = "winnow-draft:";
const WAIT_MS = 700;
const RETRY_MS = 10_000;

let timer = null;
let sending = null;

const review = () => document.querySelector("#review[data-sample]");
const keyOf = (root) => `${PREFIX}${root.dataset.slug}:${root.dataset.sample}`;
const token = () => JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];

function address(key) {
  const [slug, sample] = key.slice(PREFIX.length).split(":");
  return `/p/${slug}/samples/${sample}/draft/`;
}

function fields() {
  return Object.fromEntries([...document.querySelectorAll("#review [data-draft]")].map((field) => [field.dataset.draft, field.value]));
}

function showState(text) {
  for (const state of document.querySelectorAll("[data-draft-state]")) state.textContent = text;
}

async function post(key, values, signal) {
  const response = await fetch(address(key), { method: "POST", headers: { "X-CSRFToken": token() }, body: new URLSearchParams(values), signal });
  // Someone who is signed out gets the sign-in page instead of JSON.
  if (!response.ok || !(response.headers.get("Content-Type") ?? "").includes("json")) throw new Error(`draft refused: ${response.status}`);
  return response.json();
}

function keepHere(key, values) {
  try {
    localStorage.setItem(key, JSON.stringify(values));
    showState("Kept in this browser until the server can be reached.");
  } catch {
    showState("The draft could not be saved. Copy it before you leave.");
  }
}

async function save() {
  timer = null;
  const root = review();
  if (!root) return;
  const key = keyOf(root);
  const values = fields();
  sending = new AbortController();
  try {
    const answer = await post(key, values, sending.signal);
    localStorage.removeItem(key);
    if (review() && keyOf(review()) === key) showState(answer.saved_at ? "Draft saved." : "");
  } catch (error) {
    if (error.name !== "AbortError") keepHere(key, values);
  } finally {
    sending = null;
  }
}

document.addEventListener("input", (event) => {
  if (!event.target.closest?.("#review [data-draft]")) return;
  clearTimeout(timer);
  timer = setTimeout(save, WAIT_MS);
});

// A decision or revision ends the draft; a late save must not restore it.
document.addEventListener("htmx:beforeSend", (event) => {
  if (!event.target.matches?.("#decide, #refine")) return;
  clearTimeout(timer);
  timer = null;
  sending?.abort();
  const key = keyOf(review());
  const values = fields();
  event.detail.xhr.addEventListener("loadend", () => {
    if (event.detail.xhr.status >= 200 && event.detail.xhr.status < 300) localStorage.removeItem(key);
    else if (Object.values(values).some(Boolean)) keepHere(key, values);
  });
});

async function sendKept() {
  for (const key of Object.keys(localStorage).filter((name) => name.startsWith(PREFIX))) {
    try {
      await post(key, JSON.parse(localStorage.getItem(key)));
      localStorage.removeItem(key);
      if (review() && keyOf(review()) === key) showState("Draft saved.");
    } catch {
      return; // still unreachable; the next round tries again
    }
  }
}

// Fill the fields from the draft that only this browser has, unless they have been filled since.
function restore() {
  const root = review();
  const kept = root && localStorage.getItem(keyOf(root));
  if (!kept) return;
  for (const [name, value] of Object.entries(JSON.parse(kept))) {
    const field = root.querySelector(`[data-draft="${name}"]`);
    if (field && value && (!field.value || field === document.activeElement || name === "text")) field.value = value;
  }
}

window.addEventListener("online", sendKept);
setInterval(() => { if (!document.hidden) sendKept(); }, RETRY_MS);
document.addEventListener("htmx:load", restore);
restore();
sendKept();

window.addEventListener("pagehide", () => {
  const root = review();
  if (!root || timer === null) return;
  clearTimeout(timer);
  const values = fields();
  if (!Object.values(values).some(Boolean)) return;
  const form = new URLSearchParams({ ...values, csrfmiddlewaretoken: token() });
  navigator.sendBeacon(address(keyOf(root)), form);
});
