// The command palette (#palette): pages, actions of this page, and a sample by its number. keys.js opens it and says what there is.
//   ↑ ↓ choose, Enter does it, Esc closes. The list is a listbox that the field controls.

const dialog = document.querySelector("#palette");
const field = dialog.querySelector("input");
const list = dialog.querySelector('[role="listbox"]');
const none = dialog.querySelector("[data-none]");
const MOST = 50;
let commands = [];
let shown = [];
let chosen = 0;

const go = (address) => () => { location.href = address; };

// A number is a sample's; other words can be searched for in the samples.
function samplesFor(text) {
  const { samples } = dialog.dataset;
  if (!samples || !text) return [];
  const number = /^#?(\d{1,18})$/.exec(text)?.[1];
  const search = { group: "Search", label: `Samples with “${text}”`, keys: [], run: go(`${samples}?text=${encodeURIComponent(text)}`) };
  return number ? [{ group: "Sample", label: `Sample ${number}`, keys: [], run: go(`${samples}${number}/`) }, search] : [search];
}

// Letters without accents, of any script.
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
const WORD = /[\p{L}\p{N}]+/gu;

// How well a command fits what is typed, 0 for not at all: each typed word, in any order, begins a word of the command (best), is
// inside one, or has its letters in their order ("smpl": samples).
function fit({ group, label, keys }, typed) {
  const words = plain(`${label} ${group} ${keys.join(" ")}`).match(WORD) ?? [];
  const scores = typed.map((wanted) => Math.max(0, ...words.map((word, place) => {
    const early = 1 / (place + 10);
    if (word.startsWith(wanted)) return 3 + early;
    if (word.includes(wanted)) return 2 + early;
    return wanted.length > 2 && isInside(wanted, word) ? 1 + early : 0;
  })));
  return scores.includes(0) ? 0 : scores.reduce((sum, score) => sum + score, 0);
}

function isInside(letters, word) {
  let at = 0;
  for (const letter of letters) {
    at = word.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return word[0] === letters[0];
}

function matches(text) {
  const typed = plain(text).match(WORD) ?? [];
  const found = commands.map((command) => ({ command, score: fit(command, typed) }))
    .filter(({ score }) => typed.length === 0 ? !text : score > 0)
    .sort((one, other) => other.score - one.score)
    .map(({ command }) => command);
  const samples = samplesFor(text);
  return (samples.length > 1 ? [...samples, ...found] : [...found, ...samples]).slice(0, MOST);
}

function choose(index) {
  chosen = shown.length ? (index + shown.length) % shown.length : 0;
  for (const [n, option] of [...list.children].entries()) option.setAttribute("aria-selected", String(n === chosen));
  const option = list.children[chosen];
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
}

function optionOf({ group, label, keys }, index) {
  const option = Object.assign(document.createElement("li"), { id: `palette-${index}` });
  option.setAttribute("role", "option");
  option.dataset.index = String(index);
  option.append(
    Object.assign(document.createElement("span"), { className: "palette__group", textContent: group }),
    Object.assign(document.createElement("span"), { className: "palette__label", textContent: label }),
    ...keys.map((key) => Object.assign(document.createElement("kbd"), { textContent: key })),
  );
  return option;
}

function show() {
  shown = matches(field.value.trim());
  list.replaceChildren(...shown.map(optionOf));
  none.hidden = shown.length > 0;
  choose(0);
}

function run(command) {
  if (!command) return;
  dialog.close(); // gives the focus back before the command moves it
  command.run();
}

document.addEventListener("palette:open", (event) => {
  ({ commands } = event.detail);
  field.value = "";
  show();
  dialog.showModal();
  field.focus();
});
field.addEventListener("input", show);
dialog.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) choose(chosen + step);
  else if (event.key === "Enter" && !event.repeat) run(shown[chosen]);
  else return;
  event.preventDefault();
});
list.addEventListener("click", (event) => run(shown[event.target.closest("[data-index]")?.dataset.index]));
