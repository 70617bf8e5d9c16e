// Short messages at the corner, read out politely. From the server: HX-Trigger: {"toast": {"text": "…", "tone": "good",
// "title": "…", "action": {"label": "Undo", "url": "/…"}}} (the action is a POST). From a module: a "toast" event with the same detail;
// a "say" event is read out and not shown. A toast with an `id` replaces the one before it. Failed htmx requests are told here in words,
// with a way to try again; those that did not reach the server end when it is reached again.

const STAYS_MS = 6000;
const MOST = 4;
const region = document.querySelector("#toasts");
const speaker = document.querySelector("#say");

const WORDS = {
  400: ["Not accepted", "The server did not understand this request."],
  403: ["Not allowed", "Your role in this project does not allow this."],
  404: ["Not found", "The page or object no longer exists, or it belongs to another project."],
  409: ["Conflict", "This was already done in another way. Reload to see the current state."],
  412: ["Changed meanwhile", "Someone changed this after you opened it. Nothing was overwritten. Reload to see what changed."],
  413: ["Too large", "The server refuses input of this size."],
  429: ["Too many requests", "Wait a moment, then try again."],
};

// The page of a proxy between this browser and the server.
const FOREIGN = ["No answer of this site", "Something else answered in its place. Nothing was saved yet."];

function close(toast) {
  toast.remove();
}

function show({ text, title = "", tone = "neutral", action = null, stays = false, id = "" }) {
  if (id) region.querySelector(`[data-toast="${id}"]`)?.remove();
  const toast = Object.assign(document.createElement("div"), { className: `toast toast--${tone}` });
  if (id) toast.dataset.toast = id;
  const body = Object.assign(document.createElement("div"), { className: "toast__text" });
  if (title) body.append(Object.assign(document.createElement("span"), { className: "toast__title", textContent: title }));
  body.append(text);
  toast.append(body);
  if (action) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "btn btn--s", textContent: action.label });
    button.addEventListener("click", () => {
      close(toast);
      if (action.run) action.run();
      else window.htmx.ajax("POST", action.url, { swap: "none" });
    });
    toast.append(button);
  }
  const dismiss = Object.assign(document.createElement("button"), { type: "button", className: "btn btn--quiet btn--s btn--icon", textContent: "×" });
  dismiss.setAttribute("aria-label", "Dismiss");
  dismiss.addEventListener("click", () => close(toast));
  toast.append(dismiss);
  region.append(toast);
  while (region.children.length > MOST) region.firstElementChild.remove();
  if (!stays) expire(toast);
  return toast;
}

// A message with the pointer or focus stays.
function expire(toast) {
  setTimeout(() => {
    if (toast.matches(":hover, :focus-within")) expire(toast);
    else close(toast);
  }, STAYS_MS);
}

// The server's own text comes first: problem+json, or the plain text of a page's refusal.
function detail(xhr) {
  const type = xhr.getResponseHeader("Content-Type") ?? "";
  if (type.startsWith("text/plain")) return xhr.responseText.slice(0, 500);
  if (!type.includes("json")) return "";
  try {
    const problem = JSON.parse(xhr.responseText);
    return typeof problem.detail === "string" ? problem.detail : "";
  } catch {
    return "";
  }
}

// The same request once more, from the element that made it.
function retry(elt, config) {
  if (!elt?.isConnected || !config) return null;
  const again = () => window.htmx.ajax(config.verb.toUpperCase(), config.path, { source: elt, target: config.target, values: Object.fromEntries(config.formData ?? []) });
  return { label: "Try again", run: again };
}

// What session.js tells: nobody, or somebody else, is signed in, or the page's token was old and the request is sent again.
function isOfSession(xhr, { headers }) {
  const refused = xhr.getResponseHeader("X-Winnow-Refused");
  if (refused) return refused === "signed-out" || !("X-Winnow-Again" in headers);
  return xhr.status < 400 && xhr.getResponseHeader("X-Winnow-User") !== null;
}

function onResponseError(event) {
  const { xhr, elt, requestConfig } = event.detail;
  if (elt.closest?.("[data-background]") ) return;
  if (isOfSession(xhr, requestConfig)) return;
  const server = xhr.status >= 500 || xhr.status < 400;
  const [title, words] = xhr.status < 400 ? FOREIGN : WORDS[xhr.status] ?? (server ? ["The server failed", "The error is in the log. Nothing was saved."] : [`Refused (${xhr.status})`, ""]);
  let text = (xhr.status < 400 ? "" : detail(xhr)) || words;
  const wait = xhr.getResponseHeader("Retry-After");
  if (xhr.status === 429 && /^\d+$/.test(wait ?? "")) text = `${text} Try again in ${wait} s.`;
  const stale = xhr.status === 409 || xhr.status === 412;
  const action = stale ? { label: "Reload", run: () => location.reload() } : server || xhr.status === 429 ? retry(elt, requestConfig) : null;
  show({ title, text, tone: "bad", action, stays: true });
}

function onLost(title, text) {
  return (event) => {
    const { elt, requestConfig } = event.detail;
    if (elt.closest?.("[data-background]")) return;
    show({ title, text, tone: "bad", action: retry(elt, requestConfig), stays: true, id: "lost" });
  };
}

const onReached = () => region.querySelector('[data-toast="lost"]')?.remove();
window.addEventListener("online", onReached);
document.addEventListener("reached", onReached);
document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.xhr.status > 0) onReached(); });

document.addEventListener("toast", (event) => show(event.detail));
document.addEventListener("say", (event) => { speaker.textContent = event.detail.text; });
document.addEventListener("htmx:responseError", onResponseError);
document.addEventListener("htmx:sendError", onLost("No connection", "The server could not be reached. Nothing was saved yet."));
document.addEventListener("htmx:timeout", onLost("No answer", "The server took too long."));
for (const toast of region.querySelectorAll(".toast")) {
  toast.querySelector("button")?.addEventListener("click", () => close(toast));
  if (!toast.classList.contains("toast--bad")) expire(toast);
}
