"use strict";
// Elements and numbers. Text that comes from data is always inserted as text, never as markup.

const $ = (id) => document.getElementById(id);

function make(parent, name, attributes = {}, text = null) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, value);
  if (text !== null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

// Tell people who do not see the page what has changed.
function say(text) {
  $("live").textContent = text;
}

const absent = (value) => value === null || value === undefined || Number.isNaN(value);
const MINUS = "\u2212";
const grouped = new Intl.NumberFormat("en-US");
const count = (value) => (absent(value) ? "–" : grouped.format(Math.round(value)).replace("-", MINUS));
const fixed = (digits) => (value) => (absent(value) ? "–" : value.toFixed(digits).replace(/^-(0(\.0+)?)$/, "$1").replace("-", MINUS));
const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);
const percent = (value, digits = 1) => (absent(value) ? "–" : `${fixed(digits)(100 * value)} %`);

// Offer a file that is made in the page.
function save(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = make(document.body, "a", { href: address, download: name, hidden: "" });
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// Details that were closed are opened on paper.
function openForPaper() {
  const details = () => document.querySelectorAll("details[data-print]");
  addEventListener("beforeprint", () => details().forEach((each) => { each.before = each.open; each.open = true; }));
  addEventListener("afterprint", () => details().forEach((each) => { each.open = each.before; }));
}
