// The chosen budget, place and column, and everything that depends on them.

const D = JSON.parse($("data").textContent);
const STARTS = D.columns.reduce((starts, column) => [...starts, starts.at(-1) + column.labels.length], [0]);
const CHOSEN = { budget: D.recommended ?? D.budgets.length >> 1, place: 0, column: 0 };
// The page opens on a column with noisy answers, if there is one.
CHOSEN.column = Math.max(0, D.columns.findIndex((column) => !D.budgets[CHOSEN.budget].not_measured.includes(column.name)));
const nameOf = (column) => column.title || column.name;
const budgetWords = (budget) => `${D.symbol} = ${budget.epsilon}`;

// ---------------------------------------------------------------- the budget

function tile(title, value, of, tone = "plain") {
  const box = make($("tiles"), "li", { class: `tile ${tone}` });
  make(box, "span", { class: "title" }, title);
  make(box, "span", { class: "value" }, value);
  make(box, "span", { class: "of" }, of);
}

function showTiles(budget) {
  const { error, error_spread: off, prior, gain, spread } = budget.expected;
  const measured = D.columns.length - budget.not_measured.length;
  $("tiles").replaceChildren();
  tile("Expected error", fixed(3)(error), `± ${fixed(3)(off)}; public table alone: ${fixed(3)(prior)}`);
  tile(`${gain < 0 ? "Worse" : "Better"} than the public table`, percent(Math.abs(gain) / prior, 0), `by ${fixed(3)(Math.abs(gain))} ± ${fixed(3)(spread)}`, budget.worthwhile ? "good" : "bad");
  tile("Columns measured", `${count(measured)} of ${count(D.columns.length)}`, measured === D.columns.length ? "none is left to the public table" : "the others follow the public table");
  tile("Groups that are too small", `${count(budget.too_small.groups)} of ${count(budget.too_small.of)}`, "for the noise that they would get");
}

// The advice without what the page says about all budgets.
function adviceOf(budget) {
  const said = [D.rehearsal, ...D.caveats].join(" ");
  return budget.advice.split(/(?<=\.) /).filter((sentence) => !said.includes(sentence)).join(" ");
}

function showMeasured(budget) {
  const box = $("asks");
  box.replaceChildren();
  for (const ask of budget.measured) {
    make(box, "h4", {}, ask.level);
    make(box, "p", {}, `${percent(ask.share, 0)} of the budget · noise: ${ask.noise}`);
    const list = make(box, "ul", { class: "chips" });
    for (const part of ask.parts) make(list, "li", {}, part);
  }
  if (!budget.measured.length) make(box, "p", {}, "Nothing: the result is the public table.");
  const left = budget.not_measured;
  $("unmeasured").replaceChildren();
  for (const name of left) make($("unmeasured"), "li", {}, name);
  $("unmeasured-note").textContent = left.length ? "Their shape within a group is inferred from the public table and from the columns that are measured." : "Every column is measured.";
}

function showRun(budget) {
  $("command").textContent = budget.command;
  $("plan").textContent = budget.plan;
  $("save-plan").textContent = `Save ${budget.file}`;
  $("copy").textContent = "Copy the command";
}

async function copyCommand() {
  getSelection().selectAllChildren($("command"));
  try {
    await navigator.clipboard.writeText($("command").textContent);
    $("copy").textContent = "Copied";
    say("The command was copied");
  } catch {
    say("The command is selected; copy it with your keyboard");
  }
}

// ---------------------------------------------------------------- errors by column and pair

function measuredAt(budget, name) {
  if (budget.not_measured.includes(name)) return "not measured";
  const levels = budget.measured.filter((ask) => ask.parts.includes(name)).map((ask) => ask.level);
  return [...new Set(levels)].join(", ") || "with other columns";
}

function leftBar(cell, left) {
  const box = make(cell, "div", { class: left > 1 ? "bar worse" : "bar" });
  make(make(box, "i", { "aria-hidden": "true" }), "b").style.width = `${100 * Math.min(left, 1)}%`;
  make(box, "span", {}, percent(left, 0));
}

