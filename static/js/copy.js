// <button data-copy="text"> or <button data-copy-from="#id"> copies and says so, in the button and to screen readers.

async function write(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  // Plain http on another host has no clipboard API: copy a selection.
  const field = Object.assign(document.createElement("textarea"), { value: text, readOnly: true, className: "sr-only" });
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (!done) throw new Error("The browser refused to copy.");
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy], [data-copy-from]");
  if (!button || button.dataset.copied) return;
  const text = button.dataset.copy ?? document.querySelector(button.dataset.copyFrom)?.textContent ?? "";
  const label = button.querySelector("[data-copy-label]") ?? button;
  const before = label.textContent;
  button.dataset.copied = "true";
  try {
    await write(text.trim());
    label.textContent = "Copied";
    document.dispatchEvent(new CustomEvent("say", { detail: { text: "Copied to the clipboard" } }));
  } catch {
    label.textContent = "Select and copy";
    document.dispatchEvent(new CustomEvent("toast", { detail: { text: "The browser did not allow copying. Select the text and copy it by hand.", tone: "borderline" } }));
  }
  setTimeout(() => {
    label.textContent = before;
    delete button.dataset.copied;
  }, 1600);
});
