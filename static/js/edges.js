// The edges of the buckets as lines over the chart of thresholds, moved by mouse, touch or keys. Each is tied to the number
// input of its name, which works without this script.

const box = document.getElementById("edge-chart");
const chart = box?.querySelector(".chart");
const handles = Object.fromEntries([...(box?.querySelectorAll("[data-edge]") ?? [])].map((handle) => [handle.dataset.edge, handle]));
const inputs = Object.fromEntries(Object.keys(handles).map((name) => [name, document.getElementById(`edge-${name}`)]));
const STEPS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -5, PageUp: 5, Home: -100, End: 100 };

// A label has this many pixels; near the right end it is left of its line.
const LABEL = 110;

// Where 0 and 100 points are, in pixels of the box: the area that Plotly lets people drag in is exactly the plot.
function area() {
  const plot = chart.querySelector(".nsewdrag")?.getBoundingClientRect();
  const left = box.getBoundingClientRect().left;
  return plot && { left: plot.left - left, width: plot.width };
}

function place() {
  const plot = area();
  if (!plot) return;
  for (const [name, handle] of Object.entries(handles)) {
    const value = Number(inputs[name].value);
    const shown = inputs[name].value !== "" && value >= 0 && value <= 100;
    handle.hidden = !shown;
    if (!shown) continue;
    const left = plot.left + (plot.width * value) / 100;
    handle.style.left = `${left}px`;
    handle.dataset.side = left + LABEL > box.clientWidth ? "left" : "right";
    handle.setAttribute("aria-valuenow", String(value));
    handle.setAttribute("aria-valuetext", `${value} points`);
    handle.querySelector(".edge__label").textContent = `${name} ≥ ${value}`;
  }
}

// `refined` is never above `final`: an edge stops at the other one.
function set(name, wanted) {
  const other = Number(inputs[name === "final" ? "refined" : "final"].value);
  const [low, high] = name === "final" ? [other, 100] : [0, other];
  const value = Math.min(high, Math.max(low, wanted));
  if (value === Number(inputs[name].value)) return;
  inputs[name].value = String(value);
  inputs[name].dispatchEvent(new Event("input", { bubbles: true }));
}

for (const [name, handle] of Object.entries(handles)) {
  handle.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
  });
  handle.addEventListener("pointermove", (event) => {
    const plot = area();
    if (!plot || !handle.hasPointerCapture(event.pointerId)) return;
    set(name, Math.round((100 * (event.clientX - box.getBoundingClientRect().left - plot.left)) / plot.width));
  });
  handle.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    set(name, Number(inputs[name].value) + step);
  });
  inputs[name].addEventListener("input", place);
}

if (chart) {
  new MutationObserver(place).observe(chart, { attributes: true, attributeFilter: ["data-state"] });
  new ResizeObserver(() => requestAnimationFrame(place)).observe(box);
  place();
}
