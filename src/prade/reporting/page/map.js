// The groups as a map: coloured by a measure, navigated with the arrow keys, chosen by click or Enter.

const MAP = { outlines: new Map(), zoom: 1, focus: null };

function startMap() {
  const view = D.views[D.map.view];
  for (const each of measures(view)) make($("measure"), "option", { value: each.key }, `${each.label} (${each.unit})`);
  make($("measure"), "option", { value: "totals" }, "Rows");
  const chart = $("map-chart");
  const picture = make(chart, "svg", { viewBox: box(), role: "group", "aria-label": `Map of the groups of level ${view.name}` });
  MAP.picture = picture;
  for (const [number, d] of Object.entries(D.map.paths)) {
    const group = Number(number);
    const path = make(picture, "path", { d, class: "place", role: "button", tabindex: -1, "fill-rule": "evenodd" });
    make(path, "title");
    MAP.outlines.set(group, path);
    path.addEventListener("click", () => choose(D.map.view, group));
    path.addEventListener("pointerenter", () => tell(group));
    path.addEventListener("focus", () => { MAP.focus = group; tell(group); ring("ring", group); centre(); });
    path.addEventListener("blur", () => ring("ring", null));
    path.addEventListener("keydown", (event) => mapKey(event, group));
  }
  MAP.ring = make(picture, "path", { class: "ring", "aria-hidden": "true" });
  MAP.selected = make(picture, "path", { class: "selected", "aria-hidden": "true" });
  reach(MAP.outlines.keys().next().value);
  $("measure").addEventListener("change", () => { colourMap(); say(`Map coloured by ${$("measure").selectedOptions[0].textContent}`); });
  $("zoom-in").addEventListener("click", () => zoom(2));
  $("zoom-out").addEventListener("click", () => zoom(0.5));
  $("zoom-all").addEventListener("click", () => zoom(0));
  colourMap();
}

function box(centre = null) {
  const { width, height } = D.map;
  const edge = 0.015 * Math.max(width, height);
  const [w, h] = [(width + 2 * edge) / MAP.zoom, (height + 2 * edge) / MAP.zoom];
  const [x, y] = centre || [width / 2, height / 2];
  return `${(x - w / 2).toFixed(1)} ${(y - h / 2).toFixed(1)} ${w.toFixed(1)} ${h.toFixed(1)}`;
}

function middle(group) {
  const at = MAP.outlines.get(group).getBBox();
  return [at.x + at.width / 2, at.y + at.height / 2];
}

function zoom(factor) {
  MAP.zoom = factor ? Math.min(Math.max(MAP.zoom * factor, 1), 16) : 1;
  if (STATE.view === D.map.view && MAP.outlines.has(STATE.group)) MAP.focus = STATE.group;
  centre();
  say(MAP.zoom > 1 ? `Map enlarged ${MAP.zoom} times` : "Whole map");
}

// The last group in focus stays in the middle of an enlarged map.
function centre() {
  MAP.picture.setAttribute("viewBox", box(MAP.zoom > 1 && MAP.focus !== null ? middle(MAP.focus) : null));
}

function classes(values) {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  const ends = [];
  for (let k = 1; k <= VIRIDIS.length; k++) {
    const end = sorted[Math.max(0, Math.round((k * sorted.length) / VIRIDIS.length) - 1)];
    if (!ends.length || end > ends[ends.length - 1]) ends.push(end);
  }
  return { low: sorted[0], ends, colour: (k) => VIRIDIS[ends.length === 1 ? 2 : Math.round((k * (VIRIDIS.length - 1)) / (ends.length - 1))] };
}

function colourMap() {
  const view = D.views[D.map.view];
  const key = $("measure").value;
  const values = view[key];
  const about = measures(view).find((each) => each.key === key) || { label: "Rows", unit: "rows", digits: 0 };
  const show = key === "totals" ? count : fixed(about.digits);
  const { low, ends, colour } = classes([...MAP.outlines.keys()].map((group) => values[group]));
  for (const [group, path] of MAP.outlines) {
    const value = values[group];
    const text = `${view.labels[group]}: ${about.label.toLowerCase()} ${show(value)}`;
    path.setAttribute("fill", value === null ? "#d9d9d9" : colour(ends.findIndex((end) => value <= end)));
    path.setAttribute("aria-label", text);
    path.firstChild.textContent = text;
  }
  if (MAP.told !== undefined) tell(MAP.told);
  const legend = clear($("map-legend"));
  legend.className = "legend";
  make(legend, "strong", {}, `${about.label}, ${about.unit}`);
  ends.forEach((end, k) => swatch(legend, colour(k), k ? `over ${show(ends[k - 1])}, to ${show(end)}` : `${show(low)} to ${show(end)}`));
  if ([...MAP.outlines.keys()].some((group) => values[group] === null)) swatch(legend, "#d9d9d9", "unknown");
}

function tell(group) {
  MAP.told = group;
  $("map-said").textContent = MAP.outlines.get(group).getAttribute("aria-label");
}

function ring(which, group) {
  const path = which === "ring" ? MAP.ring : MAP.selected;
  path.setAttribute("d", group === null ? "" : MAP.outlines.get(group).getAttribute("d"));
}

// Tab reaches one group; the arrow keys move on from there.
function reach(group) {
  for (const path of MAP.outlines.values()) path.setAttribute("tabindex", -1);
  MAP.outlines.get(group).setAttribute("tabindex", 0);
}

function mapKey(event, group) {
  const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    choose(D.map.view, group);
  } else if (ways[event.key]) {
    event.preventDefault();
    const [dx, dy] = ways[event.key];
    const [x, y] = middle(group);
    let best = null;
    for (const other of MAP.outlines.keys()) {
      const [ox, oy] = middle(other);
      const along = (ox - x) * dx + (oy - y) * dy;
      const aside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
      if (along > 0.5 && (!best || along + 2 * aside < best.far)) best = { other, far: along + 2 * aside };
    }
    if (best) {
      reach(best.other);
      MAP.outlines.get(best.other).focus();
    }
  }
}

function markOnMap(state) {
  const here = state.view === D.map.view && MAP.outlines.has(state.group);
  for (const [group, path] of MAP.outlines) path.setAttribute("aria-pressed", here && group === state.group);
  ring("selected", here ? state.group : null);
  if (here) { reach(state.group); tell(state.group); }
}
