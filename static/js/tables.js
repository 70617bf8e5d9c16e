// How a person wants the tables of lists (table[data-rows]): columns shown or hidden, widths, density. What is chosen in the dialog
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
const layoutOf = (table) => ({ hidden: [], shown: [], widths: {}, ...layouts[table.dataset.rows] });

function nameOf(cell) {
  const copy = cell.cloneNode(true);
  for (const part of copy.querySelectorAll(".sr-only, input")) part.remove();
  return copy.textContent.trim().replace(/\s+/g, " ");
}

// The columns with one value in all rows (at least two), each with its first cell. What acts stays, and what sorts unless no
// row has a value.
function sameColumns(table) {
  const rows = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => row.cells.length === table.tHead?.rows[0].cells.length);
  const { hidden, shown, widths } = layoutOf(table);
  if (rows.length < 2) return [];
  return headings(table).flatMap(({ cell, place, name }) => {
    const cells = rows.map((row) => row.cells[place - 1]);
    const chosen = hidden.includes(name) || shown.includes(name) || widths[name];
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
  sheet.replaceSync(lists().flatMap(rulesOf).join("\n"));
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
  const { hidden, shown, widths } = layoutOf(table);
  dialog.querySelector("[data-columns]").replaceChildren(...headings(table).filter(({ name }) => name).map(({ name, cell }) => {
    const state = hidden.includes(name) ? "hidden" : shown.includes(name) ? "shown" : "";
    const options = [["", "automatic"], ["shown", "always"], ["hidden", "never"]].map(([value, text]) => element("option", { value, textContent: text, selected: value === state }));
    const select = element("select", { name, ariaLabel: `Show ${name}` }, ...options);
    select.dataset.columnShow = name;
    const width = element("input", { type: "number", min: "40", max: "1200", step: "10", value: widths[name] ?? "", placeholder: String(Math.round(cell.getBoundingClientRect().width) || ""), ariaLabel: `Width of ${name}` });
    width.dataset.columnWidth = name;
    return element("tr", {}, element("th", { scope: "row", textContent: name }), element("td", {}, select), element("td", { className: "num" }, width));
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

function change() {
  const layout = { hidden: [], shown: [], widths: {} };
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
