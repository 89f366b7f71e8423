// The tables of a place: public table, noisy answers, estimate with its interval, synthetic rows and, if given, true rows.

const SERIES = [
  { key: "public", name: "Public table", colour: "var(--public)", fill: "transparent", shape: "diamond" },
  { key: "noisy", name: "Noisy answers, cut to 0–100 %", short: "Noisy answers", colour: "var(--noisy)", fill: "transparent", shape: "cross" },
  { key: "estimate", name: "Estimate, 95 % interval", short: "Estimate", colour: "var(--estimate)", fill: "var(--estimate)", shape: "circle" },
  { key: "synthetic", name: "Synthetic rows", colour: "var(--synthetic)", fill: "transparent", shape: "square" },
  { key: "truth", name: "True rows", colour: "var(--truth)", fill: "transparent", shape: "M0,-1.3L0,1.3" },
];
const short = (series) => series.short || series.name;
const BASIS = {
  measured: "counted here, with noise.",
  summed: "counted, with noise, in the smaller groups that make up this one.",
  model: "not counted here: its shape is inferred from the public table and from what was counted.",
};

const ENDS = ["low", "high", "rowsLow", "rowsHigh"]; // of 95 % intervals; a pair has none in numbers of rows

// The chosen column, or the chosen pair in the order in which it was chosen: {basis, shares by series, ends of intervals}.
async function chosenTable() {
  const place = S.second === null ? placeOfColumn() : placeOfPair();
  if (!place) return null;
  const found = { basis: place.basis };
  for (const key of [...SERIES.map((series) => series.key), ...ENDS]) {
    const rows = await rowsOf(place.source, key);
    const values = rows && place.cells.map((cell) => rows[S.group][cell]);
    found[key] = values && values.some((value) => !absent(value)) ? values : null;
  }
  if (found.truth && !found.truth.some((value) => value)) found.truth = null; // a place without true rows
  return found;
}

const range = (from, to) => Array.from({ length: to - from }, (_, k) => from + k);

function placeOfColumn() {
  const view = D.views[S.view];
  return { source: view, cells: range(...D.columns[S.column].cells), basis: view.basis[S.column] };
}

const pairIn = (view) => D.pairs[view].index.findIndex(([i, j]) => i === Math.min(S.column, S.second) && j === Math.max(S.column, S.second));

function placeOfPair() {
  const at = pairIn(S.view);
  if (at < 0) return null;
  const source = D.pairs[S.view];
  const [rows, columns] = [S.column, S.second].map((c) => D.columns[c].labels.length);
  const cell = (r, k) => source.starts[at] + (S.column < S.second ? r * columns + k : k * rows + r);
  return { source, cells: range(0, rows * columns).map((n) => cell(Math.floor(n / columns), n % columns)), basis: source.basis[at] };
}

let turn = 0;

async function drawChoice() {
  const mine = ++turn;
  const found = await chosenTable();
  if (mine !== turn) return; // something else was chosen meanwhile
  const pair = S.second !== null;
  $("explore-shown").hidden = !found;
  $("explore-shown").classList.toggle("beside", !pair);
  $("numbers-box").hidden = pair;
  $("explore-differences").hidden = !pair;
  $("basis").hidden = !found;
  $("warned").hidden = !found || found.basis !== "model";
  if (!found) return notKept();
  $("basis").textContent = found.basis;
  $("basis").className = `badge ${found.basis}`;
  await (pair ? drawPair(found) : drawColumn(found));
}

// A pair is shown only for the groups for which it is kept; otherwise the page says for which that is.
function notKept() {
  const [first, second] = [S.column, S.second].map((c) => D.columns[c].name);
  const kept = D.views.map((_, v) => v).filter((v) => pairIn(v) >= 0);
  const said = $("basis-said");
  const cells = D.columns[S.column].labels.length * D.columns[S.second].labels.length;
  if (!kept.length) {
    said.textContent = `The page does not keep ${first} with ${second}: ${cells > D.largestPair ? `of ${count(cells)} combinations, more than ${count(D.largestPair)}` : "there was no room for it"}. In Python, estimates.marginal gives it.`;
    return;
  }
  const where = kept.map((v) => (v ? `every ${levelName(D.views[v])}` : D.views[0].labels[0]));
  said.textContent = `${first} with ${second} is not kept for ${placeName()}, but for ${where.join(" and ")}. `;
  for (const v of kept) {
    const button = make(said, "button", { type: "button", class: "small" }, `Show it for ${D.views[v].labels[0]}`);
    button.addEventListener("click", () => choose({ view: v, group: 0 }));
  }
}

