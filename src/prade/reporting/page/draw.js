"use strict";
// Elements, colours and numbers. Text that comes from data is always inserted as text, never as markup.

const D = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

const SERIES = [
  { key: "prior", name: "Public table", colour: "#d55e00", shape: "diamond" },
  { key: "noisy", name: "Noisy answers", colour: "#5c5c5c", shape: "cross" },
  { key: "estimate", name: "Estimate, ± 2 standard errors", short: "Estimate", colour: "#0072b2", shape: "disc" },
  { key: "synthetic", name: "Synthetic rows", colour: "#007a59", shape: "square" },
  { key: "truth", name: "True rows", colour: "#000000", shape: "line" },
];
const VIRIDIS = ["#fde725", "#7ad151", "#22a884", "#2a788e", "#414487", "#440154"];
const BLUES = ["#ffffff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"];
const DIVERGING = ["#7f3b08", "#f1a340", "#ffffff", "#67a9cf", "#053061"];

function make(parent, name, attributes = {}, text = null) {
  const space = parent && parent.namespaceURI === "http://www.w3.org/2000/svg" || name === "svg" ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const element = document.createElementNS(space, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
}

function drawing(parent, width, height, label) {
  const picture = make(parent, "svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label, "font-size": 12 });
  make(picture, "title", {}, label);
  return picture;
}

function clear(element) {
  element.replaceChildren();
  return element;
}

const grouped = new Intl.NumberFormat("en-US");
const count = (value) => (value === null ? "–" : grouped.format(value));
const fixed = (digits) => (value) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const percent = (value, digits = 2) => `${(100 * value).toFixed(digits).replace(/^-(0(\.0+)?)$/, "$1").replace("-", "−")} %`;

function shorten(text, most) {
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
}

// A text that ends at x, shortened to the room available; its title has the full text.
function endingAt(parent, x, y, room, text, attributes = {}) {
  const element = make(parent, "text", { x, y, "text-anchor": "end", ...attributes }, text);
  for (let most = text.length; most > 1 && element.getComputedTextLength() > room; most--) element.textContent = shorten(text, most - 1);
  make(element, "title", {}, text);
}

function mix(stops, share) {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  const part = (text, from) => parseInt(text.slice(from, from + 2), 16);
  const channel = (from) => Math.round(part(stops[low], from) + (at - low) * (part(stops[low + 1], from) - part(stops[low], from)));
  return `rgb(${channel(1)},${channel(3)},${channel(5)})`;
}

function mark(parent, shape, x, y, colour) {
  const fill = { fill: "none", stroke: colour, "stroke-width": 2 };
  if (shape === "diamond") return make(parent, "path", { d: `M${x} ${y - 7}l7 7l-7 7l-7 -7z`, ...fill });
  if (shape === "cross") return make(parent, "path", { d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`, fill: "none", stroke: colour, "stroke-width": 2 });
  if (shape === "square") return make(parent, "rect", { x: x - 6, y: y - 6, width: 12, height: 12, ...fill });
  if (shape === "line") return make(parent, "path", { d: `M${x} ${y - 9}v18`, fill: "none", stroke: colour, "stroke-width": 3 });
  return make(parent, "circle", { cx: x, cy: y, r: 4.5, fill: colour });
}

function legendMark(parent, series, text = series.name) {
  const entry = make(parent, "span");
  const picture = make(entry, "svg", { width: 16, height: 16, viewBox: "-9 -9 18 18", "aria-hidden": "true" });
  mark(picture, series.shape, 0, 0, series.colour);
  entry.append(text);
}

function swatch(parent, colour, text) {
  const entry = make(parent, "span");
  make(entry, "i", { class: "swatch" }).style.background = colour;
  entry.append(text);
}

function steps(largest, most) {
  const power = 10 ** Math.floor(Math.log10(largest / most || 1e-9));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => largest / step <= most);
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// Draw again when the width changes, as when a phone is turned.
function whenWidthChanges(element, draw) {
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (element.clientWidth && Math.abs(element.clientWidth - width) > 8) {
      width = element.clientWidth;
      draw();
    }
  }).observe(element);
}

// A scrolling box shows on which side there is more of it: by a shadow, and by a line below.
function framed(box) {
  const frame = make(null, "div", { class: "frame" });
  box.replaceWith(frame);
  const view = make(frame, "div", { class: "shaded" });
  view.append(box);
  const line = make(frame, "p", { class: "more", "aria-hidden": "true" });
  const look = () => {
    const [down, across] = [box.scrollHeight - box.clientHeight, box.scrollWidth - box.clientWidth];
    const below = down - box.scrollTop > 4;
    const right = across - box.scrollLeft > 4;
    view.classList.toggle("below", below);
    view.classList.toggle("right", right);
    line.hidden = down <= 4 && across <= 4;
    line.textContent = [below ? "↓ scroll for more rows" : "", right ? "→ scroll for more columns" : ""].filter(Boolean).join(" · ") || "end of the table";
  };
  box.addEventListener("scroll", look, { passive: true });
  const sizes = new ResizeObserver(look);
  sizes.observe(box);
  sizes.observe(box.firstElementChild || box);
  look();
}
