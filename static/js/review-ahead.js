// The next samples of the queue (#review[data-ahead]) are fetched ahead, each leased to this person. A decision shows the next one at
// once and is sent behind it, one after the other. A decision that fails brings its sample back, with the reason. Samples that are
// not shown are released when the page is left, or when it shows another sample than the next. Loaded after the modules that ask
// questions before a decision.

const MOST = 2;
let ahead = []; // { root, since }, the first is shown next
let filling = false;
let generation = 0;
let sent = Promise.resolve();
let underWay = 0;

const review = () => document.querySelector("#review[data-sample]");
const token = () => JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];
const post = (url, body) => fetch(url, { method: "POST", body, keepalive: true, headers: { "X-CSRFToken": token(), "HX-Request": "true", "X-Requested-With": "fetch" } });
const send = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));

function rootOf(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  return holder.content.querySelector("#review");
}

async function fill() {
  const url = review()?.dataset.ahead;
  if (!url || filling || ahead.length >= MOST) return;
  filling = true;
  const mine = generation;
  let root = null;
  try {
    const response = await post(url);
    if (response.status === 200) root = rootOf(await response.text());
  } catch { /* without it the next sample comes with the answer to the decision */ }
  filling = false;
  if (root && mine === generation) {
    ahead.push({ root, since: performance.now() });
    fill();
  } else if (root) release();
}

// While a sample is read for long, those after it are fetched again before their leases lapse.
const isOld = (part) => ahead.length > 0 && performance.now() - ahead[0].since > 1000 * part * review().dataset.aheadSeconds;

function renew() {
  if (!document.hidden && !filling && isOld(0.8)) fetchAgain();
}

// What is leased is given back first: else the samples after it would be fetched.
async function fetchAgain() {
  filling = true;
  generation += 1;
  ahead = [];
  try { await post(review().dataset.aheadRelease); } catch { /* the leases lapse */ }
  filling = false;
  fill();
}

function release() {
  const url = review()?.dataset.aheadRelease;
  if (!url) return;
  const form = new FormData();
  form.set("csrfmiddlewaretoken", token());
  navigator.sendBeacon(url, form);
}

function drop() {
  generation += 1;
  if (ahead.length > 0) release();
  ahead = [];
}

function show(root) {
  document.dispatchEvent(new Event("draft:closing"));
  review().replaceWith(root);
  window.htmx.process(root);
  window.htmx.trigger(root, "htmx:load", { elt: root });
}

// The parts of the page that a saved decision changes.
function update(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  for (const part of [...holder.content.children]) {
    const here = document.getElementById(part.id);
    if (!here) continue;
    const isLease = part.id.startsWith("lease-"); // whose own attributes extend it
    if (isLease) here.replaceWith(part);
    else here.replaceChildren(...part.childNodes);
    window.htmx.process(isLease ? part : here);
    window.htmx.trigger(isLease ? part : here, "htmx:load", { elt: isLease ? part : here });
  }
}

// Returns whether the decision is saved.
async function deliver(url, values, old) {
  let reason = "The server could not be reached.";
  try {
    const response = await post(url, values);
    const text = await response.text();
    if (response.headers.get("X-Winnow-Refused")) send("session:ended");
    else if (response.ok) {
      update(text);
      send("say", JSON.parse(response.headers.get("HX-Trigger") ?? "{}").say);
      return true;
    }
    const now = rootOf(text);
    if (now) {
      bringBack(now, "It changed meanwhile."); // the sample as it is now, with the reason
      return false;
    }
    reason = text.startsWith("{") ? JSON.parse(text).detail : `The server answered ${response.status}.`;
  } catch { /* the reason is there */ }
  bringBack(old, reason);
  return false;
}

function bringBack(root, reason) {
  drop();
  show(root);
  send("toast", { title: `Sample ${root.dataset.sample} is not decided`, text: reason, tone: "bad", id: "not-decided" });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("#review button, #review a[href]");
  if (!button) return;
  const form = button.name === "action" && button.form?.id === "decide" ? button.form : null;
  if (isOld(1)) drop();
  if (form && ahead.length > 0) {
    event.preventDefault();
    event.stopImmediatePropagation();
    const old = review();
    const values = new FormData(form, button);
    button.closest("dialog")?.close();
    const { root } = ahead.shift();
    values.set("ahead", root.dataset.sample);
    underWay += 1;
    const saved = sent.then(() => deliver(form.getAttribute("action"), new URLSearchParams(values), old));
    sent = saved.finally(() => { underWay -= 1; });
    send("draft:ending", { form, saved });
    show(root);
  } else if (underWay > 0 && (form || button.matches("[form=decide][hx-post], .keybar [href]"))) {
    // What comes after a decision waits for it: an undo must not undo the one before.
    event.preventDefault();
    event.stopImmediatePropagation();
    document.dispatchEvent(new Event("review:held"));
    const root = review();
    sent.then(() => {
      if (review() !== root) return; // the decision has failed, and its sample is back
      const now = button.isConnected ? button : root.querySelector(`[data-key="${button.dataset.key}"]`); // the answer renews the keys
      if (now) now.click();
      else document.dispatchEvent(new Event("review:free"));
    });
  }
}, true);

document.addEventListener("htmx:beforeSend", (event) => {
  if (event.detail.target?.id === "review" && !event.detail.elt.closest("[data-background]")) drop();
});
document.addEventListener("htmx:load", (event) => {
  if (event.detail.elt.id === "review") setTimeout(fill, 0);
});
// A sample may have been read before its draft was saved.
document.addEventListener("draft:sent", () => {
  if (ahead.length > 0 && !filling) return fetchAgain();
  drop();
  fill();
});
window.addEventListener("pagehide", drop);
setInterval(renew, 5000);
setTimeout(fill, 0);