const errorColumns = [
  { label: "Public table alone", kind: "num", value: (row) => row.prior, show: (row) => fixed(3)(row.prior) },
  { label: "Expected error", kind: "num", value: (row) => row.error, show: (row) => fixed(3)(row.error) },
  { label: "Error left", kind: "num", value: (row) => row.left, show: (row) => percent(row.left, 0) },
];

function showColumns(budget) {
  const rows = D.columns.map((column, place) => ({ column, prior: D.column_prior[place], error: budget.column_errors[place] }));
  for (const row of rows) row.left = row.error / row.prior;
  const paint = (cell, { column }) => {
    cell.append(nameOf(column));
    if (column.title && column.title !== column.name) make(cell, "span", { class: "short" }, ` ${column.name}`);
  };
  sortable($("column-table"), {
    caption: "Expected error of one-way tables, worst first", rows, start: { column: 3, down: true },
    columns: [
      { label: "Column", kind: "name", value: (row) => nameOf(row.column), paint },
      { label: "Measured at", kind: "text", value: (row) => measuredAt(budget, row.column.name) },
      ...errorColumns.slice(0, 2),
      { ...errorColumns[2], paint: (cell, row) => leftBar(cell, row.left) },
    ],
  });
}

function pairsOf({ pair_errors: errors }) {
  const pairs = D.columns.flatMap((one, first) => D.columns.slice(first + 1).map((other, k) => {
    const second = first + 1 + k;
    const [error, prior] = [errors[first][second], D.pair_prior[first][second]];
    return { first, second, firstName: nameOf(one), secondName: nameOf(other), error, prior, left: error / prior };
  }));
  return pairs.sort((a, b) => b.error - a.error);
}

const SHADES = {
  errors: { key: "error", title: "Expected error", format: ".2f" },
  prior: { key: "prior", title: "Error of the public table alone", format: ".2f" },
  left: { key: "left", title: "Share of the public table's error that is left", format: ".0%" },
};

function showPairs(budget) {
  const pairs = pairsOf(budget);
  const shade = SHADES[$("shade").value];
  // One scale for all budgets, so that shades can be compared while the slider moves.
  const most = shade.key === "left" ? 1 : Math.max(...pairs.map((pair) => pair.prior));
  const names = D.columns.map((column) => column.name);
  const shaded = pairs.map((pair) => ({ ...pair, value: pair[shade.key] }));
  $("pairs").style.minWidth = `${Math.max(0, 13 * names.length + 100)}px`;
  chart($("pairs"), (width) => pairsSpec(names, shaded, { ...shade, most }, width), {
    title: `${shade.title} of each pair of columns, ${budgetWords(budget)}`,
    csv: { heads: ["column", "with", "expected error", "public table alone", "share left"], rows: pairs.map((pair) => [names[pair.first], names[pair.second], pair.error, pair.prior, pair.left]) },
  });
  sortable($("pair-table"), {
    caption: "Expected error of two-way tables, worst first", rows: pairs, start: { column: 3, down: true },
    columns: [
      { label: "Column", kind: "name", value: (pair) => pair.firstName },
      { label: "with", kind: "text", value: (pair) => pair.secondName },
      ...errorColumns,
    ],
  });
}

// ---------------------------------------------------------------- a place's tables

// The shares of a place's column, for each budget.
function sharesOf(place, column) {
  const { truth, public: known } = D.places[place];
  return D.budgets.map(({ tables }) => {
    const cut = ([key, shares]) => [key, shares.slice(STARTS[column], STARTS[column + 1])];
    return Object.fromEntries(Object.entries({ truth, public: known, ...tables[place] }).map(cut));
  });
}

