// One or two columns of a group: public table, noisy answers, estimate, synthetic rows and, if given, true rows.

function startMarginals() {
  D.columns.forEach((column, c) => make($("column"), "option", { value: c }, column.name));
  make($("second"), "option", { value: "" }, "no other column");
  D.columns.forEach((column, c) => make($("second"), "option", { value: c }, column.name));
}

function drawMarginals(state) {
  const c = Number($("column").value);
  for (const option of $("second").options) option.disabled = option.value === String(c);
  if ($("second").value === String(c)) $("second").value = "";
  clear($("marginal-legend"));
  clear($("marginal-chart"));
  clear($("marginal-box"));
  $("marginal-note").textContent = "";
  $("marginal-caption").textContent = "";
  if ($("second").value === "") drawColumn(state, c);
  else drawPair(state, c, Number($("second").value));
}

// The shares of a group in one series; null if it was not measured, or if there are no true rows.
function sharesOf(source, key, group) {
  const values = source[key] && source[key][group];
  return values && (key !== "truth" || values.some((value) => value)) ? values.map((value) => value / D.unit) : null;
}

function drawColumn(state, c) {
  const column = D.columns[c];
  const source = D.views[state.view].columns[c];
  const shares = Object.fromEntries(SERIES.map(({ key }) => [key, sharesOf(source, key, state.group)]));
  const sd = source.sd[state.group].map((value) => value / D.fineUnit);
  const shown = SERIES.filter((series) => shares[series.key]);
  $("marginal-note").textContent = shares.noisy ? "" : "This column was not measured by itself, so there are no noisy answers to show.";
  shown.forEach((series) => legendMark($("marginal-legend"), series));

  const chart = $("marginal-chart");
  const width = Math.max(280, chart.clientWidth);
  const left = Math.round(Math.min(190, Math.max(90, 0.28 * width)));
  const all = shown.flatMap((series) => shares[series.key]);
  const high = Math.max(...all, ...shares.estimate.map((share, k) => share + 2 * sd[k]), 0.01);
  const low = Math.min(0, ...all);
  const scale = (width - left - 32) / (high - low);
  const x = (share) => left + 8 + (share - low) * scale;
  const row = 26;
  const floor = column.labels.length * row + 6;
  const who = D.views[state.view].labels[state.group];
  const picture = drawing(chart, width, floor + 40, `Shares of the values of ${column.name} for ${who}; the table below has the numbers`);
  const step = steps(high - low, width > 600 ? 8 : 4);
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) {
    make(picture, "path", { d: `M${x(at)} 0V${floor}`, stroke: Math.abs(at) < 1e-9 ? "#767676" : "#e2e2e2" });
    make(picture, "text", { x: x(at), y: floor + 15, "text-anchor": "middle", fill: "#595959" }, percent(at, step < 0.01 ? 1 : 0));
  }
  make(picture, "text", { x: left + 8, y: floor + 33, fill: "#595959" }, "share of the group's rows");
  column.labels.forEach((label, k) => {
    const y = k * row + row / 2 + 3;
    if (k % 2) make(picture, "rect", { x: 0, y: y - row / 2, width, height: row, fill: "#f5f6f7", "fill-opacity": 0.7 });
    endingAt(picture, left, y + 4, left, label);
    const [from, to] = [shares.estimate[k] - 2 * sd[k], shares.estimate[k] + 2 * sd[k]];
    make(picture, "path", { d: `M${x(Math.max(from, low))} ${y}H${x(to)}`, stroke: "#0072b2", "stroke-width": 5, "stroke-opacity": 0.3 });
    for (const series of shown) {
      const sign = mark(picture, series.shape, x(shares[series.key][k]), y, series.colour);
      make(sign, "title", {}, `${label}, ${series.short || series.name}: ${percent(shares[series.key][k])}`);
    }
  });
  $("marginal-caption").textContent = `${column.name} for ${who}. Noisy answers may be negative; estimates never are.`;
  const figure = (label, values, digits) => ({ label, kind: "num", value: (k) => values[k], show: (k) => percent(values[k], digits) });
  const scroll = make($("marginal-box"), "div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Marginal, table" });
  framed(scroll);
  sortable(make(scroll, "div"), {
    caption: `${column.name} for ${who}: share of the group's rows`,
    columns: [
      { label: column.name, kind: "name", value: (k) => k, show: (k) => column.labels[k] },
      ...shown.map((series) => figure(series.short || series.name, shares[series.key], 2)),
      figure("± standard error", sd, 2),
    ],
    rows: column.labels.map((_, k) => k),
  });
}

// The stored table of two columns: as it was measured, if it was; for the whole table, if it was not measured by group.
function pairOf(state, a, b) {
  const stored = [`${a},${b}`, `${b},${a}`].filter((key) => D.pairs[key]);
  if (!stored.length) return null;
  for (const view of state.view ? [state.view, 0] : [0]) {
    const key = stored.find((each) => D.pairs[each][view] && D.pairs[each][view].noisy) || stored.find((each) => D.pairs[each][view]);
    if (key) return { source: D.pairs[key][view], turned: key !== `${a},${b}`, view, group: view ? state.group : 0 };
  }
  return null;
}

