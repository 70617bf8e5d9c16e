// What was typed into a plain form (<form method="post">), until the server says that it has it: after an error page the form is
// filled again. The server sets the cookie winnow-copy-ID for a form that it has read (curation/web/http/middleware.py).

const PREFIX = "winnow-form:";
const COOKIE = "winnow-copy-";
const TYPED = 'textarea[name], select[name], input[name]:not([type="hidden"], [type="password"], [type="file"], [type="submit"])';
const { user } = document.body.dataset;
const here = `${PREFIX}${user}:${location.pathname}:`;

const typed = (form) => [...form.querySelectorAll(TYPED)];
const isChosen = (field) => field.type === "checkbox" || field.type === "radio";
const valueOf = (field) => isChosen(field) ? field.checked : field.multiple ? [...field.selectedOptions].map((option) => option.value) : field.value;
// `form.action` would be a button of that name.
const nameOf = (form) => new URL(form.getAttribute("action") ?? "", location.href).pathname;

function put(field, value) {
  if (isChosen(field)) field.checked = value;
  else if (field.multiple) for (const option of field.options) option.selected = value.includes(option.value);
  else field.value = value;
}

window.addEventListener("submit", (event) => {
  const { target: form } = event;
  const fields = typed(form);
  if (!user || event.defaultPrevented || form.method !== "post" || fields.every((field) => isChosen(field) || field.matches("select"))) return;
  const id = crypto.getRandomValues(new Uint32Array(2)).join("-");
  const values = fields.map((field) => [field.name, valueOf(field)]);
  try {
    sessionStorage.setItem(`${here}${nameOf(form)}`, JSON.stringify({ id, values }));
  } catch {
    return; // no room: it is sent without a copy
  }
  form.querySelector('[name="winnow_copy"]')?.remove();
  form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "winnow_copy", value: id }));
});

function forgetSaved() {
  const saved = document.cookie.split("; ").filter((text) => text.startsWith(COOKIE)).map((text) => text.slice(COOKIE.length).split("=")[0]);
  for (const key of Object.keys(sessionStorage).filter((name) => name.startsWith(PREFIX))) {
    if (saved.includes(JSON.parse(sessionStorage.getItem(key)).id)) sessionStorage.removeItem(key);
  }
  for (const id of saved) document.cookie = `${COOKIE}${id}=; path=/; max-age=0`;
}

// Rows that htmx had added are not there again: what was typed into them is shown below the form's other fields.
function fill(form, values) {
  const fields = typed(form);
  const rest = [];
  for (const [name, value] of values) {
    const at = fields.findIndex((field) => field.name === name);
    if (at >= 0) put(fields.splice(at, 1)[0], value);
    else if (value && typeof value === "string") rest.push(`${name}\n${value}`);
  }
  if (rest.length) form.append(Object.assign(document.createElement("textarea"), { value: rest.join("\n\n"), readOnly: true, rows: 10, ariaLabel: "Text from fields that are not on this page" }));
}

forgetSaved();
for (const form of document.querySelectorAll('form[method="post"]')) {
  const kept = user && sessionStorage.getItem(`${here}${nameOf(form)}`);
  if (!kept) continue;
  fill(form, JSON.parse(kept).values);
  document.dispatchEvent(new CustomEvent("toast", { detail: { title: "Not saved", text: "The text did not reach the server. It is in the form again.", tone: "borderline", stays: true } }));
}