function showShares() {
  const { budget, place, column } = CHOSEN;
  const { name, labels, unit, description } = D.columns[column];
  const all = sharesOf(place, column);
  const [shares, domain] = [all[budget], sharesDomain(all)];
  const outside = shares.noisy.filter((share) => !absent(share) && (share < domain[0] || share > domain[1])).length;
  const title = `${nameOf(D.columns[column])} in ${D.places[place].label}, a public stand-in, ${budgetWords(D.budgets[budget])}`;
  chart($("shares"), (width) => sharesSpec(labels, shares, domain, width), { title, csv: sharesNumbers(labels, shares) });
  $("column-note").textContent = [
    description && `${description}${unit ? ` (${unit})` : ""}.`,
    shares.noisy.every(absent) && `${name} is not measured here with this budget: its estimate follows from the public table and from the columns that are measured.`,
    outside && `${outside === 1 ? "One noisy answer lies" : `${outside} noisy answers lie`} beyond the edge of the chart; the table below it has the numbers.`,
    labels.length > MOST_CELLS && `The chart shows the ${MOST_CELLS} most frequent of ${labels.length} values; the table below it has all.`,
  ].filter(Boolean).join(" ");
}

// ---------------------------------------------------------------- choosing

function showBudget() {
  const budget = D.budgets[CHOSEN.budget];
  $("budget").value = CHOSEN.budget;
  $("budget").setAttribute("aria-valuetext", budgetWords(budget));
  $("now").textContent = budgetWords(budget);
  $("brief").textContent = `expected error ${fixed(3)(budget.expected.error)}; the public table alone has ${fixed(3)(budget.expected.prior)}`;
  document.querySelectorAll(".ticks span").forEach((tick, place) => tick.classList.toggle("on", place === CHOSEN.budget));
  document.querySelectorAll("#budgets tbody tr").forEach((line, place) => line.classList.toggle("chosen", place === CHOSEN.budget));
  document.querySelectorAll(".chosen-budget").forEach((each) => { each.textContent = budgetWords(budget); });
  $("meaning").textContent = budget.meaning;
  $("kind").textContent = budget.budget;
  $("advice").textContent = adviceOf(budget);
  chart($("curve"), curveSpec(D, CHOSEN.budget), { title: `Expected error against ${D.symbol}`, csv: curveNumbers(D) });
  showTiles(budget);
  showMeasured(budget);
  showColumns(budget);
  showPairs(budget);
  showRun(budget);
}

function choose(what) {
  Object.assign(CHOSEN, what);
  $("where").value = CHOSEN.place;
  $("column").value = CHOSEN.column;
  if ("budget" in what) showBudget();
  showShares();
  address.keep({ epsilon: D.budgets[CHOSEN.budget].epsilon, place: D.places[CHOSEN.place].label, column: D.columns[CHOSEN.column].name });
}

// What an address asks for, as far as this page has it.
function fromAddress({ epsilon, place, column }) {
  const find = (list, test, usual) => (list.findIndex(test) < 0 ? usual : list.findIndex(test));
  return {
    budget: find(D.budgets, (each) => each.epsilon === epsilon, CHOSEN.budget),
    place: find(D.places, (each) => each.label === place, CHOSEN.place),
    column: find(D.columns, (each) => each.name === column, CHOSEN.column),
  };
}

function start() {
  document.querySelector(".chooser").addEventListener("submit", (event) => event.preventDefault());
  $("budget").addEventListener("input", () => choose({ budget: Number($("budget").value) }));
  $("where").addEventListener("change", () => { choose({ place: Number($("where").value) }); say(`Shown: ${D.places[CHOSEN.place].label}`); });
  $("column").addEventListener("change", () => { choose({ column: Number($("column").value) }); say(`Shown: ${nameOf(D.columns[CHOSEN.column])}`); });
  $("shade").addEventListener("change", () => showPairs(D.budgets[CHOSEN.budget]));
  document.querySelectorAll("#budgets tbody tr").forEach((line, place) => {
    line.querySelector("button").addEventListener("click", () => { choose({ budget: place }); say(`Chosen: ${budgetWords(D.budgets[place])}`); });
  });
  $("copy").addEventListener("click", copyCommand);
  $("save-plan").addEventListener("click", () => save(D.budgets[CHOSEN.budget].file, D.budgets[CHOSEN.budget].plan, "text/plain"));
  choose(fromAddress(address.read()));
  address.changed((asked) => choose(fromAddress(asked)));
  address.sections();
}

start();
