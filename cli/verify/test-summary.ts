/** What `bun test` said of itself at its end. `ran` is false when it never came that far. */
export type TestSummary = Readonly<{ passed: number; failed: number; skipped: number; ran: boolean }>;

const NOTHING: TestSummary = { passed: 0, failed: 0, skipped: 0, ran: false };

/** The summary after one more line of the runner's output; start with `undefined`. Colours are ignored. */
export function summaryAfter(before: TestSummary | undefined, line: string): TestSummary {
  const summary = before ?? NOTHING;
  const text = Bun.stripANSI(line);
  if (/^Ran \d+ tests? across \d+ files?\./.test(text)) return { ...summary, ran: true };
  const [, digits, what] = /^ *(\d+) (pass|fail|skip|todo)$/.exec(text) ?? [];
  const count = Number(digits);
  switch (what) {
    case 'pass':
      return { ...summary, passed: count };
    case 'fail':
      return { ...summary, failed: count };
    case 'skip':
    case 'todo':
      return { ...summary, skipped: summary.skipped + count };
    default:
      return summary;
  }
}

/** Failures to report: what the runner counted, and one more when it crashed or left with an error it did not count. */
export function failuresOf(summary: TestSummary, exitCode: number | null): number {
  const uncounted = !summary.ran || (exitCode !== 0 && summary.failed === 0);
  return summary.failed + (uncounted ? 1 : 0);
}
