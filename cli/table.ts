/** Rows under a head, in columns two spaces apart; `empty` stands for a table without rows. */
export function tableOf(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  empty: string,
): string {
  if (rows.length === 0) return `${empty}\n`;
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  return `${[head, ...rows].map(line).join('\n')}\n`;
}

/** An instant in Unix milliseconds as ISO 8601 in UTC with milliseconds. */
export function isoOf(atMs: number): string {
  return new Date(atMs).toISOString();
}
