// Which place and columns are chosen, and what depends on them.

const D = JSON.parse($("data").textContent);
const LAST = D.views.length - 1;
const S = { view: LAST, group: 0, column: 0, second: null };
const TABLES = {};
const UNPACKED = new Map();

// A packed series as one list of numbers per group; unpacked when it is first asked for. Null if there is none.
function rowsOf(source, key) {
  const entry = source[key];
  if (!entry) return null;
  if (!UNPACKED.has(entry)) UNPACKED.set(entry, unpackRows(entry));
  return UNPACKED.get(entry);
}

const nameOf = ({ name, title }) => (title === name ? name : `${title} (${name})`);
const levelName = ({ by, name }) => by.at(-1) ?? name; // PUMA for a level by STATE and PUMA
const placeName = ({ view, group } = S) => D.views[view].labels[group];

// The first view has intervals that are right: the last level, a measured column of a few values, a group of middle size.
function firstChoice() {
  const view = D.views[LAST];
  const bySize = view.labels.map((_, g) => g).sort((a, b) => view.totals[a] - view.totals[b]);
  const measured = D.columns.map((_, c) => c).filter((c) => view.basis[c] === "measured");
  const few = measured.find((c) => D.columns[c].labels.length >= 3 && D.columns[c].labels.length <= 16);
  return { view: LAST, group: bySize[bySize.length >> 1], column: few ?? measured[0] ?? 0, second: null };
}

// What the address asks for, as far as the page has it.
function fromAddress(given) {
  const first = firstChoice();
  const view = D.views.findIndex((each) => each.name === given.level);
  const group = view < 0 ? -1 : D.views[view].labels.indexOf(given.place);
  const [column, second] = [given.column, given.with].map((name) => D.columns.findIndex((each) => each.name === name));
  return {
    ...first,
    ...(group < 0 ? {} : { view, group }),
    ...(column < 0 ? {} : { column, second: second < 0 || second === column ? null : second }),
  };
}

function choose(change, said = true) {
  Object.assign(S, change);
  if (S.second === S.column) S.second = null;
  const second = S.second === null ? null : D.columns[S.second].name;
  if (said) {
    address.keep({ level: D.views[S.view].name, place: placeName(), column: D.columns[S.column].name, with: second });
    say(`Chosen: ${placeName()}, ${D.columns[S.column].name}${second ? ` with ${second}` : ""}`);
  }
  showChoice();
  const here = (g) => S.view === TABLES.level && g === S.group;
  TABLES.groups.mark(here);
  if (D.truth) markPlace();
  return busy(drawChoice(), D.map && showMap());
}

// The page is marked as busy while something is drawn.
let pending = 0;

async function busy(...works) {
  pending += 1;
  $("main").ariaBusy = "true";
  await Promise.all(works);
  pending -= 1;
  if (!pending) $("main").ariaBusy = "false";
}

// A button in a table that leads to a place or column in the section Explore.
function leads(cell, text, change) {
  const button = make(cell, "button", { type: "button", class: "pick" }, text);
  button.addEventListener("click", () => {
    choose(change);
    address.go($("explore-h"));
  });
}

function startChooser() {
  const place = $("place");
  D.views.forEach((view, v) => {
    const home = v ? make(place, "optgroup", { label: levelName(view) }) : place;
    view.labels.forEach((label, g) => make(home, "option", { value: `${v},${g}` }, label));
  });
  make($("second"), "option", { value: "" }, "no other column");
  D.columns.forEach((column, c) => {
    make($("column"), "option", { value: c }, nameOf(column));
    make($("second"), "option", { value: c }, nameOf(column));
  });
  $("chooser").addEventListener("submit", (event) => event.preventDefault());
  place.addEventListener("change", () => {
    const [view, group] = place.value.split(",").map(Number);
    choose({ view, group });
  });
  $("column").addEventListener("change", () => choose({ column: Number($("column").value) }));
  $("second").addEventListener("change", () => choose({ second: $("second").value === "" ? null : Number($("second").value) }));
}

function showChoice() {
  $("place").value = `${S.view},${S.group}`;
  $("column").value = S.column;
  $("second").value = S.second ?? "";
  for (const option of $("second").options) option.disabled = option.value === String(S.column);
}

// Texts that people paste elsewhere.
function startCopying() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    const label = button.textContent;
    button.addEventListener("click", async () => {
      const source = $(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent.trim());
        button.textContent = "Copied";
        say("Copied");
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = "Selected: copy it with Ctrl+C";
      }
      setTimeout(() => { button.textContent = label; }, 4000);
    });
  }
}
