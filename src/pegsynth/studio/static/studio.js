"use strict";
// What needs no server: filtering long tables, ticking all lines, the slider of the budget, and progress.
const find = (name) => document.getElementById(name);

const filter = find("filter");
if (filter) {
  const role = find("filter-role");
  const open = find("filter-open");
  const shown = find("filter-shown");
  const lines = [...document.querySelectorAll("tbody tr[data-name]")];
  const apply = () => {
    const wanted = filter.value.toLowerCase();
    let count = 0;
    for (const line of lines) {
      const fits = line.dataset.name.toLowerCase().includes(wanted) && (!role.value || line.dataset.role === role.value)
        && (!open.value || line.dataset.open.includes(open.value));
      line.hidden = !fits;
      count += fits ? 1 : 0;
    }
    shown.textContent = `${count} of ${lines.length} columns`;
  };
  filter.addEventListener("input", apply);
  role.addEventListener("change", apply);
  open.addEventListener("change", apply);
  find("tick-all").addEventListener("change", (event) => {
    for (const line of lines) {
      if (!line.hidden) line.querySelector("input[type=checkbox]").checked = event.target.checked;
    }
  });
  apply();
}

const slider = find("epsilon-slider");
if (slider) {
  const number = find("epsilon");
  const place = () => { if (Number(number.value) > 0) slider.value = Math.log10(Number(number.value)); };
  slider.addEventListener("input", () => { number.value = Number((10 ** Number(slider.value)).toPrecision(2)); });
  number.addEventListener("input", place);
  place();
}

const bar = find("job-bar");
if (bar) {
  const words = find("job-words");
  const began = Date.now();
  let stage = "", since = began;
  const look = async () => {
    let told;
    try {
      const answer = await fetch("/job");
      if (!answer.ok) throw new Error(String(answer.status));
      told = await answer.json();
    } catch (error) {
      words.textContent = "The server does not answer. What runs goes on; start pegs studio again to see it.";
      setTimeout(look, 3000);
      return;
    }
    if (!told.running) { location.reload(); return; }
    if (told.stage !== stage) { stage = told.stage; since = Date.now(); }
    if (told.total) { bar.max = told.total; bar.value = told.done; } else { bar.removeAttribute("value"); }
    const spent = (Date.now() - since) / 1000;
    const left = told.total && told.done > 0 ? Math.round(spent * (told.total - told.done) / told.done) : null;
    words.textContent = `${told.stage || "reading"}${told.total ? `: ${told.done.toLocaleString()} of ${told.total.toLocaleString()}` : ""}`
      + (left !== null && spent > 2 ? `, about ${left} s left in this stage` : "");
    setTimeout(look, 500);
  };
  look();
}
