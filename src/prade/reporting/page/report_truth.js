// The comparison with the true rows, on pages that were made with them.

const T = D.truth;

// The paper's figure: the distances of the public table and of the synthetic rows, group by group.
function drawPaper() {
  const view = D.views[LAST];
  const known = view.labels.map((_, g) => g).filter((g) => !absent(T.priorError[g])).sort((a, b) => T.priorError[a] - T.priorError[b]);
  const drawn = [seriesOf("public"), seriesOf("synthetic")];
  const of = (g) => ({ public: T.priorError[g], synthetic: T.syntheticError[g] });
  const tip = (g) => ({ [view.labels[g]]: "", "Public table": fixed(3)(of(g).public), "Synthetic rows": fixed(3)(of(g).synthetic) });
  const marks = known.flatMap((g, rank) => drawn.map(({ key, name }) => ({ rank, group: g, series: name, distance: of(g)[key], tip: tip(g) })));
  const means = drawn.map(({ key, name }) => ({ series: name, distance: key === "public" ? T.prior : T.synthetic }));
  const scale = (of) => ({ domain: drawn.map((series) => series.name), range: drawn.map((series) => series[of]) });
  const y = { field: "distance", type: "quantitative", title: "mean L1 distance from the true rows", scale: { zero: true } };
  const x = { field: "rank", type: "ordinal", title: "groups, by the public table's distance", axis: { labels: false, grid: false } };
  const colour = { field: "series", type: "nominal", scale: scale("colour") };
  return chart($("paper-figure"), (width) => ({
    height: 320,
    params: [{ name: "chosen", value: S.view === LAST ? S.group : null }],
    layer: [
      { data: { values: known.map((g, rank) => ({ rank, group: g, tip: tip(g) })) }, mark: { type: "bar", cursor: "pointer", width: { band: 1 } }, encoding: { x, color: { value: "var(--chosen)" }, opacity: { condition: { test: "datum.group === chosen", value: 1 }, value: 0 }, tooltip: { field: "tip" } } },
      { data: { values: means }, mark: { type: "rule", strokeDash: [6, 4], strokeWidth: 1.5 }, encoding: { y, color: colour } },
      {
        data: { values: marks }, mark: { type: "point", size: Math.max(20, Math.min(80, (6 * width) / known.length)), strokeWidth: 2, cursor: "pointer" },
        encoding: { x, y, color: colour, shape: { field: "series", type: "nominal", scale: scale("shape") }, tooltip: { field: "tip" } },
      },
    ],
  }), {
    title: "Distance of public table and synthetic rows from the true rows, by group",
    csv: { heads: ["Group", "Public table", "Synthetic rows"], rows: known.map((g) => [view.labels[g], T.priorError[g], T.syntheticError[g]]) },
    click: ({ group }) => { if (group !== undefined) choose({ view: LAST, group }); },
  });
}

function markPlace() {
  const shown = CHARTS.get($("paper-figure"));
  if (shown && shown.view) shown.view.signal("chosen", S.view === LAST ? S.group : null).runAsync();
}

async function drawHeat() {
  const columns = D.columns.map(({ name }) => name);
  const rows = await rowsOf(T.heat, $("heat-of").value);
  const name = $("heat-of").selectedOptions[0].textContent;
  const cells = columns.flatMap((a, r) => columns.map((b, k) => ({ r, k, distance: rows[r][k], tip: { [r === k ? a : `${a} × ${b}`]: fixed(3)(rows[r][k]) } }))).filter(({ r, k }) => r >= k);
  return chart($("heat-figure"), (width) => {
    const side = Math.min(width, 760);
    const axis = { title: null, axis: { labelExpr: "names[datum.value]", labelFontSize: side / columns.length > 14 ? 11 : 9, labelOverlap: true, grid: false, labelLimit: 90 } };
    return {
      width: side, height: side * 0.8, autosize: { type: "fit", contains: "padding" },
      params: [{ name: "names", value: columns }],
      data: { values: cells },
      mark: { type: "rect", stroke: "var(--ground)", strokeWidth: 0.5 },
      encoding: {
        y: { field: "r", type: "ordinal", ...axis }, x: { field: "k", type: "ordinal", ...axis },
        color: { field: "distance", type: "quantitative", scale: { type: "quantize", domain: [0, largest(cells.map((cell) => cell.distance))], range: STEPS }, legend: { ...KEY(width), title: "distance from the true table", format: ".2f" } },
        tooltip: { field: "tip" },
      },
    };
  }, {
    title: `Distance of pairs of columns: ${name}`,
    csv: { heads: ["Column", "with", "Distance"], rows: cells.map(({ r, k, distance }) => [columns[r], columns[k], distance]) },
  });
}

