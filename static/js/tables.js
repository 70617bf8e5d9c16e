// How a person wants the tables of lists (table[data-rows]): columns shown or hidden, pinned, their order and widths, density. What is chosen in the dialog
// #columns applies at once and is saved on the server (PATCH /api/v1/preferences). A column is named by its heading.
// A column with the same cell in every row is not shown unless the person chose so; its value is a chip above the table.
// The rules are in a style sheet of their own, so that rows that htmx swaps in have them too.

const meta = document.querySelector('meta[name="preferences"]');
const dialog = document.querySelector("#columns");
const sheet = new CSSStyleSheet();
const layouts = meta ? JSON.parse(meta.content).tables : {};
const SAVE_MS = 400;
const STAYS = ".table__main, .table__check, .table__actions, th, [colspan]"; // cells of columns that are always shown
const CONTROLS = "[data-row-focus], [id], button, input, select, textarea, details";
let open = null; // the table that the dialog is about
let saving = 0;
let unsaved = null; // choices since the last save

const headings = (table) => [...(table.tHead?.rows[0]?.cells ?? [])].map((cell, place) => ({ cell, place: place + 1, name: nameOf(cell) }));
const lists = () => [...document.querySelectorAll(".table-wrap > table[data-rows]")];
const layoutOf = (table) => ({ hidden: [], shown: [], order: [], pinned: [], widths: {}, ...layouts[table.dataset.rows] });

function nameOf(cell) {
  const copy = cell.cloneNode(true);
  for (const part of copy.querySelectorAll(".sr-only, input")) part.remove();
  return copy.textContent.trim().replace(/\s+/g, " ");
}

// Cells are moved to the chosen order: what has no name stays at its edge, pinned columns are first. Each cell keeps the place that
// the server gave it, since htmx swaps in rows in that order.
function arrange(table) {
  const head = table.tHead?.rows[0];
  if (!head) return;
  const numbered = (row) => [...row.cells].map((cell, place) => ({ cell, place: Number((cell.dataset.place ??= String(place))) }));
  const { order, pinned } = layoutOf(table);
  const cells = numbered(head).sort((a, b) => a.place - b.place);
  const rank = ({ cell, place }) => {
    if (order.length + pinned.length === 0) return place;
    const name = nameOf(cell);
    if (!name) return place ? 1000 : -1000;
    return (pinned.includes(name) ? -500 : 0) + (order.includes(name) ? order.indexOf(name) - 100 : place);
  };
  const places = cells.sort((a, b) => rank(a) - rank(b)).map(({ place }) => place);
  for (const row of table.rows) {
    if (row.cells.length !== places.length) continue;
    const found = new Map(numbered(row).map(({ cell, place }) => [place, cell]));
    if (places.some((place, now) => row.cells[now] !== found.get(place))) row.append(...places.map((place) => found.get(place)));
  }
}

// Pinned columns lie side by side at the left edge of the table's scroller.
function pinsOf(table, number) {
  const { pinned } = layoutOf(table);
  let left = 0;
  return headings(table).filter(({ name }) => pinned.includes(name)).map(({ cell, place }) => {
    const cells = (part) => `table[data-layout="${number}"] > ${part} > tr > :nth-child(${place}):not([colspan])`;
    const rule = `${cells("*")} { position: sticky; left: ${left}px; } ${cells("thead")} { z-index: 3; } ${cells("tbody")} { z-index: 1; } :where(${cells("tbody")}) { background: var(--bg); }`;
    left += cell.getBoundingClientRect().width;
    return rule;
  });
}

// The columns with one value in all rows (at least two), each with its first cell. What acts stays, and what sorts unless no
// row has a value.
function sameColumns(table) {
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => row.cells.length === table.tHead?.rows[0].cells.length);
  const { hidden, shown, pinned, widths } = layoutOf(table);
  if (rows.length < 2) return [];
  return headings(table).flatMap(({ cell, place, name }) => {
    const cells = rows.map((row) => row.cells[place - 1]);
    const chosen = hidden.includes(name) || shown.includes(name) || pinned.includes(name) || widths[name];
    const isEmpty = !cell.hasAttribute("aria-sort") && cells.every((one) => ["", "–"].includes(one.textContent.trim()));
    if (!name || chosen || cell.querySelector(isEmpty ? "button, input" : "a, button, input") || cells.some((one) => one.matches(STAYS) || one.querySelector(CONTROLS))) return [];
    return cells.every((one) => one.innerHTML.trim() === cells[0].innerHTML.trim()) ? [{ name, place, cell: cells[0] }] : [];
  });
}

