// Charts by Vega-Lite. A specification names colours as in common.css, such as "var(--estimate)": the page's mode, light,
// dark or paper, then decides what they are without drawing again. Files that are saved have the light ones.

const CHARTS = new Map();
const FONT = 'system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif';
const STEPS = [0, 1, 2, 3, 4, 5, 6].map((step) => `var(--step-${step})`);
const text = { labelColor: "var(--quiet)", titleColor: "var(--quiet)", labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500 };
const LOOK = {
  font: FONT,
  aria: false,
  background: "transparent",
  padding: { left: 2, right: 6, top: 4, bottom: 2 },
  view: { stroke: null },
  axis: { ...text, gridColor: "var(--line)", domain: false, ticks: false, labelPadding: 8, titlePadding: 10 },
  legend: { ...text, labelColor: "var(--ink)", orient: "top", direction: "horizontal", title: null, symbolSize: 90, columnPadding: 18, offset: 10, labelLimit: 320, gradientThickness: 12 },
  header: { labelColor: "var(--ink)", titleColor: "var(--quiet)", labelFontSize: 13, labelFontWeight: 600, labelAnchor: "start" },
  text: { color: "var(--ink)", fontSize: 12 },
  rule: { color: "var(--line-strong)" },
};

// Draw a chart, or draw another one in the same place. `spec` is a Vega-Lite specification, or a function that makes one
// for a width in pixels; `csv` is {heads, rows}: the chart's numbers, for the table below it and for the file. `click` is
// called with the data of a mark that is clicked.
function chart(container, spec, { title, csv, click = null }) {
  const shown = CHARTS.get(container) || frame(container);
  Object.assign(shown, { spec, title, csv, click });
  shown.tools.setAttribute("aria-label", `Save: ${title}`);
  fillTable(shown);
  return draw(shown);
}

function frame(container) {
  container.replaceChildren();
  container.classList.add("chart");
  const shown = { container, plot: make(container, "div", { class: "plot" }), turn: 0, width: 0, view: null, drawn: false };
  const foot = make(container, "div", { class: "chart-foot" });
  shown.details = make(foot, "details");
  make(shown.details, "summary", {}, "Numbers as a table");
  shown.table = make(shown.details, "div", { class: "scroll tall", tabindex: "0", role: "region" });
  shown.tools = make(foot, "div", { class: "saves", role: "group" });
  const tool = (label, act) => make(shown.tools, "button", { type: "button", class: "small" }, label).addEventListener("click", act);
  tool("SVG", () => saveSvg(shown));
  tool("PNG", () => savePng(shown));
  tool("CSV", () => save(`${fileName(shown.title)}.csv`, csvText(shown.csv), "text/csv"));
  new ResizeObserver(() => { if (container.clientWidth && container.clientWidth !== shown.width) draw(shown); }).observe(container);
  CHARTS.set(container, shown);
  return shown;
}

async function draw(shown) {
  const width = shown.container.clientWidth;
  if (!width) return; // The observer draws a hidden chart when it is first seen.
  const turn = ++shown.turn;
  Object.assign(shown, { width, drawn: false });
  const { spec, title } = shown;
  const place = make(null, "div");
  const full = { width, autosize: { type: "fit-x", contains: "padding" }, ...(typeof spec === "function" ? spec(width) : spec) };
  const { view } = await vegaEmbed(place, full, {
    mode: "vega-lite", ast: true, actions: false, defaultStyle: false, renderer: "svg", tooltip: showTip, config: LOOK,
  });
  if (turn !== shown.turn) return view.finalize(); // Another chart was asked for meanwhile.
  if (shown.view) shown.view.finalize();
  Object.assign(shown, { view, drawn: true });
  if (shown.click) view.addEventListener("click", (_, item) => { if (item && item.datum) shown.click(item.datum); });
  shown.plot.replaceChildren(place);
  const picture = place.querySelector("svg");
  // One picture with one name: its parts have none of their own.
  for (const part of picture.querySelectorAll("[role]")) ["role", "aria-roledescription"].forEach((each) => part.removeAttribute(each));
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", title);
}

function showTip(_, event, item, value) {
  const tip = $("tip") || make(document.body, "div", { id: "tip", "aria-hidden": "true" });
  tip.hidden = absent(value) || value === "";
  if (tip.hidden) return;
  tip.replaceChildren();
  if (typeof value === "object") {
    for (const [key, each] of Object.entries(value)) {
      make(tip, "span", {}, key);
      make(tip, "strong", {}, String(each));
    }
  } else make(tip, "strong", { class: "wide" }, String(value));
  const { clientX: x, clientY: y } = event;
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18}px`;
}

function fillTable({ table, title, csv }) {
  table.replaceChildren();
  table.setAttribute("aria-label", `${title}, table`);
  const inner = make(table, "table");
  make(inner, "caption", {}, title);
  const isNumber = csv.heads.map((_, place) => csv.rows.every((row) => typeof row[place] === "number" || absent(row[place])));
  const head = make(make(inner, "thead"), "tr");
  csv.heads.forEach((label, place) => make(head, "th", { scope: "col", class: isNumber[place] ? "num" : "text" }, label));
  const body = make(inner, "tbody");
  for (const row of csv.rows) {
    const line = make(body, "tr");
    row.forEach((value, place) => {
      const shown = typeof value === "number" ? readable(value) : absent(value) ? "–" : value;
      if (place) make(line, "td", { class: isNumber[place] ? "num" : "text" }, shown);
      else make(line, "th", { scope: "row" }, shown);
    });
  }
}

const readable = (value) => (absent(value) ? "–" : Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4))).replace("-", MINUS));

function csvText({ heads, rows }) {
  const cell = (value) => {
    const formula = typeof value === "string" && /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/.test(value); // a spreadsheet would run it
    const written = absent(value) ? "" : `${formula ? "'" : ""}${value}`;
    return /[",\r\n]/.test(written) ? `"${written.replaceAll('"', '""')}"` : written;
  };
  return [heads, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

const fileName = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "chart";

// The chart as an SVG file: with a white ground, and with the light mode's colours in place of their names.
async function svgText({ view }) {
  const probe = make(document.body, "span", { class: "light", hidden: "" });
  const colour = (name) => {
    probe.style.color = name;
    return getComputedStyle(probe).color;
  };
  const written = (await view.toSVG()).replace(/var\(--[a-z0-9-]+\)/g, colour);
  probe.remove();
  return written.replace(/(<svg[^>]*>)/, '$1<rect width="100%" height="100%" fill="#fff"/>');
}

async function saveSvg(shown) {
  save(`${fileName(shown.title)}.svg`, await svgText(shown), "image/svg+xml");
}

async function savePng(shown) {
  const picture = new Image();
  picture.src = `data:image/svg+xml,${encodeURIComponent(await svgText(shown))}`;
  await picture.decode();
  const canvas = make(null, "canvas", { width: 2 * picture.width, height: 2 * picture.height });
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(`${fileName(shown.title)}.png`, blob), "image/png");
}
