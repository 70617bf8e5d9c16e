// <time datetime="2025-03-04T05:06:07Z" data-relative>…</time> says "3 min ago"; the exact local time is its title.
// <time datetime="…" data-until data-last="60" data-label="lease"> counts down as "lease 0:42" in its last seconds. At the end it
// turns to its data-over text, and its parent gets data-over.

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

function ago(seconds, date) {
  const future = seconds < -5;
  const s = Math.abs(seconds);
  const say = (n, unit) => (future ? `in ${n} ${unit}` : `${n} ${unit} ago`);
  if (s < 5) return "just now";
  if (s < 60) return say(Math.round(s), "s");
  if (s < 3600) return say(Math.round(s / 60), "min");
  if (s < 86400) return say(Math.round(s / 3600), "h");
  if (s < 14 * 86400) return say(Math.round(s / 86400), s < 1.5 * 86400 ? "day" : "days");
  return day.format(date);
}

function left(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
}

function untilText(element, seconds) {
  const { last, label, over } = element.dataset;
  const isOver = seconds <= 0;
  element.parentElement.toggleAttribute("data-over", isOver);
  if (isOver && over) return over;
  if (last && seconds > Number(last)) return "";
  return label ? `${label} ${left(seconds)}` : left(seconds);
}

function refresh() {
  const now = Date.now();
  for (const element of document.querySelectorAll("time[data-relative], time[data-until]")) {
    const date = new Date(element.dateTime);
    if (Number.isNaN(date.getTime())) continue;
    if (!element.title) element.title = exact.format(date);
    const seconds = (now - date.getTime()) / 1000;
    const text = "until" in element.dataset ? untilText(element, -seconds) : ago(seconds, date);
    if (element.textContent !== text) element.textContent = text;
  }
}

refresh();
document.addEventListener("htmx:load", refresh);
// Once a second is needed by countdowns only; the others change at most that often, and rarely.
setInterval(() => { if (!document.hidden) refresh(); }, 1000);
document.addEventListener("visibilitychange", refresh);
