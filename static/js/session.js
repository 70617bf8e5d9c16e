// The session behind the page. When it has ended, #signed-out says so over everything that was typed, and what was refused is sent
// again once the same person has signed in, here or in any other tab. Loaded before all other modules.
//   <form method="post">                       is sent when the server has said that the session lasts
//   <form method="post" data-session-free>     is sent as it is
// From other modules: the event "session:ended". To other modules: "session:back". No answer is swapped in unless the server says that it
// is for this person (X-Winnow-User): a sign-in page or a proxy's page is none.

const dialog = document.querySelector("#signed-out");
const { user } = document.body.dataset;
const ASK_MS = 2000;
const AGAIN = { "X-Winnow-Again": "1" };
const said = dialog.querySelector("[data-said]");
const words = said.textContent;
const repeats = new Map(); // what to send again, by the element that sent it
const sent = new WeakSet(); // forms that the server may have now
let asking = false;
let timer = null;
let renewedAt = 0;

// Who is signed in, null for nobody. Throws if the server does not answer.
async function ask() {
  const response = await fetch(dialog.dataset.session, { headers: { "X-Requested-With": "fetch" }, cache: "no-store" });
  if (response.status === 401 && response.headers.get("X-Winnow-Refused") === "signed-out") return null;
  if (!response.ok || !response.headers.get("X-Winnow-User")) throw new Error(`The session is not known: ${response.status}`);
  return response.json();
}

// A new session has a new CSRF token: the page's own would be refused.
function renew(csrf) {
  document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": csrf }));
  for (const field of document.querySelectorAll('input[name="csrfmiddlewaretoken"]')) field.value = csrf;
}

// Over what somebody types the dialog opens without taking the focus; over what they sent it does.
function open(found) {
  said.textContent = found ? `This browser is signed in as ${found.name} now. ${words}` : words;
  const modal = repeats.size > 0;
  if (dialog.open && (!modal || dialog.matches(":modal"))) return;
  const focused = document.activeElement;
  dialog.close();
  clearInterval(timer);
  timer = setInterval(goOn, ASK_MS);
  if (modal) return dialog.showModal();
  dialog.show();
  focused?.focus({ preventScroll: true });
}

async function goOn() {
  const found = await ask().catch(() => null);
  if (!dialog.open || !found) return;
  if (String(found.user) !== user) return open(found);
  renew(found.csrf);
  const again = [...repeats.values()];
  dialog.close();
  document.dispatchEvent(new Event("session:back"));
  for (const run of again) run();
}

dialog.addEventListener("close", () => {
  if (dialog.open) return; // it was opened again over the page
  clearInterval(timer);
  repeats.clear();
});
window.addEventListener("focus", () => { if (dialog.open) goOn(); });
document.addEventListener("session:ended", async () => {
  const found = await ask().catch(() => null);
  if (String(found?.user) !== user) return open(found);
  renew(found.csrf);
  if (Date.now() - renewedAt < 10_000) return; // not the token was the cause
  renewedAt = Date.now();
  document.dispatchEvent(new Event("session:back"));
});

// --- htmx ------------------------------------------------------------------------------------------------------------
function repeat(elt, { verb, path, target, formData }) {
  if (!elt.isConnected) return;
  formData.delete("csrfmiddlewaretoken");
  window.htmx.ajax(verb.toUpperCase(), path, { source: elt, target, values: formData, headers: AGAIN });
}

document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, shouldSwap } = event.detail;
  if (!user || !shouldSwap || xhr.getResponseHeader("X-Winnow-User") === user) return;
  event.detail.shouldSwap = false;
  event.detail.isError = true;
});

document.addEventListener("htmx:responseError", async (event) => {
  const { xhr, elt, requestConfig } = event.detail;
  const refused = xhr.getResponseHeader("X-Winnow-Refused");
  const other = (xhr.getResponseHeader("X-Winnow-User") ?? user) !== user;
  if (!user || (!refused && !other)) return;
  if (refused === "csrf" && "X-Winnow-Again" in requestConfig.headers) return; // not the token was the cause; toast.js tells it
  // Where only the token was old, it is sent again at once.
  const found = refused === "csrf" ? await ask().catch(() => null) : null;
  const isStill = String(found?.user) === user;
  if (isStill) renew(found.csrf);
  const background = elt.closest?.("[data-background]");
  if (isStill) return void (background || repeat(elt, requestConfig));
  if (!background) repeats.set(elt, () => repeat(elt, requestConfig));
  open(found);
});

// --- plain forms -----------------------------------------------------------------------------------------------------
const lost = (run) => ({ text: "The server could not be reached. Nothing was saved yet; the text is still here.", title: "No connection", tone: "bad", stays: true, id: "lost", action: { label: "Try again", run } });

async function send(form, submitter) {
  if (asking || !form.isConnected) return;
  const again = () => send(form, submitter);
  asking = true;
  try {
    const found = await ask();
    if (String(found?.user) !== user) {
      repeats.set(form, again);
      return open(found);
    }
    renew(found.csrf);
    sent.add(form);
    form.requestSubmit(submitter?.isConnected ? submitter : null);
  } catch {
    document.dispatchEvent(new CustomEvent("toast", { detail: lost(again) }));
  } finally {
    asking = false;
  }
}

window.addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  if (!user || event.defaultPrevented || sent.delete(form)) return;
  if ((submitter?.getAttribute("formmethod") ?? form.method) !== "post" || "sessionFree" in form.dataset) return;
  event.preventDefault();
  send(form, submitter);
});
