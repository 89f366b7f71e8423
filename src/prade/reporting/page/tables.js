// Tables that can be sorted by their headings, and their contents.

// columns: [{label, value(row), show(row), kind: "num" | "name" | "text", paint(cell, row)}]; rows are any values.
function sortable(parent, { caption, columns, rows, heat = false, chosen = () => false, start = null }) {
  clear(parent);
  const table = make(parent, "table", heat ? { class: "heat" } : {});
  make(table, "caption", {}, caption);
  const head = make(make(table, "thead"), "tr");
  const body = make(table, "tbody");
  let order = start || { column: -1, down: false };
  let wanted = () => true;

  function fill() {
    const shown = rows.filter(wanted);
    if (order.column >= 0) {
      const { value } = columns[order.column];
      const sign = order.down ? -1 : 1;
      const missing = (x) => x === null || x === undefined;
      shown.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (missing(x) || missing(y)) return missing(x) - missing(y);
        return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
      });
    }
    clear(body);
    for (const row of shown) {
      const line = make(body, "tr");
      if (chosen(row)) line.classList.add("chosen");
      line.row = row;
      for (const column of columns) {
        const cell = make(line, column.kind === "name" ? "th" : "td", column.kind === "name" ? { scope: "row" } : { class: column.kind === "num" ? "num" : "words" });
        if (column.paint) column.paint(cell, row);
        else cell.textContent = column.show ? column.show(row) : column.value(row);
      }
    }
    columns.forEach((column, index) => {
      head.children[index].setAttribute("aria-sort", index !== order.column ? "none" : order.down ? "descending" : "ascending");
    });
    return shown.length;
  }

  columns.forEach((column, index) => {
    const cell = make(head, "th", { scope: "col", class: `sorts ${column.kind === "num" ? "num" : ""} ${index ? "" : "first"}` });
    const button = make(cell, "button", { type: "button", title: heat ? column.label : null }, column.label);
    make(button, "span", { class: "arrow", "aria-hidden": "true" });
    button.addEventListener("click", () => {
      order = { column: index, down: order.column === index ? !order.down : column.kind === "num" };
      fill();
      say(`${caption}: sorted by ${column.label}, ${order.down ? "largest first" : "smallest first"}`);
    });
  });
  fill();
  return {
    filter(test) { wanted = test; return fill(); },
    mark(test) { for (const line of body.rows) line.classList.toggle("chosen", test(line.row)); },
  };
}

function pickButton(cell, view, group) {
  const button = make(cell, "button", { type: "button", class: "pick" }, D.views[view].labels[group]);
  button.addEventListener("click", () => choose(view, group));
}

const MISFIT = [1, 1.5, 2, 3, 5];
const misfitClass = (value) => `h${MISFIT.filter((limit) => value > limit).length}`;

function paintMisfit(cell, value) {
  cell.textContent = fixed(2)(value);
  if (value !== null) cell.classList.add(misfitClass(value));
}

// The measures that describe a group by one number: columns of the table, colours of the map.
function measures(view) {
  const found = [
    { key: "before", label: "Misfit before", unit: "in noise units", digits: 2 },
    { key: "after", label: "Misfit after", unit: "in noise units", digits: 2 },
    { key: "kl", label: "KL", unit: "in nats", digits: 4 },
  ];
  if (view.score) {
    found.push(
      { key: "score", label: "Score", unit: "0 to 2, compared with the truth", digits: 3 },
      { key: "priorError", label: "Distance of public table", unit: "0 to 2, from the truth", digits: 3 },
      { key: "syntheticError", label: "Distance of synthetic rows", unit: "0 to 2, from the truth", digits: 3 });
  }
  return found.filter((each) => view[each.key].some((value) => value !== null));
}

function groupsTable(state) {
  const view = D.views[state.level];
  const columns = [
    { label: "Group", kind: "name", value: (g) => view.labels[g], paint: (cell, g) => pickButton(cell, state.level, g) },
    { label: "Rows", kind: "num", value: (g) => view.totals[g], show: (g) => count(view.totals[g]) },
    { label: "Noise of rows (sd)", kind: "num", value: (g) => view.totalSd[g], show: (g) => fixed(1)(view.totalSd[g]) },
  ];
  for (const each of measures(view)) {
    const misfit = each.key === "before" || each.key === "after";
    columns.push({
      label: each.label, kind: "num", value: (g) => view[each.key][g],
      paint: (cell, g) => (misfit ? paintMisfit(cell, view[each.key][g]) : (cell.textContent = fixed(each.digits)(view[each.key][g]))),
    });
  }
  if (view.score && view.why.some((each) => each)) columns.push({ label: "Penalty", kind: "text", value: (g) => view.why[g] });
  if (view.status.some((each) => each !== null)) columns.push({ label: "Status", kind: "text", value: (g) => view.status[g] });
  return sortable($("groups-table"), {
    caption: `Groups of level ${view.name}`, columns, rows: view.labels.map((_, g) => g),
    chosen: (g) => state.view === state.level && g === state.group,
  });
}

