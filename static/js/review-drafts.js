// Drafts of the comment, the refined text and the note ([data-draft="name"]): sent to the server while typing, or kept in this
// browser until the server can be reached again. [data-draft-state] shows where the draft is.

// Another person who uses this browser has other keys.
const PREFIX = `winnow-draft:${document.body.dataset.user}:`;
const mine = () => Object.keys(localStorage).filter((name) => name.startsWith(PREFIX));
const WAIT_MS = 700;
const RETRY_MS = 10_000;

let timer = null;
let sending = null;
let leaving = false; // the next page may be read before a draft is saved, and finds its copy
let waiting = null; // what is sent after what is being sent
const flying = new Set(); // the keys that are being sent

const review = () => document.querySelector("#review[data-sample]");
const baseOf = (root) => `${PREFIX}${root.dataset.slug}:${root.dataset.sample}`;
const token = () => JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];

function address(key) {
  const [slug, sample] = key.slice(PREFIX.length).split(":");
  return `/p/${slug}/samples/${sample}/draft/`;
}

// What is typed now, by the key under which this browser keeps it: the text and note of the answer that is edited, and the comment
// with the pick.
function drafts() {
  const root = review();
  const found = new Map();
  if (!root) return found;
  const value = (selector) => root.querySelector(selector)?.value;
  const of = value('#refine [name="of"]');
  if (of) found.set(`${baseOf(root)}:${of}`, { text: value("#refine-text"), note: value('#refine [name="note"]'), of });
  if (root.querySelector("#comment")) found.set(baseOf(root), { comment: value("#comment"), preference: value('#decide [name="preference"]'), left: value('#decide [name="left"]') ?? "" });
  return found;
}

const isEmpty = ({ text, note, comment }) => !(text || note || comment);

function showState(text) {
  for (const state of document.querySelectorAll("[data-draft-state]")) state.textContent = text;
}

// Resolves only if the server confirms this very draft: any other answer, whatever its status, is no confirmation.
async function post(key, values, signal) {
  const copy = String(crypto.getRandomValues(new Uint32Array(2)).join("-"));
  const body = new URLSearchParams({ ...values, copy });
  const response = await fetch(address(key), { method: "POST", headers: { "X-CSRFToken": token(), "X-Requested-With": "fetch" }, body, signal });
  const refused = response.headers.get("X-Winnow-Refused");
  if (refused) document.dispatchEvent(new Event("session:ended"));
  const answer = response.ok ? await response.json() : null;
  if (answer?.copy !== copy) throw new Error(`draft refused: ${response.status}`);
  return answer;
}

function keep(key, values) {
  try {
    localStorage.setItem(key, JSON.stringify(values));
    return true;
  } catch {
    return false;
  }
}

const keepHere = (key, values) => showState(keep(key, values) ? "Kept in this browser until the server has it." : "The draft could not be saved. Copy it before you leave.");

// A copy that was not changed since it was sent goes.
function forget(key, values) {
  if (!leaving && localStorage.getItem(key) === JSON.stringify(values)) localStorage.removeItem(key);
}

async function save() {
  timer = null;
  waiting = drafts();
  for (const [key, values] of waiting) keep(key, values); // the page may be closed before the server answers
  if (sending) return;
  while (waiting) {
    const current = waiting;
    waiting = null;
    sending = new AbortController();
    for (const [key, values] of current) await send(key, values, sending.signal);
  }
  sending = null;
}

async function send(key, values, signal) {
  if (signal.aborted) return;
  flying.add(key);
  try {
    const answer = await post(key, values, signal);
    forget(key, values);
    document.dispatchEvent(new Event("reached"));
    if (drafts().has(key)) showState(answer.saved_at ? "Draft saved." : "");
  } catch (error) {
    if (error.name !== "AbortError" && !waiting?.has(key)) keepHere(key, values);
  } finally {
    flying.delete(key);
  }
}

function saveSoon() {
  clearTimeout(timer);
  timer = setTimeout(save, WAIT_MS);
}

document.addEventListener("input", (event) => {
  if (event.target.closest?.("#review [data-draft]")) saveSoon();
});
// A pick is kept with what was typed.
document.addEventListener("draft:touched", () => {
  if ([...drafts().values()].some((values) => !isEmpty(values))) saveSoon();
});

// The editor goes, with what was typed a moment before.
document.addEventListener("draft:closing", () => {
  if (timer === null) return;
  clearTimeout(timer);
  save();
});

// A decision or revision ends the draft; a late save must not restore it.
document.addEventListener("htmx:beforeSend", (event) => {
  if (!event.target.matches?.("#decide, #refine")) return;
  clearTimeout(timer);
  timer = waiting = null;
  sending?.abort();
  const current = drafts();
  for (const [key, values] of current) if (!isEmpty(values)) keep(key, values);
  const { xhr } = event.detail;
  xhr.addEventListener("loadend", () => {
    const done = xhr.status >= 200 && xhr.status < 300 && xhr.getResponseHeader("X-Winnow-User") === document.body.dataset.user;
    for (const [key, values] of current) {
      if (done) localStorage.removeItem(key);
      else if (!isEmpty(values)) keepHere(key, values);
    }
  });
});

// The sample that is being opened may have been read before its draft is saved: the draft is sent once the fields show it.
async function sendKept() {
  if (document.querySelector("#review [data-opens]")) return;
  for (const key of mine()) {
    const kept = localStorage.getItem(key);
    if (kept === null || flying.has(key)) continue; // sent meanwhile, or now
    try {
      const values = JSON.parse(kept);
      await post(key, values);
      forget(key, values);
      document.dispatchEvent(new Event("reached"));
      if (drafts().has(key)) showState("Draft saved.");
      else document.dispatchEvent(new Event("draft:sent"));
    } catch {
      return; // still unreachable; the next round tries again
    }
  }
}

// Fill the fields from the drafts that only this browser has, unless they have been filled since.
function restore() {
  for (const key of drafts().keys()) {
    const kept = localStorage.getItem(key);
    if (!kept) continue;
    for (const [name, value] of Object.entries(JSON.parse(kept))) {
      const field = review().querySelector(`[data-draft="${name}"]`);
      if (field && value && (!field.value || field === document.activeElement || name === "text")) field.value = value;
    }
  }
}

window.addEventListener("online", sendKept);
document.addEventListener("session:back", sendKept);
window.addEventListener("beforeunload", () => { leaving = true; });
setInterval(() => {
  leaving = false; // the page is still there, as after a download
  if (!document.hidden) sendKept();
}, RETRY_MS);
document.addEventListener("htmx:load", ({ target }) => {
  restore();
  if (target.id === "review") sendKept();
});
restore();
sendKept();

window.addEventListener("pagehide", () => {
  if (timer === null) return;
  clearTimeout(timer);
  for (const [key, values] of drafts()) {
    if (isEmpty(values)) continue;
    keepHere(key, values); // nobody reads the answer to a beacon
    navigator.sendBeacon(address(key), new URLSearchParams({ ...values, csrfmiddlewaretoken: token() }));
  }
});
