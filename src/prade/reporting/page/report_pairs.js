// Two columns of a place: a picture for every series, and one for every difference that matters.

// Colours are steps, as a page's mode may change them; those of small shares are finer.
const stepped = (most) => ({ type: "threshold", domain: [1, 2, 3, 4, 5, 6].map((step) => most * (step / 7) ** 2), range: STEPS });
const KEY = (width) => ({ type: "gradient", gradientLength: Math.min(360, width - 150), gradientThickness: 12, labelOverlap: "greedy" });
const SIDES = ["var(--less-3)", "var(--less-2)", "var(--less-1)", "var(--step-0)", "var(--more-1)", "var(--more-2)", "var(--more-3)"];
const sided = (most) => ({ type: "threshold", domain: [-5, -3, -1, 1, 3, 5].map((part) => (most * part) / 7), range: SIDES });
const most = (lists) => Math.max(1e-4, ...lists.flatMap((values) => values.map(Math.abs)));

const DIFFERENCES = [["estimate", "public"], ["synthetic", "estimate"], ["synthetic", "truth"]];
const seriesOf = (key) => SERIES.find((series) => series.key === key);

function drawPair(found) {
  const [first, second] = [D.columns[S.column], D.columns[S.second]];
  const columns = second.labels.length;
  const shown = SERIES.filter(({ key }) => found[key]);
  const title = `${nameOf(first)} with ${nameOf(second)} for ${placeName()}`;
  $("basis-said").textContent = `${first.name} with ${second.name} for ${placeName()} was ${BASIS[found.basis]}`;
  const occurs = range(0, found.estimate.length).filter((cell) => shown.some(({ key }) => found[key][cell] > 0));
  const names = (cell) => [first.labels[Math.floor(cell / columns)], second.labels[cell % columns]];
  const each = (cell) => [found.low[cell], found.high[cell]];
  const tables = chart($("explore-figure"), (width) => gridSpec(first, second, width, {
    panels: shown.map((series) => [short(series), found[series.key], series.key === "estimate" ? (cell) => ({ "95 % interval": each(cell).map((x) => percent(x, 2)).join(" to ") }) : null]),
    scale: stepped(most(shown.map(({ key }) => found[key]))), legend: `share of the place's ${D.noun}`, show: (x) => percent(x, 2),
  }), {
    title,
    csv: { heads: [first.name, second.name, ...shown.map(short), "low", "high"], rows: occurs.map((cell) => [...names(cell), ...shown.map(({ key }) => found[key][cell]), ...each(cell)]) },
  });
  const pairs = DIFFERENCES.filter(([a, b]) => found[a] && found[b]);
  const panels = pairs.map(([a, b]) => [`${short(seriesOf(a))} ${MINUS} ${short(seriesOf(b)).toLowerCase()}`, found[a].map((x, cell) => x - found[b][cell])]);
  const differences = chart($("explore-differences"), (width) => gridSpec(first, second, width, {
    panels, scale: sided(most(panels.map(([, values]) => values))), legend: "difference of shares", show: (x) => `${x > 0 ? "+" : ""}${percent(x, 2)}`,
  }), {
    title: `Differences: ${title}`,
    csv: { heads: [first.name, second.name, ...panels.map(([name]) => name)], rows: occurs.map((cell) => [...names(cell), ...panels.map(([, values]) => values[cell])]) },
  });
  return Promise.all([tables, differences]);
}

function gridSpec(first, second, width, { panels, scale, legend, show }) {
  const [rows, columns] = [first.labels.length, second.labels.length];
  const side = width < 620 ? 1 : width < 900 ? 2 : 3;
  const room = Math.min(120, 7 * Math.max(...first.labels.map((label) => label.length)));
  const wide = Math.floor((width - room - 24 - 14 * (side - 1)) / side);
  const values = panels.flatMap(([panel, shares, more], p) => shares.map((share, cell) => {
    const [r, k] = [Math.floor(cell / columns), cell % columns];
    return { p, r, k, share, tip: { [panel]: show(share), [first.name]: first.labels[r], [second.name]: second.labels[k], ...(more ? more(cell) : {}) } };
  }));
  const axis = (names, limit) => ({ title: null, axis: { labelExpr: `${names}[datum.value]`, labelLimit: limit, labelFontSize: 11, labelOverlap: true, grid: false } });
  return {
    width: undefined, autosize: undefined,
    params: [{ name: "rowNames", value: first.labels }, { name: "columnNames", value: second.labels }, { name: "panelNames", value: panels.map(([name]) => name) }],
    data: { values },
    facet: { field: "p", type: "ordinal", title: null, header: { labelExpr: "panelNames[datum.value]" } },
    columns: side,
    spacing: 14,
    spec: {
      width: wide, height: Math.min(26, Math.max(9, 300 / rows)) * rows,
      mark: { type: "rect", stroke: "var(--line)", strokeWidth: 0.5 },
      encoding: {
        y: { field: "r", type: "ordinal", ...axis("rowNames", room) },
        x: { field: "k", type: "ordinal", ...axis("columnNames", 90) },
        color: { field: "share", type: "quantitative", scale, legend: { ...KEY(width), title: legend, format: ".1%" } },
        tooltip: { field: "tip" },
      },
    },
  };
}
