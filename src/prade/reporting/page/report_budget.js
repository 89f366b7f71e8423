// The budget as stacked bars, one per level.

const QUESTIONS = ["number of rows", "one-way tables", "two-way tables", "other questions"];

function drawBudget() {
  const asks = D.budget.flatMap((level) => level.asks.map((ask) => ({
    level: level.name, kind: ask.kind, share: ask.share,
    tip: { [`${level.name}, ${ask.what}`]: percent(ask.share), Cost: ask.price, Noise: `${ask.law}, scale ${ask.scale}` },
  })));
  const used = QUESTIONS.filter((kind) => asks.some((ask) => ask.kind === kind));
  const colours = { domain: used, range: used.map((kind) => `var(--kind-${QUESTIONS.indexOf(kind)})`) };
  return chart($("budget-figure"), (width) => ({
    data: { values: asks },
    height: 40 * new Set(asks.map((ask) => ask.level)).size,
    mark: { type: "bar", stroke: "var(--ground)", strokeWidth: 1.5, height: 26 },
    encoding: {
      y: { field: "level", type: "nominal", sort: null, title: null, axis: { labelColor: "var(--ink)", grid: false, labelLimit: Math.round(0.3 * width) } },
      x: { field: "share", type: "quantitative", title: "share of the whole budget", axis: { format: ".0%", tickCount: width < 500 ? 4 : 10 } },
      color: { field: "kind", type: "nominal", scale: colours, legend: { columns: width < 600 ? 2 : 4 } },
      order: { field: "kind" },
      tooltip: { field: "tip" },
    },
  }), {
    title: "Share of the budget by level and question",
    csv: { heads: ["Level", "Question", "Share of budget"], rows: D.budget.flatMap((level) => level.asks.map((ask) => [level.name, ask.what, ask.share])) },
  });
}
