// Light, dark or as the system says. A plain script in <head>, not a module: it must run before the first paint.
(() => {
  const KEY = "winnow-theme";
  const ORDER = ["auto", "light", "dark"];
  const root = document.documentElement;

  // Storage can be blocked (private windows); the theme then lasts as long as the page.
  const read = () => {
    try { return localStorage.getItem(KEY); } catch { return null; }
  };
  const write = (theme) => {
    try { localStorage.setItem(KEY, theme); } catch { /* lasts as long as the page */ }
  };

  const current = () => root.dataset.theme ?? "auto";
  const apply = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  const label = () => {
    for (const button of document.querySelectorAll("[data-theme-toggle]")) {
      button.setAttribute("aria-label", `Theme: ${current()}. Change`);
      button.title = `Theme: ${current()}`;
      for (const icon of button.querySelectorAll("[data-theme-icon]")) icon.toggleAttribute("hidden", icon.dataset.themeIcon !== current());
    }
  };
  const announce = () => document.dispatchEvent(new CustomEvent("theme:change"));

  apply(read());
  document.addEventListener("DOMContentLoaded", label);
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-theme-toggle]")) return;
    const next = ORDER[(ORDER.indexOf(current()) + 1) % ORDER.length];
    apply(next);
    write(next);
    label();
    announce();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", announce);
  window.addEventListener("storage", (event) => {
    if (event.key !== KEY) return;
    apply(event.newValue);
    label();
    announce();
  });
})();
