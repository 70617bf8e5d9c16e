// A button that works says so: aria-busy and disabled while its request is under way, then enabled again with the focus back.

function buttonOf(event) {
  const { elt, requestConfig } = event.detail;
  const submitter = requestConfig?.triggeringEvent?.submitter;
  if (submitter instanceof HTMLButtonElement) return submitter;
  if (elt instanceof HTMLButtonElement) return elt;
  return elt instanceof HTMLFormElement ? elt.querySelector('button[type="submit"], button:not([type])') : null;
}

function hold(button) {
  const focused = document.activeElement === button;
  button.setAttribute("aria-busy", "true");
  button.disabled = true;
  return () => {
    button.removeAttribute("aria-busy");
    button.disabled = false;
    if (focused && button.isConnected && document.activeElement === document.body) button.focus({ preventScroll: true });
  };
}

document.addEventListener("htmx:beforeSend", (event) => {
  const button = buttonOf(event);
  if (!button || button.disabled || button.closest("[data-background]")) return;
  event.detail.xhr.addEventListener("loadend", hold(button));
});

// A plain form: after the values are collected, so the button's own value is still sent. A download does not leave the page.
window.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (event.defaultPrevented || !(button instanceof HTMLButtonElement)) return;
  setTimeout(() => {
    const release = hold(button);
    window.addEventListener("pageshow", release, { once: true });
    if ("download" in event.target.dataset) setTimeout(release, 2000);
  }, 0);
});
