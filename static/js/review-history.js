// The history of a sample begins at its end, where the answers continue it. A link to one of its turns comes later (links.js).
//   <button data-history-task>   goes to the task; from the task back to the last turn

const box = () => document.querySelector("#history")?.closest(".review__scroll");
const turns = () => [...document.querySelectorAll("#history [data-turn]")];

function toEnd() {
  const scrolled = box();
  if (scrolled) scrolled.scrollTop = scrolled.scrollHeight;
}

document.addEventListener("click", (event) => {
  if (!event.target.closest?.("[data-history-task]")) return;
  const all = turns();
  const task = all.find((turn) => "task" in turn.dataset) ?? all[0];
  if (!task) return;
  const isThere = task.classList.contains("is-current");
  const turn = isThere ? all.at(-1) : task;
  turn.open = true;
  turn.querySelector("summary").focus({ preventScroll: true }); // j and k go on from there
  if (isThere) toEnd();
  else turn.scrollIntoView({ block: "start" });
});

document.addEventListener("htmx:load", (event) => { if (event.detail.elt.id === "review") toEnd(); });
toEnd();