// Their values above the table, without empty ones and those that a chip of the filter says already.
function noteOf(table, same) {
  const wrap = table.parentElement;
  if (wrap.previousElementSibling?.matches(".table-same")) wrap.previousElementSibling.remove();
  const filters = [...document.querySelectorAll(".chip:has(.chip__remove)")].map((chip) => chip.textContent.trim().toLowerCase());
  const chips = same.flatMap(({ name, cell }) => {
    const text = cell.textContent.trim();
    if (!text || text === "–" || filters.includes(`${name} ${text}`.toLowerCase())) return [];
    return [element("span", { className: "chip" }, `${name} `, element("b", {}, ...cell.cloneNode(true).childNodes))];
  });
  if (chips.length) wrap.before(element("p", { className: "table-same" }, "Same in all rows:", ...chips));
}

function rulesOf(table, number) {
  table.dataset.layout = String(number);
  const { hidden, shown, widths } = layoutOf(table);
  const same = sameColumns(table);
  noteOf(table, same);
  return headings(table).filter(({ name }) => name).flatMap(({ place, name }) => {
    const cells = `table[data-layout="${number}"] > * > tr > :nth-child(${place}):not([colspan])`;
    if (hidden.includes(name) || same.some((one) => one.place === place)) return `${cells} { display: none; }`;
    const width = widths[name];
    return [
      ...(shown.includes(name) ? [`${cells} { display: table-cell; }`] : []),
      ...(width ? [`${cells} { width: ${width}px; min-width: ${width}px; max-width: ${width}px; overflow: hidden; text-overflow: ellipsis; }`] : []),
    ];
  });
}

function apply() {
  lists().forEach(arrange);
  const rules = lists().flatMap(rulesOf);
  sheet.replaceSync(rules.join("\n"));
  sheet.replaceSync([...rules, ...lists().flatMap(pinsOf)].join("\n")); // by the widths that the rules give
  for (const table of lists()) {
    const wrap = table.parentElement;
    if (!wrap.querySelector(":scope > .table-columns")) wrap.prepend(document.querySelector("#columns-button").content.cloneNode(true));
  }
}

function saveSoon(values) {
  clearTimeout(saving);
  unsaved = values;
  saving = setTimeout(save, SAVE_MS);
}

// Also when the page is left: the request outlives it.
async function save() {
  if (!unsaved) return;
  const body = JSON.stringify(unsaved);
  unsaved = null;
  const token = JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];
  const said = { tone: "bad", title: "Not saved", text: "The table looks like this until you leave the page. Change it again to try once more." };
  try {
    const response = await fetch("/api/v1/preferences", { method: "PATCH", keepalive: true, headers: { "X-CSRFToken": token, "Content-Type": "application/json" }, body });
    if (!response.ok) document.dispatchEvent(new CustomEvent("toast", { detail: said }));
  } catch {
    document.dispatchEvent(new CustomEvent("toast", { detail: said }));
  }
}

function element(name, values, ...children) {
  const made = Object.assign(document.createElement(name), values);
  made.append(...children);
  return made;
}

