// The groups as a map: coloured by a share, its uncertainty or an error. The arrow keys move between groups; a click or Enter chooses one.

const MAP = { shapes: new Map(), at: null, zoom: 1 };
const MEASURES = [
  { key: "share", label: "Estimated share", ofCell: true, show: (x) => percent(x), format: ".1%" },
  { key: "width", label: "Uncertainty: width of the 95 % interval", ofCell: true, show: (x) => percent(x), format: ".1%" },
  { key: "error", label: "Model error", show: fixed(3), format: ".3f" },
  { key: "rows", label: capital(D.noun), show: count, format: ",.0f" },
];
const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// A path of the page's data, made of M, L and Z, as a shape that Vega-Lite draws.
function shapeOf(path) {
  const rings = path.split("M").slice(1).map((ring) => ring.replace("Z", "").split("L").map((point) => point.split(" ").map(Number)));
  const [xs, ys] = [0, 1].map((axis) => rings.flat().map((point) => point[axis]));
  const [west, east, north, south] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const closed = rings.map((ring) => [...ring, ring[0]]);
  return { type: "Feature", geometry: { type: "Polygon", coordinates: closed }, middle: [(west + east) / 2, (north + south) / 2], size: (east - west) * (south - north) };
}

function startMap() {
  for (const [number, path] of Object.entries(D.map.paths)) MAP.shapes.set(Number(number), { group: Number(number), ...shapeOf(path) });
  for (const { key, label } of MEASURES) make($("measure"), "option", { value: key }, label);
  for (const id of ["measure", "cell"]) $(id).addEventListener("change", () => busy(drawMap()));
  for (const [id, factor] of [["zoom-in", 2], ["zoom-out", 0.5], ["zoom-all", 0]]) $(id).addEventListener("click", () => zoom(factor));
  $("map-keys").addEventListener("keydown", mapKey);
  $("map-keys").addEventListener("focus", () => moveTo(MAP.at ?? chosenOnMap() ?? MAP.shapes.keys().next().value));
  $("map-keys").addEventListener("blur", () => moveTo(null));
}

const chosenOnMap = () => (S.view === D.map.view && MAP.shapes.has(S.group) ? S.group : null);
const chooseOnMap = (group) => {
  if (MAP.at !== null) MAP.at = group; // the keyboard goes on from there
  choose({ view: D.map.view, group });
};
const measure = () => MEASURES.find(({ key }) => key === $("measure").value);

// The cells of the chosen column are offered, first its most usual one; the choice stays while the column does.
async function showMap() {
  if (MAP.column !== S.column) {
    MAP.column = S.column;
    const { name, labels, cells } = D.columns[S.column];
    const [everybody] = await rowsOf(D.views[0], "estimate");
    const shares = everybody.slice(...cells);
    $("cell").replaceChildren(...labels.map((label, k) => make(null, "option", { value: k }, `${name} ${label}`)));
    $("cell").value = shares.indexOf(Math.max(...shares));
  }
  return drawMap();
}

async function mapValues({ key }) {
  const view = D.views[D.map.view];
  if (key === "error") return view.error;
  if (key === "rows") return view.totals;
  const cell = D.columns[S.column].cells[0] + Number($("cell").value);
  const column = async (series) => (await rowsOf(view, series)).map((row) => row[cell]);
  if (key === "share") return column("estimate");
  const [low, high] = [await column("low"), await column("high")];
  return high.map((end, group) => end - low[group]);
}

async function drawMap() {
  const { ofCell, label, show, format } = measure();
  $("cell-box").hidden = !ofCell;
  const values = await mapValues(measure());
  const view = D.views[D.map.view];
  const what = ofCell ? `${label}, ${$("cell").selectedOptions[0].textContent}` : label;
  MAP.said = (group) => `${view.labels[group]}: ${what.toLowerCase()} ${show(values[group])}`;
  const shapes = [...MAP.shapes.values()].sort((a, b) => b.size - a.size).map((shape) => ({ ...shape, value: values[shape.group], tip: { [view.labels[shape.group]]: show(values[shape.group]) } }));
  tellMap(MAP.at ?? chosenOnMap());
  return chart($("map-figure"), (width) => mapSpec(shapes, width, format, what), {
    title: `Map: ${what}`,
    csv: { heads: ["Group", what], rows: view.labels.map((name, group) => [name, values[group]]) },
    click: ({ group }) => { if (group !== undefined) chooseOnMap(group); },
  });
}

