// Keyboard shortcuts. A page declares its keys on the elements that they press:
//   <button data-key="a">Approve <kbd>a</kbd></button>      one key, or several: data-key="ArrowRight n"
//   <button data-key="mod+enter">Save and next</button>     Ctrl or Cmd with Enter, also while typing
//   <button data-key="shift+g">Last <kbd>G</kbd></button>   a capital
//   <a data-goto="q" href="…">Queue</a>                     g, then q
// Ctrl or Cmd with k sends what the page declares as the event "palette:open" (palette.js).
// No key acts while typing, on key repeat, during an htmx request (except one marked data-background), or while <html> has
// data-keys-wait. A key that is pressed then is sent as the event "key:busy"; unless a listener cancels it, a hint says that it was
// not used. While a dialog is open only the keys inside it act. Backspace and Delete cannot be bound. A key that no element declares
// is sent as the event "key:free" (rows.js, panel.js).
// A person may change the keys (<meta name="preferences">): a pressed key becomes the declared one before anything else, and every
// <kbd> prints the key that the person presses. Code and templates only know declared keys.

const GOTO_MS = 1500;
const REFUSED = new Set(["backspace", "delete", "tab", "enter", " "]);
const TEXT_INPUTS = new Set(["text", "search", "email", "url", "tel", "password", "number", "date", "datetime-local", "month", "time", "week"]);

const DECLARED = JSON.parse(document.querySelector('meta[name="preferences"]')?.content ?? "{}").keys ?? {};
const PRESSED = Object.fromEntries(Object.entries(DECLARED).map(([pressed, key]) => [key, pressed]));

const underWay = new Set();
let leaving = 0;
let gotoUntil = 0;
let hint = null;

document.addEventListener("htmx:beforeSend", (event) => {
  const { xhr, elt } = event.detail;
  if (elt.closest?.("[data-background]")) return;
  xhr.addEventListener("loadstart", () => underWay.add(xhr));
  xhr.addEventListener("loadend", () => underWay.delete(xhr));
});
// A plain form leaves the page. Until then a second key must not press a second button.
window.addEventListener("submit", (event) => { if (!event.defaultPrevented) leaving = Date.now() + 5000; });
window.addEventListener("pageshow", () => { leaving = 0; });
const isBusy = () => underWay.size > 0 || Date.now() < leaving || document.documentElement.hasAttribute("data-keys-wait");

function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  return target instanceof HTMLInputElement && TEXT_INPUTS.has(target.type);
}

// The letter that is printed on the key; other alphabets are read by the key's position.
function keyName(event) {
  if (event.key.length !== 1) return event.key.toLowerCase();
  if (event.key.charCodeAt(0) > 127 && event.code.startsWith("Key")) return event.code.slice(3).toLowerCase();
  return event.key.toLowerCase();
}

const openDialog = () => [...document.querySelectorAll("dialog[open]")].at(-1) ?? null;
const isUsable = (element) =>
  element.checkVisibility({ visibilityProperty: true }) &&
  !element.matches(':disabled, [aria-disabled="true"], [aria-busy="true"]') &&
  !element.closest("[inert]");
const keysOf = (element) => element.dataset.key.toLowerCase().split(/\s+/).filter((key) => !REFUSED.has(key));

function declared(key) {
  const scope = openDialog() ?? document;
  return [...scope.querySelectorAll("[data-key]")].find((element) => keysOf(element).includes(key) && isUsable(element));
}

function press(element) {
  if (element.matches("input, textarea, select")) {
    element.focus();
    element.select?.();
  } else element.click();
}

function pressDeclared(key, event) {
  const element = declared(key);
  if (!element) return false;
  event.preventDefault();
  press(element);
  return true;
}

function showPending(text) {
  hint?.remove();
  hint = null;
  if (!text) return;
  hint = Object.assign(document.createElement("div"), { className: "key-pending", textContent: text });
  document.body.append(hint);
  setTimeout(() => showPending(""), GOTO_MS);
}

function goTo(key) {
  gotoUntil = 0;
  showPending("");
  const link = [...document.querySelectorAll("[data-goto]")].find((element) => element.dataset.goto === key);
  link?.click();
  return Boolean(link);
}

function onEscape(event) {
  if (openDialog()) return; // the dialog closes itself
  gotoUntil = 0;
  showPending("");
  if (isTyping(event.target)) event.target.blur();
  else document.dispatchEvent(new CustomEvent("key:free", { detail: { key: "escape" } }));
}

function onBusy(key, event) {
  if (key.length > 1 && !/^(arrow|mod|shift\+)/.test(key)) return;
  event.preventDefault();
  const asked = new CustomEvent("key:busy", { detail: { key }, cancelable: true });
  if (document.dispatchEvent(asked)) showPending(`${printed(key)} was not used: the page is still loading`);
}

function onModEnter(event) {
  const button = declared("mod+enter");
  if (!button) return;
  if (isBusy()) return onBusy("mod+enter", event);
  event.preventDefault();
  button.click();
}

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.isComposing || event.defaultPrevented) return;
  if (event.key === "Escape") return onEscape(event);
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && keyName(event) === "k") return onPalette(event);
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.altKey) return onModEnter(event);
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const name = keyName(event);
  if (REFUSED.has(name)) return;
  const pressed = event.shiftKey && /^[a-z]$/.test(name) ? `shift+${name}` : name;
  const key = event.isDeclared ? pressed : DECLARED[pressed] ?? pressed;
  if (isBusy()) return onBusy(key, event);
  if (!openDialog() && Date.now() < gotoUntil && !event.shiftKey) return void (goTo(name) && event.preventDefault());
  // A capital acts only where the page declares it.
  if (key.startsWith("shift+")) return void pressDeclared(key, event);
  if (!openDialog()) {
    if (key === "g" && document.querySelector("[data-goto]")) {
      gotoUntil = Date.now() + GOTO_MS;
      return showPending(`${printed("g")} …`);
    }
    if (key === "?") return showKeys(event);
  }
  if (pressDeclared(key, event) || openDialog()) return;
  const free = new CustomEvent("key:free", { detail: { key }, cancelable: true });
  if (!document.dispatchEvent(free)) event.preventDefault();
});