function drawColumn(found) {
  const column = D.columns[S.column];
  const shown = SERIES.filter((series) => found[series.key]);
  const each = column.labels.map((_, k) => ({ share: [found.low[k], found.high[k]], counts: [found.rowsLow[k], found.rowsHigh[k]] }));
  const top = found.estimate.indexOf(Math.max(...found.estimate));
  const [low, high] = each[top].share;
  const [from, to] = each[top].counts;
  const rows = count(D.views[S.view].totals[S.group]);
  $("basis-said").textContent = `${nameOf(column)} was ${BASIS[found.basis]} Its most frequent value in ${placeName()} is “${column.labels[top]}”: ${percent(found.estimate[top])} of ${rows} ${D.noun}, with a 95 % interval of ${percent(low)} to ${percent(high)}, or ${count(from)} to ${count(to)} ${D.noun}.`;
  const title = `${nameOf(column)} for ${placeName()}`;
  numbersTable(column, found, each, title);
  const csv = {
    heads: [column.name, ...shown.map(short), "low", "high"],
    rows: column.labels.map((label, k) => [label, ...shown.map(({ key }) => found[key][k]), ...each[k].share]),
  };
  return chart($("explore-figure"), (width) => columnSpec(column, found, shown, each, width), { title, csv });
}

function columnSpec(column, found, shown, each, width) {
  const marks = shown.flatMap(({ key, name }) => column.labels.map((label, k) => ({
    k, series: name, share: found[key][k],
    tip: { [label]: "", [name]: percent(found[key][k], 2), ...(key === "estimate" ? { "95 % interval": each[k].share.map((x) => percent(x, 2)).join(" to ") } : {}) },
  })));
  const y = {
    field: "k", type: "ordinal", title: null, scale: { domain: range(0, column.labels.length) },
    axis: { labelExpr: "labels[datum.value]", labelLimit: Math.round(0.32 * width), labelColor: "var(--ink)", grid: true, gridColor: "var(--soft)" },
  };
  const scale = (of) => ({ domain: shown.map((series) => series.name), range: shown.map((series) => series[of]) });
  return {
    params: [{ name: "labels", value: column.labels }],
    height: column.labels.length * (column.labels.length > 30 ? 20 : 28),
    layer: [
      { data: { values: each.map(({ share: [low, high] }, k) => ({ k, low, high })) }, mark: { type: "rule", strokeWidth: 7, opacity: 0.3, color: "var(--estimate)", strokeCap: "round" }, encoding: { y, x: { field: "low", type: "quantitative" }, x2: { field: "high" } } },
      {
        data: { values: marks }, mark: { type: "point", size: 85, strokeWidth: 2 },
        encoding: {
          y, x: { field: "share", type: "quantitative", title: `share of the place's ${D.noun}`, axis: { format: ".0%", tickCount: Math.max(3, Math.round(width / 110)) } },
          stroke: { field: "series", type: "nominal", scale: scale("colour"), legend: { columns: Math.max(1, Math.floor(width / 190)) } },
          shape: { field: "series", type: "nominal", scale: scale("shape") },
          fill: { field: "series", type: "nominal", scale: scale("fill") },
          tooltip: { field: "tip" },
        },
      },
    ],
  };
}

function numbersTable(column, found, each, title) {
  const figure = (label, value, show) => ({ label, kind: "num", value, show });
  sortable($("explore-numbers"), {
    caption: title,
    columns: [
      { label: "Value", kind: "name", value: (k) => k, show: (k) => column.labels[k] },
      figure("Estimate", (k) => found.estimate[k], (k) => percent(found.estimate[k])),
      figure("95 % interval", (k) => each[k].share[0], (k) => each[k].share.map((x) => percent(x)).join(" – ")),
      figure(`In ${D.noun}`, (k) => each[k].counts[0], (k) => each[k].counts.map(count).join(" – ")),
    ],
    rows: column.labels.map((_, k) => k),
  });
}
