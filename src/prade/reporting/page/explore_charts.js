// The charts of the page about budgets, as Vega-Lite specifications.

const LEVEL_COLOURS = ["var(--estimate)", "var(--synthetic)", "var(--noisy)", "var(--public)"];
const SERIES = [
  { key: "public", name: "Public table alone", colour: "var(--public)", shape: "diamond" },
  { key: "noisy", name: "Noisy answer", colour: "var(--noisy)", shape: "M-.7,-.7L.7,.7M-.7,.7L.7,-.7" },
  { key: "estimate", name: "Estimate, 95 % interval", colour: "var(--estimate)", shape: "circle" },
  { key: "synthetic", name: "Synthetic rows", colour: "var(--synthetic)", shape: "square" },
];
const TRUE_SHARE = "Stand-in's true share";
const MOST_CELLS = 40;

// Expected error against epsilon, a line for each level, the last level first.
function curveSpec(data, chosen) {
  const levels = data.levels.map((level) => level.name).reverse();
  const values = data.budgets.flatMap((budget) => budget.by_level.map((each) => ({
    ...each, epsilon: budget.amount, low: Math.max(0, each.error - each.spread), high: each.error + each.spread,
  })));
  const baselines = values.filter((each) => each.epsilon === values[0].epsilon).map((each) => ({ ...each, words: "public table alone" }));
  const epsilons = data.budgets.map((budget) => budget.amount);
  const [least, most] = [Math.min(...epsilons), Math.max(...epsilons)];
  const x = { field: "epsilon", type: "quantitative", scale: { type: "log", domain: [least / 1.35, most * 1.35], nice: false }, axis: { values: epsilons, format: "~g", grid: false, title: `${data.symbol} (log scale)` } };
  const y = { field: "error", type: "quantitative", scale: { zero: true }, axis: { title: "Expected error", format: "~g", tickCount: 5 } };
  const colour = { field: "level", type: "nominal", scale: { domain: levels, range: LEVEL_COLOURS }, legend: levels.length > 1 ? {} : null };
  const tooltip = [{ field: "level", title: "Level" }, { field: "epsilon", title: data.symbol }, { field: "error", title: "Expected error", format: ".3f" }, { field: "spread", title: "May be off by", format: ".3f" }, { field: "prior", title: "Public table alone", format: ".3f" }];
  const suggested = data.recommended === null ? [] : [{ epsilon: epsilons[data.recommended], words: "suggested" }];
  const label = { type: "text", align: "right", baseline: "bottom", dy: -5, x: "width" };
  const baseline = { y: { ...y, field: "prior" }, text: { field: "words" } };
  const here = { data: { values: [{ epsilon: epsilons[chosen] }] }, mark: { type: "rule", color: "var(--chosen)", strokeWidth: 22 }, encoding: { x } };
  return {
    height: 300, data: { values },
    layer: [
      here,
      { data: { values: baselines }, mark: { type: "rule", strokeDash: [5, 4], strokeWidth: 1.5, opacity: 0.9 }, encoding: { y: { ...y, field: "prior" }, color: colour } },
      { mark: { type: "rule", strokeWidth: 2 }, encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color: colour } },
      { mark: { type: "line", strokeWidth: 2 }, encoding: { x, y, color: colour } },
      { mark: { type: "point", filled: true, size: 80, opacity: 1 }, encoding: { x, y, color: colour, tooltip } },
      { data: { values: baselines }, mark: { ...label, stroke: "var(--ground)", strokeWidth: 4 }, encoding: baseline },
      { data: { values: baselines }, mark: label, encoding: { ...baseline, color: colour } },
      { data: { values: suggested }, mark: { type: "text", baseline: "bottom", y: "height", dy: -6, color: "var(--good)", fontWeight: 600 }, encoding: { x, text: { field: "words" } } },
    ],
  };
}

function curveNumbers(data) {
  return {
    heads: [data.symbol, "level", "expected error", "may be off by", "public table alone"],
    rows: data.budgets.flatMap((budget) => budget.by_level.map((each) => [budget.amount, each.level, each.error, each.spread, each.prior])),
  };
}

// The cells to draw: all of them, or the largest ones in their own order.
function cellsToDraw(truth) {
  const cells = Array.from(truth.keys());
  if (cells.length <= MOST_CELLS) return cells;
  return cells.sort((a, b) => truth[b] - truth[a]).slice(0, MOST_CELLS).sort((a, b) => a - b);
}

// One axis for all budgets, so that they can be compared while the slider moves; answers with much noise may lie outside.
function sharesDomain(all) {
  const ends = all.flatMap((shares) => [...shares.truth, ...shares.public, ...shares.synthetic, ...shares.high]);
  const most = 1.05 * Math.max(0.01, ...ends.filter((end) => !absent(end)));
  const low = Math.min(0, ...all.flatMap((shares) => [...shares.noisy]).filter((share) => !absent(share)));
  return [Math.max(low, -most / 10), most];
}