function drawPair(state, a, b) {
  const [first, second] = [D.columns[a], D.columns[b]];
  const [rows, columns] = [first.labels.length, second.labels.length];
  const found = pairOf(state, a, b);
  const note = [];
  if (!found) {
    $("marginal-note").textContent = `${first.name} and ${second.name} have ${count(rows * columns)} combinations; only pairs of up to ${count(D.largestPair)} are drawn.`;
    return;
  }
  if (found.view !== state.view) note.push("For this pair, the page has only the table of all groups together, which is shown.");
  const of = (key) => {
    const values = sharesOf(found.source, key, found.group);
    return values && values.map((_, cell) => (found.turned ? values[(cell % columns) * rows + Math.floor(cell / columns)] : values[cell]));
  };
  const shares = Object.fromEntries(SERIES.map((series) => [series.key, of(series.key)]));
  if (!shares.noisy) note.push("This pair was not measured, so there are no noisy answers to show.");
  $("marginal-note").textContent = note.join(" ");
  const minus = (x, y) => x.map((value, cell) => value - y[cell]);
  const panels = [
    ...SERIES.filter((series) => shares[series.key]).map((series) => ({ name: series.short || series.name, values: shares[series.key] })),
    { name: "Estimate − public table", values: minus(shares.estimate, shares.prior), difference: true },
    { name: "Synthetic rows − estimate", values: minus(shares.synthetic, shares.estimate), difference: true },
    ...(shares.truth ? [{ name: "Synthetic rows − true rows", values: minus(shares.synthetic, shares.truth), difference: true }] : []),
  ];
  const largest = (difference) => Math.max(1 / D.unit, ...panels.filter((panel) => !!panel.difference === difference).flatMap((panel) => panel.values.map(Math.abs)));
  const tops = { share: largest(false), difference: largest(true) };
  const paint = (panel, value) => (panel.difference ? mix(DIVERGING, 0.5 + value / (2 * tops.difference)) : mix(BLUES, Math.sqrt(Math.max(value, 0) / tops.share)));

  const legend = $("marginal-legend");
  const key = (title, texts, colours) => {
    make(legend, "strong", {}, title);
    texts.forEach((text, k) => swatch(legend, colours[k], text));
  };
  const parts = [0, 0.1, 0.4, 1];
  key("Share of rows:", parts.map((part) => percent(part * tops.share)), parts.map((part) => mix(BLUES, Math.sqrt(part))));
  const sides = [-1, -0.5, 0, 0.5, 1];
  key("Difference:", sides.map((side) => `${side > 0 ? "+" : ""}${percent(side * tops.difference)}`), sides.map((side) => mix(DIVERGING, 0.5 + side / 2)));

  const grid = make($("marginal-chart"), "div", { class: "panels" });
  const who = D.views[found.view].labels[found.group];
  for (const panel of panels) {
    const home = make(grid, "div");
    make(home, "h3", {}, panel.name);
    const width = Math.max(250, home.clientWidth);
    const longest = Math.max(...second.labels.map((label) => Math.min(13, label.length)));
    const [left, bottom] = [86, 34 + 5 * longest];
    const [w, h] = [(width - left - 10) / columns, Math.min(24, Math.max(11, 260 / rows))];
    const picture = drawing(home, width, rows * h + bottom, `${panel.name}: ${first.name} with ${second.name} for ${who}; the table below has the numbers`);
    const every = Math.max(1, Math.ceil(11 / w));
    for (let r = 0; r < rows; r++) {
      endingAt(picture, left - 5, r * h + h / 2 + 4, left - 5, first.labels[r], { "font-size": Math.min(11, h) });
      for (let k = 0; k < columns; k++) {
        const value = panel.values[r * columns + k];
        const cell = make(picture, "rect", { x: left + k * w, y: r * h, width: w, height: h, fill: paint(panel, value), stroke: "#d9d9d9", "stroke-width": 0.5 });
        make(cell, "title", {}, `${first.name} ${first.labels[r]}, ${second.name} ${second.labels[k]}: ${panel.difference && value > 0 ? "+" : ""}${percent(value)}`);
      }
    }
    for (let k = 0; k < columns; k += every) {
      const [x, y] = [left + (k + 0.5) * w, rows * h + 8];
      make(picture, "text", { x, y, "text-anchor": "end", "font-size": 11, transform: `rotate(-55 ${x} ${y})` }, shorten(second.labels[k], 13));
    }
    make(picture, "text", { x: width - 10, y: rows * h + bottom - 4, "text-anchor": "end", fill: "#595959" }, `↓ ${first.name}   → ${second.name}`);
  }
  $("marginal-caption").textContent = `${first.name} (rows) with ${second.name} (columns) for ${who}. Colours follow the square root of the share, so that small shares are visible.`;
  pairTable(first, second, shares, who);
}

function pairTable(first, second, shares, who) {
  const columns = second.labels.length;
  const cells = shares.estimate.map((_, cell) => cell).filter((cell) => SERIES.some((series) => shares[series.key] && shares[series.key][cell] !== 0));
  const box = make($("marginal-box"), "details");
  make(box, "summary", {}, `Table of ${first.name} with ${second.name} (${count(cells.length)} combinations that occur)`);
  const scroll = make(box, "div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Two columns, table" });
  framed(scroll);
  const figure = (label, value, sign = "") => ({ label, kind: "num", value, show: (cell) => `${value(cell) > 0 ? sign : ""}${percent(value(cell))}` });
  sortable(make(scroll, "div"), {
    caption: `${first.name} with ${second.name} for ${who}: share of the rows`,
    columns: [
      { label: first.name, kind: "name", value: (cell) => cell, show: (cell) => first.labels[Math.floor(cell / columns)] },
      { label: second.name, kind: "text", value: (cell) => cell % columns, show: (cell) => second.labels[cell % columns] },
      ...SERIES.filter((series) => shares[series.key]).map((series) => figure(series.short || series.name, (cell) => shares[series.key][cell])),
      figure("Estimate − public", (cell) => shares.estimate[cell] - shares.prior[cell], "+"),
      figure("Synthetic − estimate", (cell) => shares.synthetic[cell] - shares.estimate[cell], "+"),
      ...(shares.truth ? [figure("Synthetic − true", (cell) => shares.synthetic[cell] - shares.truth[cell], "+")] : []),
    ],
    rows: cells,
  });
}