// What can be done here: actions of the page, then pages. `run` does nothing while a request is under way.
function commands() {
  const here = [...document.querySelectorAll("[data-key]")].filter((element) => !element.closest("dialog") && isUsable(element));
  const pages = [...document.querySelectorAll("[data-goto]")];
  const command = (element, group, keys) => ({
    group, label: labelOf(element), keys: keys.map(printed),
    run: () => { if (!isBusy() && isUsable(element)) press(element); },
  });
  return [
    ...pages.map((link) => ({ ...command(link, "Page", []), keys: [printed("g"), link.dataset.goto], run: () => { if (!isBusy()) link.click(); } })),
    ...[...document.querySelectorAll("[data-page]")].map((link) => ({ group: "Page", label: link.textContent, keys: [], run: () => { if (!isBusy()) link.click(); } })),
    ...here.map((element) => command(element, "Action", keysOf(element))),
  ];
}

function onPalette(event) {
  event.preventDefault(); // the browser's own search
  if (openDialog()) return;
  if (isBusy()) return onBusy("mod+k", event);
  document.dispatchEvent(new CustomEvent("palette:open", { detail: { commands: commands() } }));
}

// The dialog of all keys is built from the keys that the page shows now.
const PRINTED = { "mod+enter": "Ctrl+Enter", "mod+k": "Ctrl+K", arrowleft: "←", arrowright: "→", arrowup: "↑", arrowdown: "↓", escape: "Esc" };
function printed(declared) {
  const key = PRESSED[declared] ?? declared;
  return PRINTED[key] ?? (key.startsWith("shift+") ? key.slice(-1).toUpperCase() : key);
}

function labelOf(element) {
  if (element.dataset.keyLabel) return element.dataset.keyLabel;
  const label = element.getAttribute("aria-label") ?? element.getAttribute("placeholder");
  if (label) return label;
  const copy = element.cloneNode(true);
  for (const part of copy.querySelectorAll("kbd, .nav__count, .sr-only")) part.remove();
  return copy.textContent.trim().replace(/\s+/g, " ");
}

function line(keys, label) {
  const item = document.createElement("li");
  const names = document.createElement("span");
  for (const key of keys) names.append(Object.assign(document.createElement("kbd"), { textContent: key }), " ");
  item.append(Object.assign(document.createElement("span"), { textContent: label }), names);
  return item;
}

function showKeys(event) {
  const dialog = document.querySelector("dialog#keys");
  if (!dialog) return;
  event?.preventDefault();
  const seen = new Set();
  const here = [];
  for (const element of document.querySelectorAll("[data-key]")) {
    const keys = keysOf(element);
    if (element.closest("dialog") || !element.checkVisibility() || keys.every((key) => seen.has(key))) continue;
    for (const key of keys) seen.add(key);
    here.push(line(keys.map(printed), labelOf(element)));
  }
  const rows = document.querySelector("[data-rows]");
  if (rows) here.push(line([printed("j"), printed("k")], `Next / previous ${rows.dataset.rows || "row"}`));
  const destinations = [...document.querySelectorAll("[data-goto]")].map((link) => line([printed("g"), link.dataset.goto], labelOf(link)));
  const always = [line(["Esc"], "Leave the field, close"), line(["?"], "All keys"), ...(document.querySelector("#palette") ? [line(["Ctrl+K"], "Find a page, a sample or an action")] : [])];
  const group = (text) => Object.assign(document.createElement("li"), { className: "keys__group", textContent: text });
  dialog.querySelector("[data-keys-list]").replaceChildren(group("On this page"), ...here, ...always, group("Go to"), ...destinations);
  dialog.showModal();
}

document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-keys-open]")) showKeys();
});

// Print the person's keys on the page, and tell them to screen readers.
const SIGNS = Object.fromEntries(["arrowleft", "arrowright", "arrowup", "arrowdown"].map((key) => [PRINTED[key], key]));
const asDeclared = (sign) => SIGNS[sign] ?? (/^[A-Z]$/.test(sign) ? `shift+${sign.toLowerCase()}` : sign);

function announceKeys(root) {
  for (const element of root.querySelectorAll?.("[data-key]") ?? []) {
    const shortcuts = keysOf(element).map((key) => PRESSED[key] ?? key).map((key) => ({ "mod+enter": "Control+Enter" })[key] ?? key.replace(/^shift\+./, (capital) => `Shift+${capital.slice(-1).toUpperCase()}`));
    element.setAttribute("aria-keyshortcuts", shortcuts.join(" "));
  }
  for (const kbd of root.querySelectorAll?.("kbd:not([data-printed])") ?? []) {
    kbd.dataset.printed = "";
    const [first, ...rest] = kbd.textContent.trim().split(" "); // after g comes the key of a page, which stays
    if (PRESSED[asDeclared(first)]) kbd.textContent = [printed(asDeclared(first)), ...rest].join(" ");
  }
}
announceKeys(document);
document.addEventListener("htmx:load", (event) => announceKeys(event.detail.elt.parentElement ?? document));