// A place's shares of one column; `shares` has a list of numbers for each series, for "truth", "sd", "low" and "high".
function sharesSpec(labels, shares, domain, width) {
  const cells = cellsToDraw(shares.truth);
  const values = cells.flatMap((cell) => SERIES.map(({ key, name }) => ({
    cell, series: name, label: labels[cell], share: shares[key][cell],
    ...(key === "estimate" ? { low: shares.low[cell], high: shares.high[cell] } : {}),
  }))).filter((each) => !absent(each.share));
  const truth = cells.map((cell) => ({ cell, label: labels[cell], share: shares.truth[cell], series: TRUE_SHARE }));
  const names = SERIES.map((each) => each.name);
  const step = cells.length > 14 ? 34 : 46;
  const y = { field: "cell", type: "nominal", scale: { paddingInner: 0.3, paddingOuter: 0.15 }, axis: { title: null, labelExpr: "labels[datum.value]", labelLimit: Math.round(width * 0.34), labelColor: "var(--ink)" } };
  const x = { field: "share", type: "quantitative", scale: { domain, clamp: true, nice: false }, axis: { title: "Share of the place's rows", format: ".0%", tickCount: Math.max(3, Math.round(width / 130)) } };
  const series = [TRUE_SHARE, ...names];
  const colours = ["var(--truth)", ...SERIES.map((each) => each.colour)];
  const legend = { columns: width < 480 ? 1 : width < 760 ? 3 : 5, symbolStrokeWidth: 2 };
  const stroke = { field: "series", type: "nominal", scale: { domain: series, range: colours }, legend };
  const fill = { ...stroke, scale: { domain: series, range: series.map((name, at) => (name.startsWith("Estimate") ? colours[at] : "transparent")) } };
  const shape = { ...stroke, scale: { domain: series, range: ["M0,-1V1", ...SERIES.map((each) => each.shape)] } };
  const lane = { field: "series", type: "nominal", scale: { domain: names } };
  const tooltip = [{ field: "label", title: "Value" }, { field: "series", title: "Series" }, { field: "share", title: "Share", format: ".2%" }];
  return {
    height: cells.length * step, params: [{ name: "labels", value: labels }], data: { values },
    layer: [
      { data: { values: truth }, mark: { type: "tick", orient: "vertical", thickness: 2.5, size: step * 0.74, opacity: 1, color: "var(--truth)" }, encoding: { x, y, tooltip } },
      { transform: [{ filter: "isValid(datum.low)" }], mark: { type: "rule", strokeWidth: 2.5, color: "var(--estimate)" }, encoding: { x: { ...x, field: "low" }, x2: { field: "high" }, y, yOffset: lane } },
      { mark: { type: "point", size: 70, strokeWidth: 2, opacity: 1 }, encoding: { x, y, yOffset: lane, stroke, fill, shape, tooltip } },
    ],
  };
}

function sharesNumbers(labels, shares) {
  return {
    heads: ["value", "stand-in's true share", "public table alone", "noisy answer", "estimate", "standard error", "synthetic rows"],
    rows: labels.map((label, cell) => [label, ...["truth", "public", "noisy", "estimate", "sd", "synthetic"].map((key) => shares[key][cell])]),
  };
}

// A square of pairs of columns, shaded by a value between 0 and `most`.
function pairsSpec(names, pairs, { title, most, format }, width) {
  const values = pairs.flatMap((pair) => [{ ...pair, a: pair.first, b: pair.second }, { ...pair, a: pair.second, b: pair.first }]);
  const named = (field, axis) => ({ field, type: "ordinal", axis: { title: null, labelExpr: "names[datum.value]", labelLimit: 120, labelOverlap: false, labelFontSize: 11, domain: false, ...axis } });
  return {
    height: Math.max(160, Math.min(names.length * 26, 640)), params: [{ name: "names", value: names }], data: { values },
    config: { legend: { gradientLength: Math.min(340, width - 130) } },
    mark: { type: "rect", stroke: "var(--ground)", strokeWidth: 1 },
    encoding: {
      x: named("a", { orient: "bottom", labelAngle: -60 }), y: named("b"),
      color: { field: "value", type: "quantitative", scale: { type: "quantize", domain: [0, most], range: STEPS }, legend: { title, titleColor: "var(--quiet)", format } },
      tooltip: [{ field: "firstName", title: "Column" }, { field: "secondName", title: "with" }, { field: "error", title: "Expected error", format: ".3f" }, { field: "prior", title: "Public table alone", format: ".3f" }],
    },
  };
}
