// Things that open: the side panel, dialogs, menus.
//   <a href="/full" hx-get="/part" hx-target="#panel-body" data-panel-title="Sample 12">   opens beside the list
//   <button data-dialog="#confirm">                                                        opens <dialog id="confirm">
//   <button hx-get="/form" hx-target="#dialog-body" data-dialog-title="New model">         opens the shared dialog
//   <button data-dialog-close>, <button data-panel-close>
// The open panel is in the address (#open= and the id of its row), so that Back closes it and a link opens it.
// The server closes by response header: HX-Trigger: {"dialog:close": null} or {"panel:close": null}.

const panel = document.querySelector("#panel");
const dialog = document.querySelector("dialog#dialog");
let opener = null;

function skeleton() {
  const lines = ["skeleton skeleton--title", "skeleton", "skeleton skeleton--short", "skeleton skeleton--block"];
  const box = Object.assign(document.createElement("div"), { className: "stack" });
  box.setAttribute("aria-hidden", "true");
  box.append(...lines.map((className) => Object.assign(document.createElement("span"), { className })));
  return box;
}

function mark(element) {
  for (const row of document.querySelectorAll('tr[aria-current="true"], [data-row][aria-current="true"]')) row.removeAttribute("aria-current");
  element?.closest("tr, [data-row]")?.setAttribute("aria-current", "true");
}

function openPanel(from) {
  opener = from;
  panel.hidden = false;
  panel.querySelector("#panel-title").textContent = from.dataset.panelTitle ?? "";
  const full = panel.querySelector("[data-panel-full]");
  const address = from.getAttribute("href");
  full.hidden = !address;
  if (address) full.href = address;
  panel.querySelector("#panel-body").replaceChildren(skeleton());
  mark(from);
  const row = from.closest("[data-row][id]");
  if (row && openInAddress() !== row.id) {
    const how = openInAddress() ? "replaceState" : "pushState";
    history[how]({ panel: true }, "", `${OPEN}${row.id}`);
  }
}

const OPEN = "#open=";
const openInAddress = () => (location.hash.startsWith(OPEN) ? location.hash.slice(OPEN.length) : "");

// Open the panel of the row in the address, or close it where there is none.
function follow() {
  const id = openInAddress();
  if (!id) return hidePanel();
  const link = document.getElementById(id)?.querySelector('[hx-target="#panel-body"]');
  if (link) link.click();
  else document.dispatchEvent(new CustomEvent("toast", { detail: { text: `The row ${id} is not in this list.`, tone: "borderline" } }));
}
// Before htmx, which would load the list again.
window.addEventListener("popstate", (event) => {
  if (!openInAddress() && panel?.hidden !== false) return;
  event.stopImmediatePropagation();
  follow();
});
if (panel && openInAddress()) window.addEventListener("load", follow);

function closePanel() {
  if (!panel || panel.hidden) return false;
  if (history.state?.panel) history.back(); // and then popstate hides it
  else {
    if (openInAddress()) history.replaceState(history.state, "", location.pathname + location.search);
    hidePanel();
  }
  return true;
}

function hidePanel() {
  if (!panel || panel.hidden) return;
  panel.hidden = true;
  panel.querySelector("#panel-body").replaceChildren();
  mark(null);
  // If the list was reloaded since, focus its first row.
  const back = opener?.isConnected ? opener : document.querySelector("[data-row] a[href]");
  back?.focus();
  opener = null;
}

document.addEventListener("htmx:beforeRequest", (event) => {
  const { target, elt } = event.detail;
  if (target?.id === "panel-body" && !panel.contains(elt)) openPanel(elt);
  if (target?.id === "dialog-body" && !dialog.open) {
    dialog.querySelector("#dialog-title").textContent = elt.dataset.dialogTitle ?? "";
    target.replaceChildren(skeleton());
    dialog.showModal();
  }
});
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target?.id === "panel-body") panel.focus({ preventScroll: true });
  if (event.detail.target?.id === "dialog-body") event.detail.target.querySelector("[autofocus], input:not([type=hidden]), select, textarea, button")?.focus();
});
document.addEventListener("htmx:sendError", (event) => { if (event.detail.target?.id === "dialog-body") dialog.close(); });
document.addEventListener("htmx:responseError", (event) => {
  const id = event.detail.target?.id;
  if (id === "dialog-body" && event.detail.target.querySelector(".skeleton")) dialog.close();
  if (id === "panel-body" && event.detail.target.querySelector(".skeleton")) closePanel();
});
document.addEventListener("dialog:close", () => document.querySelectorAll("dialog[open]").forEach((open) => open.close()));
document.addEventListener("panel:close", closePanel);
document.addEventListener("key:free", (event) => {
  if (event.detail.key !== "escape") return;
  const menu = document.querySelector("details.menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  } else closePanel();
});

document.addEventListener("click", (event) => {
  const from = event.target.closest?.("[data-dialog]");
  if (from) document.querySelector(from.dataset.dialog)?.showModal();
  else if (event.target.closest?.("[data-dialog-close]")) event.target.closest("dialog")?.close();
  else if (event.target.closest?.("[data-panel-close]")) closePanel();
  else if (event.target instanceof HTMLDialogElement && event.target.open && outside(event)) event.target.close();
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target) || event.target.closest(".menu__list a, .menu__list button")) menu.open = false;
  }
});

function outside(event) {
  const box = event.target.getBoundingClientRect();
  return event.clientX < box.left || event.clientX > box.right || event.clientY < box.top || event.clientY > box.bottom;
}
