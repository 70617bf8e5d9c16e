// The columns of the review page. A plain script in <head>, not a module: it must run before the first paint.
//   <section class="review__side">                   a drawer. While it is closed, a key of something in it opens it and presses it
//   <button data-drawer>                             opens and closes it
//   <button data-wrap-lines>                         wraps long lines of code, or scrolls them
//   <button data-raw-text>                           shows answers as they are, or in their form (Markdown, JSON, diff)
//   <div role="separator" data-width="history">      changes the width of a column by dragging or by ← and →
// Widths are percent of the page. History and drawer share at most 40 %, so that the answers have the rest (css/review.css).
(() => {
  const KEY = "winnow-review";
  const SHARED = 40;
  const LEAST = 12;
  const DEFAULTS = { history: 20, side: 20, closed: false, wrap: true, raw: false };
  const root = document.documentElement;

  const isWidth = (value) => Number.isFinite(value) && value >= LEAST && value <= SHARED;
  // Storage can be blocked or hold anything; the columns then have their own widths.
  function read() {
    try {
      const stored = JSON.parse(localStorage.getItem(KEY)) ?? {};
      return {
        history: isWidth(stored.history) ? stored.history : DEFAULTS.history,
        side: isWidth(stored.side) ? Math.min(stored.side, SHARED - LEAST) : DEFAULTS.side,
        closed: stored.closed === true,
        wrap: stored.wrap !== false,
        raw: stored.raw === true,
      };
    } catch { return { ...DEFAULTS }; }
  }
  const panes = read();
  const most = (name) => {
    if (name === "side") return document.querySelector('[data-width="history"]') ? SHARED - LEAST : SHARED;
    return SHARED - (panes.closed ? 0 : panes.side);
  };

  function show() {
    root.style.setProperty("--pane-history", `${panes.history}%`);
    root.style.setProperty("--pane-side", `${panes.side}%`);
    root.toggleAttribute("data-drawer-closed", panes.closed);
    root.toggleAttribute("data-wrap", panes.wrap);
    root.toggleAttribute("data-raw", panes.raw);
    for (const button of document.querySelectorAll("[data-drawer]")) button.setAttribute("aria-expanded", String(!panes.closed));
    for (const button of document.querySelectorAll("[data-wrap-lines]")) button.setAttribute("aria-pressed", String(panes.wrap));
    for (const button of document.querySelectorAll("[data-raw-text]")) button.setAttribute("aria-pressed", String(panes.raw));
    for (const handle of document.querySelectorAll("[data-width]")) {
      const name = handle.dataset.width;
      handle.setAttribute("aria-valuemin", String(LEAST));
      handle.setAttribute("aria-valuemax", String(Math.round(most(name))));
      handle.setAttribute("aria-valuenow", String(Math.round(Math.min(panes[name], most(name)))));
    }
  }

  function keep() {
    show();
    try { localStorage.setItem(KEY, JSON.stringify(panes)); } catch { /* lasts as long as the page */ }
  }

  function setWidth(name, percent) {
    panes[name] = Math.max(LEAST, Math.min(most(name), percent));
    keep();
  }

  const say = (text) => document.dispatchEvent(new CustomEvent("say", { detail: { text } }));

  function setClosed(closed) {
    panes.closed = closed;
    keep();
    say(closed ? "Rubric and facts closed" : "Rubric and facts open");
  }

  function setWrap(wrap) {
    panes.wrap = wrap;
    keep();
    say(wrap ? "Long lines wrap" : "Long lines scroll");
  }

  function setRaw(raw) {
    panes.raw = raw;
    keep();
    say(raw ? "Answers as raw text" : "Answers in their form");
  }

  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-drawer]")) setClosed(!panes.closed);
    else if (event.target.closest?.("[data-wrap-lines]")) setWrap(!panes.wrap);
    else if (event.target.closest?.("[data-raw-text]")) setRaw(!panes.raw);
  });

  document.addEventListener("key:free", (event) => {
    if (!panes.closed) return;
    const inside = [...document.querySelectorAll(".review__side [data-key]")].find((element) => !element.closest("dialog") && element.dataset.key === event.detail.key);
    if (!inside) return;
    event.preventDefault();
    setClosed(false);
    if (inside.matches("input, textarea, select")) inside.focus();
    else inside.click();
  });

  // ← and → are those of the handle while it has the focus, not of the page.
  document.addEventListener("keydown", (event) => {
    const handle = event.target.closest?.("[data-width]");
    const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (!handle || !step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const name = handle.dataset.width;
    setWidth(name, Math.min(panes[name], most(name)) + (name === "side" ? -step : step));
  }, true);

  document.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest?.("[data-width]");
    if (!handle) return;
    event.preventDefault();
    handle.setPointerCapture(event.pointerId);
    const name = handle.dataset.width;
    const box = handle.closest(".review__cols").getBoundingClientRect();
    const move = (at) => setWidth(name, ((name === "side" ? box.right - at.clientX : at.clientX - box.left) / box.width) * 100);
    handle.addEventListener("pointermove", move);
    handle.addEventListener("lostpointercapture", () => handle.removeEventListener("pointermove", move), { once: true });
  });

  show();
  document.addEventListener("DOMContentLoaded", show);
  document.addEventListener("htmx:load", (event) => { if (event.detail.elt.id === "review") show(); });
})();