function show(table) {
  open = table;
  const { hidden, shown, pinned, widths } = layoutOf(table);
  dialog.querySelector("[data-columns]").replaceChildren(...headings(table).filter(({ name }) => name).map(({ name, cell }) => {
    const state = hidden.includes(name) ? "hidden" : shown.includes(name) ? "shown" : "";
    const options = [["", "automatic"], ["shown", "always"], ["hidden", "never"]].map(([value, text]) => element("option", { value, textContent: text, selected: value === state }));
    const select = element("select", { name, ariaLabel: `Show ${name}` }, ...options);
    select.dataset.columnShow = name;
    const width = element("input", { type: "number", min: "40", max: "1200", step: "10", value: widths[name] ?? "", placeholder: String(Math.round(cell.getBoundingClientRect().width) || ""), ariaLabel: `Width of ${name}` });
    width.dataset.columnWidth = name;
    const pin = element("input", { type: "checkbox", checked: pinned.includes(name), ariaLabel: `Pin ${name}` });
    pin.dataset.columnPin = name;
    const moves = [["↑", "up"], ["↓", "down"]].map(([sign, way]) => {
      const button = element("button", { type: "button", className: "btn btn--quiet btn--icon btn--s", textContent: sign, ariaLabel: `Move ${name} ${way}` });
      button.dataset.columnMove = way;
      return button;
    });
    return element("tr", {}, element("th", { scope: "row", textContent: name }), element("td", {}, select), element("td", {}, pin), element("td", { className: "num" }, width), element("td", { className: "nowrap" }, ...moves));
  }));
  dialog.querySelector(`[name="density"][value="${document.documentElement.dataset.density ?? "normal"}"]`).checked = true;
  dialog.showModal();
}

// The rows on the page as CSV. A cell that a spreadsheet would run as a formula gets an apostrophe before it.
function csvOf(table) {
  const columns = headings(table).filter(({ name }) => name);
  const lines = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => row.cells.length === table.tHead.rows[0].cells.length);
  const quoted = (text) => `"${(/^[=+\-@\t\r](?![\d.]*$)/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  const valueOf = (cell) => cell.querySelector("time[datetime]")?.dateTime ?? cell.textContent.trim().replace(/\s+/g, " ");
  const rows = lines.map((row) => columns.map(({ place }) => valueOf(row.cells[place - 1])));
  return [columns.map(({ name }) => name), ...rows].map((row) => row.map(quoted).join(",")).join("\r\n");
}

function download(table) {
  const link = element("a", { href: URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" })), download: `${table.dataset.rows}s.csv` });
  link.click();
  URL.revokeObjectURL(link.href);
}

// Moves a line of the dialog, and the column with it.
function move(button) {
  const line = button.closest("tr");
  if (button.dataset.columnMove === "up") line.previousElementSibling?.before(line);
  else line.nextElementSibling?.after(line);
  button.focus();
  change();
}

function change() {
  const names = [...dialog.querySelectorAll("[data-column-show]")].map((select) => select.dataset.columnShow);
  const was = headings(open).sort((a, b) => a.cell.dataset.place - b.cell.dataset.place).map(({ name }) => name).filter((name) => names.includes(name));
  const pinned = [...dialog.querySelectorAll("[data-column-pin]:checked")].map((box) => box.dataset.columnPin);
  const layout = { hidden: [], shown: [], order: names.join("\n") === was.join("\n") ? [] : names, pinned, widths: {} };
  for (const select of dialog.querySelectorAll("[data-column-show]")) if (select.value) layout[select.value].push(select.dataset.columnShow);
  for (const input of dialog.querySelectorAll("[data-column-width]")) if (input.value && input.checkValidity()) layout.widths[input.dataset.columnWidth] = Math.round(Number(input.value));
  const density = dialog.querySelector('[name="density"]:checked').value;
  document.documentElement.dataset.density = density;
  layouts[open.dataset.rows] = layout;
  apply();
  saveSoon({ tables: { [open.dataset.rows]: layout }, density });
}

if (meta && dialog) {
  document.adoptedStyleSheets.push(sheet);
  dialog.addEventListener("change", change);
  window.addEventListener("pagehide", save);
  document.addEventListener("click", (event) => {
    if (event.target.closest?.(".table-columns")) show(event.target.closest(".table-wrap").querySelector("table[data-rows]"));
    if (event.target.closest?.("[data-columns-csv]")) download(open);
    if (event.target.closest?.("[data-column-move]")) move(event.target.closest("[data-column-move]"));
    if (!event.target.closest?.("[data-columns-reset]")) return;
    delete layouts[open.dataset.rows];
    delete document.documentElement.dataset.density;
    apply();
    saveSoon({ tables: { [open.dataset.rows]: null }, density: "normal" });
    dialog.close();
  });
  // htmx changes the filter without loading the page again.
  document.addEventListener("submit", (event) => { if (event.target.matches("[data-save-view]")) event.target.elements.query.value = location.search; });
  document.addEventListener("htmx:afterSwap", apply);
  apply();
}
