// Errors by column and by group, worst first.

const largest = (values) => Math.max(1e-9, ...values.filter((value) => !absent(value)));

// A number with a bar behind it that shows its size at a glance.
function withBar(label, value, show, most) {
  const paint = (cell, row) => {
    cell.textContent = show(value(row));
    cell.classList.add("bar");
    cell.style.setProperty("--part", `${absent(value(row)) ? 0 : Math.min(100, (100 * value(row)) / most)}%`);
  };
  return { label, kind: "num", value, paint };
}

// A model error that is unknown counts as the largest.
const ifKnown = (error) => error ?? Infinity;
const showError = (error) => (error === Infinity ? "unknown" : fixed(3)(error));

// The field above a table keeps the rows whose text contains what is written.
function filtered(name, table, texts) {
  const field = $(`${name}-filter`);
  const left = $(`${name}-count`);
  field.value = "";
  left.textContent = "";
  field.oninput = () => {
    const words = field.value.trim().toLowerCase();
    const shown = table.filter((row) => texts[row].toLowerCase().includes(words));
    left.textContent = words ? `${count(shown)} of ${count(texts.length)}` : "";
  };
}

function columnsTable() {
  const errors = D.columns.map((column) => column.error);
  const widths = D.columns.map((column) => column.width);
  const level = (name) => levelName(D.views.find((view) => view.name === name) ?? D.views[0]);
  const where = (c) => D.columns[c].measured.map(level).join(", ") || "not measured";
  TABLES.columns = sortable($("columns-table"), {
    caption: `Columns by ${levelName(D.views[LAST])}`,
    columns: [
      { label: "Column", kind: "name", value: (c) => nameOf(D.columns[c]), paint: (cell, c) => leads(cell, nameOf(D.columns[c]), { column: c, second: null }) },
      { label: "Measured by", kind: "text", value: where },
      withBar("Model error", (c) => ifKnown(errors[c]), showError, largest(errors)),
      withBar(`95 % interval, ${D.noun}`, (c) => widths[c], (x) => (absent(x) ? "–" : `± ${count(x / 2)}`), largest(widths)),
      { label: "Values", kind: "num", value: (c) => D.columns[c].labels.length },
    ],
    rows: D.columns.map((_, c) => c),
    start: { column: 2, down: true },
  });
  filtered("columns", TABLES.columns, D.columns.map(nameOf));
}

function groupsTable(level) {
  const view = D.views[level];
  TABLES.level = level;
  const figures = [
    [`95 % interval, ${D.noun}`, view.width, (x) => (absent(x) ? "–" : `± ${count(x / 2)}`)],
    ...(D.truth && level === LAST ? [["Public table, true error", D.truth.priorError, fixed(3)], ["Synthetic rows, true error", D.truth.syntheticError, fixed(3)]] : []),
  ];
  TABLES.groups = sortable($("groups-table"), {
    caption: `Groups of level ${levelName(view)}`,
    columns: [
      { label: "Group", kind: "name", value: (g) => view.labels[g], paint: (cell, g) => leads(cell, view.labels[g], { view: level, group: g }) },
      { label: capital(D.noun), kind: "num", value: (g) => view.totals[g], show: (g) => count(view.totals[g]) },
      withBar("Model error", (g) => ifKnown(view.error[g]), showError, largest(view.error)),
      ...figures.map(([label, values, show]) => withBar(label, (g) => values[g], show, largest(values))),
    ],
    rows: view.labels.map((_, g) => g),
    start: { column: 2, down: true },
    chosen: (g) => S.view === level && g === S.group,
  });
  filtered("groups", TABLES.groups, view.labels);
}

function startTables() {
  D.views.forEach((view, v) => make($("level"), "option", { value: v }, `${levelName(view)} (${count(view.labels.length)})`));
  $("level").value = LAST;
  $("level").addEventListener("change", () => {
    groupsTable(Number($("level").value));
    say(`Level ${levelName(D.views[TABLES.level])}`);
  });
  columnsTable();
  groupsTable(LAST);
}
