// Tables that can be sorted by their headings.

// columns: [{label, value(row), show(row), kind: "num" | "name" | "text", paint(cell, row)}]; rows are any values.
// `start` is the first order: {column, down}.
function sortable(parent, { caption, columns, rows, chosen = () => false, start = { column: -1, down: false } }) {
  parent.replaceChildren();
  const table = make(parent, "table");
  make(table, "caption", {}, caption);
  const head = make(make(table, "thead"), "tr");
  const body = make(table, "tbody");
  let order = start;
  let wanted = () => true;

  function compare(a, b) {
    const { value } = columns[order.column];
    const [x, y] = [value(a), value(b)];
    if (absent(x) || absent(y)) return absent(x) - absent(y);
    const sign = order.down ? -1 : 1;
    return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
  }

  function fillCell(line, column, row) {
    const cell = column.kind === "name" ? make(line, "th", { scope: "row" }) : make(line, "td", { class: column.kind });
    if (column.paint) column.paint(cell, row);
    else cell.textContent = column.show ? column.show(row) : column.value(row);
  }

  function fill() {
    const shown = rows.filter(wanted);
    if (order.column >= 0) shown.sort(compare);
    body.replaceChildren();
    for (const row of shown) {
      const line = make(body, "tr");
      line.row = row;
      line.classList.toggle("chosen", chosen(row));
      for (const column of columns) fillCell(line, column, row);
    }
    columns.forEach((_, index) => {
      const sorted = index !== order.column ? "none" : order.down ? "descending" : "ascending";
      head.children[index].setAttribute("aria-sort", sorted);
    });
    return shown.length;
  }

  columns.forEach((column, index) => {
    const cell = make(head, "th", { scope: "col", class: `sorts ${column.kind}` });
    const button = make(cell, "button", { type: "button" }, column.label);
    make(button, "span", { class: "arrow", "aria-hidden": "true" });
    button.addEventListener("click", () => {
      order = { column: index, down: order.column === index ? !order.down : column.kind === "num" };
      fill();
      say(`${caption}: sorted by ${column.label}, ${order.down ? "largest first" : "smallest first"}`);
    });
  });
  fill();
  return {
    filter(test) { wanted = test; return fill(); },
    mark(test) { for (const line of body.rows) line.classList.toggle("chosen", test(line.row)); },
  };
}
