// A box that scrolls can be focused, so that the arrow keys scroll it. Not all browsers do that by themselves. Boxes with
// something to focus inside need nothing. A table wider than its frame scrolls in it, and not the page under it; the head of
// others stays in view.

const BOXES = "pre, .code, .diff, .terminal, .table-wrap, .answer__body";
const INSIDE = "a[href], button, input, select, textarea, summary, [tabindex]";

const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.matches(".table-wrap")) target.classList.toggle("table-wrap--wide", target.scrollWidth > target.clientWidth + 1);
    const { overflowX, overflowY } = getComputedStyle(target);
    const across = target.scrollWidth > target.clientWidth && overflowX !== "visible";
    const down = target.scrollHeight > target.clientHeight && overflowY !== "visible";
    if ((across || down) && !target.querySelector(INSIDE)) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});

function find(root) {
  for (const box of root.querySelectorAll(BOXES)) if (!box.hasAttribute("tabindex")) sizes.observe(box);
}

find(document);
document.addEventListener("htmx:load", (event) => find(event.detail.elt));
