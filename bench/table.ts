/** A table for people: every column as wide as its widest cell, the first one to the left. A figure that is none is `-`. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => cell.replace(/\bNaN\b/g, '-')));
  const columns = Math.max(0, ...cells.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, i) =>
    Math.max(...cells.map((row) => (row[i] ?? '').length)),
  );
  const lines = cells.map((row) =>
    widths
      .map((width, i) => (i === 0 ? (row[i] ?? '').padEnd(width) : (row[i] ?? '').padStart(width)))
      .join('  ')
      .trimEnd(),
  );
  return lines.join('\n');
}
