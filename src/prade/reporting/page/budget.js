// The budget as stacked bars, one per level.

const KINDS = { "number of rows": "#e69f00", "one-way tables": "#56b4e9", "two-way tables": "#009e73", "other questions": "#cc79a7" };

function drawBudget() {
  const chart = clear($("budget-chart"));
  const width = Math.max(280, chart.clientWidth);
  const levels = D.budget.filter((level) => level.asks.length);
  const used = Object.keys(KINDS).filter((kind) => levels.some((level) => level.asks.some((ask) => ask.kind === kind)));
  const legend = make(chart, "div", { class: "legend" });
  used.forEach((kind) => swatch(legend, KINDS[kind], kind));
  const whole = Math.max(...levels.map((level) => level.asks.reduce((sum, ask) => sum + ask.share, 0)));
  const [bar, row, bottom] = [30, 62, 40];
  const picture = drawing(chart, width, row * levels.length + bottom, "Share of the budget by level and question");
  const scale = (width - 32) / whole; // half of the last label extends beyond its line
  const step = steps(whole, width > 600 ? 10 : 5);
  const floor = row * levels.length + 4;
  for (let at = 0; at <= whole + 1e-9; at += step) {
    make(picture, "path", { d: `M${4 + at * scale} 0V${floor}`, stroke: "#dcdcdc" });
    make(picture, "text", { x: 4 + at * scale, y: floor + 14, "text-anchor": at ? "middle" : "start", fill: "#595959" }, `${Math.round(100 * at)} %`);
  }
  make(picture, "text", { x: 4, y: floor + 31, fill: "#595959" }, "share of the whole budget");
  levels.forEach((level, number) => {
    const y = number * row;
    const sum = level.asks.reduce((total, ask) => total + ask.share, 0);
    make(picture, "text", { x: 4, y: y + 15, "font-weight": 600 }, `${level.name}: ${percent(sum, 1)}`);
    let x = 4;
    for (const ask of level.asks) {
      const long = ask.share * scale;
      const box = make(picture, "rect", { x, y: y + 22, width: Math.max(long, 1), height: bar, fill: KINDS[ask.kind], stroke: "#fff", "stroke-width": 1.5 });
      make(box, "title", {}, `${level.name}, ${ask.what}: ${percent(ask.share, 1)} (${ask.price}); ${ask.law} noise of scale ${ask.scale}`);
      const text = percent(ask.share, 1);
      if (long > 8 * text.length) make(picture, "text", { x: x + long / 2, y: y + 42, "text-anchor": "middle", fill: "#000", "pointer-events": "none" }, text);
      x += long;
    }
  });
}