function partsTable(state) {
  const view = D.views[state.level];
  const of = (name, k) => view.misfit[name].map((row) => row[k]);
  const rows = view.parts.map((part, k) => {
    const [before, after] = [of("prior", k), of("estimate", k)];
    const worst = before.indexOf(Math.max(...before));
    return { part, before: median(before), worst: before[worst], where: view.labels[worst], after: median(after), left: Math.max(...after) };
  });
  const figure = (label, key) => ({ label, kind: "num", value: (row) => row[key], paint: (cell, row) => paintMisfit(cell, row[key]) });
  const several = view.labels.length > 1;
  sortable($("parts-table"), {
    caption: `Misfit by question, ${several ? `over the ${view.labels.length} groups of level ${view.name}` : view.labels[0]}`,
    columns: [
      { label: "Question", kind: "name", value: (row) => row.part.name },
      { label: "Counts", kind: "num", value: (row) => row.part.cells, show: (row) => count(row.part.cells) },
      { label: "Noise per count (sd)", kind: "num", value: (row) => row.part.sd, show: (row) => fixed(1)(row.part.sd) },
      figure(several ? "Before, median" : "Before", "before"), figure(several ? "After, median" : "After", "after"),
      ...(several ? [figure("Before, worst", "worst"), { label: "in group", kind: "text", value: (row) => row.where }, figure("After, worst", "left")] : []),
    ],
    rows, start: { column: 3, down: true },
  });
}

function heatTable(state) {
  const view = D.views[state.level];
  const values = view.misfit[$("against").value];
  const columns = [
    { label: "Group", kind: "name", value: (g) => view.labels[g], paint: (cell, g) => pickButton(cell, state.level, g) },
    ...view.parts.map((part, k) => ({ label: part.name, kind: "num", value: (g) => values[g][k], paint: (cell, g) => paintMisfit(cell, values[g][k]) })),
  ];
  return sortable($("heat-table"), {
    caption: "Misfit in noise units", columns, rows: view.labels.map((_, g) => g), heat: true,
    chosen: (g) => state.view === state.level && g === state.group,
  });
}

function heatLegend() {
  const legend = $("heat-legend");
  legend.append("Misfit in noise units:");
  const texts = ["up to 1 (noise)", ...MISFIT.slice(1).map((limit, k) => `${MISFIT[k]} to ${limit}`), `over ${MISFIT[MISFIT.length - 1]}`];
  texts.forEach((text, index) => {
    const entry = make(legend, "span");
    make(entry, "i", { class: `swatch h${index}` });
    entry.append(text);
  });
}

function sureTable(state) {
  const [view, level] = [D.views[state.view], D.views[state.level]];
  const points = (value) => (100 * value) / D.fineUnit;
  const rows = D.columns.map((column, c) => {
    const mine = view.columns[c].sd[state.group];
    const worst = mine.indexOf(Math.max(...mine));
    return { column, basis: view.columns[c].basis, typical: points(median(mine)), worst: points(mine[worst]), where: column.labels[worst], groups: points(median(level.columns[c].sd.map(median))) };
  });
  const figure = (label, key) => ({ label, kind: "num", value: (row) => row[key], show: (row) => fixed(2)(row[key]) });
  sortable($("sure-table"), {
    caption: "Standard error of estimated shares, in percentage points",
    columns: [
      { label: "Column", kind: "name", value: (row) => row.column.name },
      { label: "Values", kind: "num", value: (row) => row.column.labels.length },
      figure("Median of values", "typical"), figure("Least certain value", "worst"),
      { label: "Which value", kind: "text", value: (row) => row.where },
      { label: "Basis", kind: "text", value: (row) => row.basis },
      ...(level.labels.length > 1 ? [figure(`Median over groups of ${level.name}`, "groups")] : []),
    ],
    rows, start: { column: 3, down: true },
  });
}
