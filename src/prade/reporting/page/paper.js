// The paper's figure: the distances of the public table and of the synthetic rows from the true rows, group by group.

const PAPER = { table: null, marks: new Map() };

function paperGroups() {
  const view = D.views[D.views.length - 1];
  const known = view.labels.map((_, g) => g).filter((g) => view.priorError[g] !== null);
  return { view, known: known.sort((a, b) => view.priorError[a] - view.priorError[b]) };
}

function startPaper() {
  const { view, known } = paperGroups();
  const [prior, , , synthetic] = SERIES;
  legendMark($("paper-legend"), prior, `${prior.name}: mean ${fixed(3)(D.truth.prior)}`);
  legendMark($("paper-legend"), synthetic, `${synthetic.name}: mean ${fixed(3)(D.truth.synthetic)} (${percent(D.truth.synthetic / D.truth.prior, 0)} of that)`);
  const missing = view.labels.length - known.length;
  $("paper-caption").textContent = `Each of the ${count(known.length)} groups has one mark of each kind, ordered from the group that the public table fits best to the one that it fits worst. Dashed lines are the means. Point at a group to read its values, click to choose it.${missing ? ` ${count(missing)} ${missing === 1 ? "group" : "groups"} without true rows ${missing === 1 ? "is" : "are"} left out.` : ""}`;
  const figure = (label, value) => ({ label, kind: "num", value, show: (g) => fixed(3)(value(g)) });
  PAPER.table = sortable($("paper-table"), {
    caption: "Mean distance from the true rows",
    columns: [
      { label: "Group", kind: "name", value: (g) => view.labels[g], paint: (cell, g) => pickButton(cell, D.views.length - 1, g) },
      figure("Public table", (g) => view.priorError[g]),
      figure("Synthetic rows", (g) => view.syntheticError[g]),
      { label: "Ratio", kind: "num", value: (g) => ratio(view, g), show: (g) => (ratio(view, g) === null ? "–" : percent(ratio(view, g), 0)) },
    ],
    rows: known, start: { column: 1, down: false },
  });
  drawPaper();
}

function ratio(view, g) {
  return view.priorError[g] > 0 ? view.syntheticError[g] / view.priorError[g] : null;
}

function drawPaper() {
  const { view, known } = paperGroups();
  const chart = clear($("paper-chart"));
  const [width, height, left, bottom] = [Math.max(280, chart.clientWidth), 340, 44, 36];
  const picture = drawing(chart, width, height + bottom, "Mean distance of public table and synthetic rows from the true rows, by group; the table has the numbers");
  const high = 1.06 * Math.max(0.01, ...known.flatMap((g) => [view.priorError[g], view.syntheticError[g]]));
  const y = (value) => height - (value / high) * (height - 18);
  const wide = (width - left - 8) / Math.max(known.length, 1);
  const step = steps(high, 6);
  for (let at = 0; at <= high; at += step) {
    make(picture, "path", { d: `M${left} ${y(at)}H${width}`, stroke: at ? "#e2e2e2" : "#767676" });
    make(picture, "text", { x: left - 6, y: y(at) + 4, "text-anchor": "end", fill: "#595959" }, at.toFixed(step < 0.1 ? 2 : 1));
  }
  make(picture, "text", { x: 0, y: 10, fill: "#595959" }, "mean L1 distance from the true rows");
  make(picture, "text", { x: left, y: height + 20, fill: "#595959" }, "← public table fits best");
  if (width > 380) make(picture, "text", { x: width - 2, y: height + 20, "text-anchor": "end", fill: "#595959" }, "fits worst →");
  const drawn = SERIES.filter((series) => series.key === "prior" || series.key === "synthetic");
  const size = Math.min(1, Math.max(0.4, wide / 14));
  PAPER.marks = new Map();
  known.forEach((g, rank) => {
    const x = left + 4 + (rank + 0.5) * wide;
    const group = make(picture, "g", { class: "pair" });
    make(group, "title", {}, `${view.labels[g]}: public table ${fixed(3)(view.priorError[g])}, synthetic rows ${fixed(3)(view.syntheticError[g])}`);
    make(group, "rect", { class: "back", x: x - wide / 2, y: 18, width: wide, height: height - 18 });
    make(group, "path", { d: `M${x} ${y(view.priorError[g])}V${y(view.syntheticError[g])}`, stroke: "#c4c4c4" });
    for (const series of drawn) {
      const at = make(group, "g", { transform: `translate(${x} ${y(view[`${series.key}Error`][g])}) scale(${size})` });
      mark(at, series.shape, 0, 0, series.colour);
    }
    group.addEventListener("click", () => choose(D.views.length - 1, g));
    PAPER.marks.set(g, group);
  });
  for (const series of drawn) {
    const at = y(D.truth[series.key]);
    make(picture, "path", { d: `M${left} ${at}H${width}`, stroke: series.colour, "stroke-width": 1.5, "stroke-dasharray": "6 4", "pointer-events": "none" });
  }
}

function markOnPaper(state) {
  const here = (g) => state.view === D.views.length - 1 && g === state.group;
  PAPER.table.mark(here);
  for (const [g, group] of PAPER.marks) group.classList.toggle("chosen", here(g));
}
