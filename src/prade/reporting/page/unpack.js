// Numbers are in the page as packed arrays: {packed, type, shape, unit} (see prade.reporting.html).

const KINDS = {
  u16: [Uint16Array, 65535],
  i32: [Int32Array, 2147483647],
};

// The values of a packed array, all in one list row by row, with NaN where there is none.
async function unpack({ packed, type, unit }) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const [Kind, none] = KINDS[type];
  const stored = new Kind(await new Response(inflated).arrayBuffer());
  return Float64Array.from(stored, (value) => (value === none ? NaN : value / unit));
}

// The rows of a packed array.
async function unpackRows(entry) {
  const values = await unpack(entry);
  const [rows, cells] = entry.shape;
  return Array.from({ length: rows }, (_, row) => values.subarray(row * cells, (row + 1) * cells));
}
