// The chosen level and group, and everything that depends on them.

const STATE = { level: D.views.length - 1, view: 0, group: 0 };
const TABLES = {};

function say(text) {
  $("live").textContent = text;
}

function listGroups() {
  const list = clear($("group"));
  make(list, "option", { value: "0,0" }, D.views[0].labels[0]);
  if (STATE.level) D.views[STATE.level].labels.forEach((label, g) => make(list, "option", { value: `${STATE.level},${g}` }, label));
  list.value = `${STATE.view},${STATE.group}`;
}

function showLevel() {
  TABLES.groups = groupsTable(STATE);
  $("filter").value = "";
  $("filter-count").textContent = "";
  partsTable(STATE);
  TABLES.heat = heatTable(STATE);
}

function showGroup() {
  for (const element of document.querySelectorAll(".chosen-group")) element.textContent = D.views[STATE.view].labels[STATE.group];
  const here = (g) => STATE.view === STATE.level && g === STATE.group;
  TABLES.groups.mark(here);
  TABLES.heat.mark(here);
  sureTable(STATE);
  drawMarginals(STATE);
  if (D.map) markOnMap(STATE);
  if (D.truth) markOnPaper(STATE);
}

function choose(view, group) {
  Object.assign(STATE, { view, group });
  if (view && view !== STATE.level) chooseLevel(view, false);
  $("group").value = `${view},${group}`;
  showGroup();
  say(`Chosen: ${D.views[view].labels[group]}`);
}

function chooseLevel(level, forget = true) {
  STATE.level = level;
  if (forget) Object.assign(STATE, { view: 0, group: 0 });
  $("level").value = level;
  listGroups();
  showLevel();
}

function filterGroups() {
  const words = $("filter").value.trim().toLowerCase();
  const view = D.views[STATE.level];
  const left = TABLES.groups.filter((g) => view.labels[g].toLowerCase().includes(words));
  $("filter-count").textContent = words ? `${count(left)} of ${count(view.labels.length)}` : "";
}

function start() {
  D.views.forEach((view, number) => make($("level"), "option", { value: number }, `${view.name} (${count(view.labels.length)})`));
  document.querySelector(".chooser").addEventListener("submit", (event) => event.preventDefault());
  $("level").addEventListener("change", () => { chooseLevel(Number($("level").value)); showGroup(); say(`Level ${D.views[STATE.level].name}`); });
  $("group").addEventListener("change", () => choose(...$("group").value.split(",").map(Number)));
  $("filter").addEventListener("input", filterGroups);
  $("against").addEventListener("change", () => { TABLES.heat = heatTable(STATE); say(`Noisy answers compared with ${$("against").selectedOptions[0].textContent}`); });
  const again = () => { drawMarginals(STATE); say(`Shown: ${$("column").selectedOptions[0].textContent}${$("second").value === "" ? "" : ` with ${$("second").selectedOptions[0].textContent}`}`); };
  $("column").addEventListener("change", again);
  $("second").addEventListener("change", again);
  const details = () => document.querySelectorAll("details[data-print]");
  window.addEventListener("beforeprint", () => details().forEach((each) => { each.before = each.open; each.open = true; }));
  window.addEventListener("afterprint", () => details().forEach((each) => { each.open = each.before; }));

  document.querySelectorAll(".scroll").forEach(framed);
  drawBudget();
  heatLegend();
  startMarginals();
  if (D.map) startMap();
  if (D.truth) startPaper();
  chooseLevel(STATE.level);
  showGroup();
  whenWidthChanges($("budget-chart"), drawBudget);
  if (D.truth) whenWidthChanges($("paper-chart"), () => { drawPaper(); markOnPaper(STATE); });
  whenWidthChanges($("marginal-chart"), () => drawMarginals(STATE));
}

start();
