// Draws Plotly figures that the server made:
//   <div class="chart" role="img" aria-label="…" data-figure-url="/…/figure.json"></div>
//   <div class="chart" role="img" aria-label="…"><script type="application/json">{…}</script></div>
// Colours can be tokens such as "var(--good)", which are resolved here and again when the theme changes.
// A click on a point whose customdata is a path on this site opens it. A chart loads when it comes into view, and Plotly
// with the first one. Below a chart its figures can be opened as a table, unless the page has one already: data-has-table.

const source = document.querySelector('meta[name="plotly-src"]')?.content;
const figures = new Map();
let loading = null;

// Plotly inserts the style sheet of a map library inline, which our security policy refuses with an error in the console, unless
// an element with this id exists. The id belongs to the pinned version of Plotly.
const MAP_STYLES = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";

function plotly() {
  loading ??= new Promise((resolve, reject) => {
    if (window.Plotly) return resolve(window.Plotly);
    document.head.append(Object.assign(document.createElement("meta"), { id: MAP_STYLES }));
    const script = Object.assign(document.createElement("script"), { src: source, async: true });
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => reject(new Error("The chart library could not be loaded.")));
    document.head.append(script);
  });
  return loading;
}

// The value of a token is light-dark(…), which only a rendered element resolves to a colour.
function resolver() {
  const probe = Object.assign(document.createElement("span"), { hidden: true });
  document.body.append(probe);
  const known = new Map();
  const colour = (token) => {
    if (!known.has(token)) {
      probe.style.color = token;
      known.set(token, getComputedStyle(probe).color);
    }
    return known.get(token);
  };
  return { colour, done: () => probe.remove() };
}

function withColours(value, colour) {
  if (typeof value === "string") return /^var\(--[\w-]+\)$/.test(value) ? colour(value) : value;
  if (Array.isArray(value)) return value.map((one) => withColours(one, colour));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withColours(one, colour)]));
  return value;
}

function themed({ data, layout }, colour) {
  const font = getComputedStyle(document.body).fontFamily;
  const legend = layout?.showlegend ?? data.length > 1;
  const axis = { gridcolor: colour("var(--line)"), linecolor: colour("var(--line-strong)"), zerolinecolor: colour("var(--line-strong)"), tickcolor: colour("var(--line-strong)"), automargin: true };
  const base = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: font, size: 12, color: colour("var(--text-2)") },
    colorway: [1, 2, 3, 4, 5].map((n) => colour(`var(--chart-${n})`)),
    margin: { l: 44, r: 12, t: legend ? 32 : 8, b: 36 },
    bargap: 0.08,
    hoverlabel: { bgcolor: colour("var(--bg-raised)"), bordercolor: colour("var(--line-strong)"), font: { family: font, size: 12, color: colour("var(--text)") } },
    legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0 },
  };
  // The template of Plotly's Python library has its own colours, for a white page.
  const { template, ...own } = layout ?? {};
  const out = { ...base, ...own, font: { ...base.font, ...own.font }, margin: { ...base.margin, ...own.margin }, autosize: true };
  for (const name of new Set(["xaxis", "yaxis", ...Object.keys(own).filter((key) => /^[xy]axis\d*$/.test(key))])) out[name] = { ...axis, ...own[name] };
  return out;
}

const text = (value) => (typeof value === "number" ? String(Math.round(value * 100) / 100) : String(value ?? ""));

function row(cells, tag) {
  const line = document.createElement("tr");
  line.append(...cells.map((value, position) => {
    const head = tag === "th" || position === 0;
    const cell = Object.assign(document.createElement(head ? "th" : "td"), { textContent: value, className: position ? "num" : "" });
    if (head) cell.scope = tag === "th" ? "col" : "row";
    return cell;
  }));
  return line;
}

// One row for each place on the axis, one column for each trace.
function tableOf({ data, layout }, label) {
  const traces = data.map(({ name, orientation, x, y }) => {
    const [places, values] = orientation === "h" ? [y, x] : [x, y];
    return { name, values: new Map(places.map((place, position) => [text(place), text(values[position])])) };
  });
  const places = new Set(traces.flatMap(({ values }) => [...values.keys()]));
  const sideways = data[0]?.orientation === "h";
  const [across, up] = [layout?.xaxis, layout?.yaxis].map((one) => one?.title?.text ?? "");
  const [head, unit] = sideways ? [up, across] : [across, up];
  const table = Object.assign(document.createElement("table"), { className: "table" });
  table.append(Object.assign(document.createElement("caption"), { className: "sr-only", textContent: label }));
  table.createTHead().append(row([head || "at", ...traces.map(({ name }) => (name && !name.includes("%{") ? name : unit))], "th"));
  table.createTBody().append(...[...places].map((place) => row([place, ...traces.map(({ values }) => values.get(place) ?? "–")], "td")));
  const wrap = Object.assign(document.createElement("div"), { className: "table-wrap" });
  wrap.append(table);
  const fold = Object.assign(document.createElement("details"), { className: "fold" });
  fold.append(Object.assign(document.createElement("summary"), { textContent: "As a table" }), wrap);
  return fold;
}

async function draw(element) {
  const figure = figures.get(element);
  const Plotly = await plotly();
  const { colour, done } = resolver();
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const { data, layout } = withColours({ data: figure.data, layout: themed(figure, colour) }, colour);
  done();
  await Plotly.react(element, data, { ...layout, ...(still ? { transition: { duration: 0 } } : {}) }, { displayModeBar: false, responsive: true, showTips: false, ...figure.config });
  if (figure.drawn) return;
  figure.drawn = true;
  element.dataset.state = "ready";
  if (!("hasTable" in element.dataset)) element.after(tableOf(figure, element.getAttribute("aria-label")));
  element.on("plotly_click", ({ points }) => {
    const address = [points[0]?.customdata].flat()[0];
    if (typeof address === "string" && /^\/(?!\/)/.test(address)) location.assign(address);
  });
}

// Characters in names that change the order of text become visible, as in pages (curation/web/text/reordering.py).
const REORDERING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const sign = (character) => `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
const visible = (_, value) => (typeof value === "string" ? value.replace(REORDERING, sign) : value);

async function load(element) {
  element.dataset.state = "loading";
  try {
    const inline = element.querySelector('script[type="application/json"]');
    if (inline) {
      figures.set(element, JSON.parse(inline.textContent, visible));
      inline.remove();
    } else {
      const response = await fetch(element.dataset.figureUrl, { headers: { Accept: "application/json" } });
      if (!response.ok) throw new Error(`The figure could not be read (${response.status}).`);
      figures.set(element, JSON.parse(await response.text(), visible));
    }
    await draw(element);
  } catch (error) {
    element.dataset.state = "failed";
    element.textContent = error instanceof Error ? error.message : String(error);
  }
}

const coming = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    coming.unobserve(target);
    load(target);
  }
}, { rootMargin: "200px" });

function find(root) {
  const found = [...(root.querySelectorAll?.(".chart") ?? [])];
  if (root.matches?.(".chart")) found.push(root);
  for (const element of found) {
    if (!element.dataset.state && (element.dataset.figureUrl || element.querySelector('script[type="application/json"]'))) coming.observe(element);
  }
  for (const element of figures.keys()) {
    if (element.isConnected) continue;
    window.Plotly?.purge(element);
    figures.delete(element);
  }
}

find(document);
document.addEventListener("htmx:load", (event) => find(event.detail.elt));
document.addEventListener("theme:change", () => { for (const element of figures.keys()) draw(element); });