const distanceOf = (label, value) => ({ label, kind: "num", value, show: (row) => fixed(3)(value(row)) });
const indexOf = (name) => D.columns.findIndex((column) => column.name === name);

function worstTables() {
  sortable($("worst-pairs"), {
    caption: "Worst pairs of columns",
    columns: [
      { label: "Pair", kind: "name", value: (row) => `${row.first} × ${row.second}`, paint: (cell, row) => leads(cell, `${row.first} × ${row.second}`, { column: indexOf(row.first), second: indexOf(row.second) }) },
      distanceOf("By place", (row) => row.places), distanceOf("Everybody", (row) => row.whole), distanceOf("Public table", (row) => row.public),
    ],
    rows: T.worst_pairs,
  });
  sortable($("worst-places"), {
    caption: "Worst places",
    columns: [
      { label: "Place", kind: "name", value: (row) => placeName(row), paint: (cell, row) => leads(cell, placeName(row), { view: row.view, group: row.group }) },
      distanceOf("Synthetic rows", (row) => row.distance), distanceOf("Public table", (row) => row.public),
      { label: "True rows", kind: "num", value: (row) => row.true_rows, show: (row) => count(row.true_rows) },
      ...(T.worst_places.some((row) => row.why) ? [{ label: "Penalty", kind: "text", value: (row) => row.why || "–" }] : []),
    ],
    rows: T.worst_places,
  });
}

function metricsTable() {
  const figure = (label, key) => ({ label, kind: "num", value: (row) => row[key], show: (row) => fixed(row.digits)(row[key]) });
  sortable($("metrics-table"), {
    caption: "Synthetic rows and public table, both compared with the true rows",
    columns: [
      { label: "Metric", kind: "name", value: (row) => row.title }, figure("Synthetic rows", "synthetic"), figure("Public table", "public"), figure("Best", "best"),
      { label: "How to read it", kind: "text", value: (row) => row.why || row.read },
    ],
    rows: T.metrics.summary,
  });
}

// A regression's coefficients on every table, side by side.
function regression(name, title) {
  const found = T.metrics[name];
  const home = make($("regressions"), "details");
  if (found.not_available) {
    home.replaceWith(make(null, "p", { class: "quiet" }, `${title}: ${found.not_available}`));
    return;
  }
  make(home, "summary", {}, `${title} of ${found.outcome} on ${found.predictors.join(", ")}`);
  const tables = [["truth", "True rows"], ["synthetic", "Synthetic rows"], ["public", "Public table"]].filter(([key]) => found[key] && found[key].coefficients);
  const scroll = make(home, "div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": `${title}, table` });
  const at = (key, t) => found[key].coefficients[t];
  const written = readable;
  for (const [label, each] of [["Synthetic rows", found.synthetic], ["Public table", found.public]]) {
    if (each && each.not_available) make(home, "p", { class: "quiet" }, `${label}: ${each.not_available}`);
  }
  sortable(make(scroll, "div"), {
    caption: "Coefficients with their 95 % intervals",
    columns: [
      { label: "Term", kind: "name", value: (t) => t, show: (t) => at("truth", t).term },
      ...tables.map(([key, label]) => ({ label, kind: "num", value: (t) => at(key, t).estimate, show: (t) => `${written(at(key, t).estimate)} (${written(at(key, t).low)} to ${written(at(key, t).high)})` })),
      ...(found.synthetic.coefficients ? [{ label: "Overlap of intervals", kind: "num", value: (t) => at("synthetic", t).overlap, show: (t) => percent(at("synthetic", t).overlap, 0) }] : []),
    ],
    rows: found.truth.coefficients.map((_, t) => t),
  });
}

function consistencyTable() {
  const { rules } = T.metrics.consistency;
  $("consistency-box").hidden = !rules || !rules.length;
  if (!rules || !rules.length) return;
  const figure = (label, key) => ({ label, kind: "num", value: (row) => row[key], show: (row) => percent(row[key], 2) });
  sortable($("consistency"), {
    caption: "Share of rows that break a rule which the linked columns usually keep",
    columns: [{ label: "Broken rule", kind: "name", value: (row) => `${row.low} > ${row.high}` }, figure("True rows", "truth"), figure("Synthetic rows", "synthetic"), figure("Public table", "public")],
    rows: rules,
  });
}

function startTruth() {
  $("heat-of").addEventListener("change", () => busy(drawHeat()));
  worstTables();
  metricsTable();
  regression("linear", "Linear regression");
  regression("logistic", "Logistic regression");
  consistencyTable();
  return Promise.all([drawPaper(), drawHeat()]);
}