// Classes of about the same number of groups, as far as the values differ.
function classes(values) {
  const sorted = values.filter((value) => !absent(value)).sort((a, b) => a - b);
  const ends = [1, 2, 3, 4, 5].map((k) => sorted[Math.round((k * sorted.length) / 6)]).filter((end) => end > sorted[0]);
  const domain = [...new Set(ends)];
  const colour = (k) => STEPS[domain.length ? 1 + Math.round((5 * k) / domain.length) : 3];
  return { type: "threshold", domain, range: range(0, domain.length + 1).map(colour) };
}

function mapSpec(shapes, width, format, title) {
  const most = Math.max(260, 0.8 * innerHeight);
  const fit = Math.min(width / D.map.width, most / D.map.height);
  const [scale, height] = [fit * MAP.zoom, fit * D.map.height];
  const middle = MAP.zoom > 1 ? MAP.shapes.get(MAP.at ?? chosenOnMap() ?? MAP.shapes.keys().next().value).middle : [D.map.width / 2, D.map.height / 2];
  const translate = [width / 2 - scale * middle[0], height / 2 - scale * middle[1]];
  const outline = (values, mark, more = {}) => ({ data: { values }, mark: { type: "geoshape", clip: true, ...mark }, ...more });
  const ring = (name, colour) => outline(shapes, { fill: null, stroke: colour, strokeWidth: 3 }, { transform: [{ filter: `datum.group === ${name}` }] });
  return {
    height, autosize: { type: "pad" },
    projection: { type: "identity", scale, translate },
    params: [{ name: "chosen", value: chosenOnMap() }, { name: "at", value: MAP.at }],
    layer: [
      outline(shapes, { stroke: "var(--ground)", strokeWidth: 0.7, cursor: "pointer" }, {
        encoding: {
          color: {
            field: "value", type: "quantitative", scale: classes(shapes.map(({ value }) => value)), legend: { ...KEY(width), title, format },
            condition: { test: "!isValid(datum.value)", value: "var(--nothing)" },
          },
          tooltip: { field: "tip" },
        },
      }),
      ring("chosen", "var(--ink)"), ring("at", "var(--accent)"),
    ],
  };
}

function zoom(factor) {
  MAP.zoom = factor ? Math.min(Math.max(MAP.zoom * factor, 1), 16) : 1;
  say(MAP.zoom > 1 ? `Map enlarged ${MAP.zoom} times` : "Whole map");
  return busy(drawMap());
}

function tellMap(group) {
  $("map-said").textContent = group === null ? "" : MAP.said(group);
}

// The keyboard's place on the map.
function moveTo(group) {
  MAP.at = group;
  tellMap(group ?? chosenOnMap());
  if (group !== null) say(MAP.said(group));
  if (MAP.zoom > 1) return busy(drawMap());
  CHARTS.get($("map-figure")).view.signal("at", group).runAsync();
}

function mapKey(event) {
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    chooseOnMap(MAP.at);
  } else if (WAYS[event.key]) {
    event.preventDefault();
    const next = neighbour(MAP.shapes.get(MAP.at).middle, WAYS[event.key]);
    if (next !== null) moveTo(next);
  }
}

// The nearest group in a direction; a step aside counts twice.
function neighbour([x, y], [dx, dy]) {
  let [best, least] = [null, Infinity];
  for (const { group, middle } of MAP.shapes.values()) {
    const along = (middle[0] - x) * dx + (middle[1] - y) * dy;
    const aside = Math.abs((middle[0] - x) * dy) + Math.abs((middle[1] - y) * dx);
    if (along > 0.5 && along + 2 * aside < least) [best, least] = [group, along + 2 * aside];
  }
  return best;
}
