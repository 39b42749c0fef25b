/** Lines kept of what was printed before a failure, and failures kept. */
const LINES_MAX = 40;
const FAILURES_MAX = 20;

/**
 * What `bun test` said of itself. `ran` is false when it never came to its end. `failures` are the first failed
 * tests and files, each with its file and the lines that led to it.
 */
export type TestSummary = Readonly<{
  passed: number;
  failed: number;
  skipped: number;
  ran: boolean;
  failures: readonly string[];
}>;

/** Reads the runner's output line by line. Colours are ignored. */
export function createTestSummary() {
  let summary: TestSummary = { passed: 0, failed: 0, skipped: 0, ran: false, failures: [] };
  let file = '';
  let recent: string[] = [];

  return {
    summary: (): TestSummary => summary,

    add(line: string): void {
      const text = Bun.stripANSI(line);
      if (/^Ran \d+ tests? across \d+ files?\./.test(text)) summary = { ...summary, ran: true };
      const [, digits, what] = /^ *(\d+) (pass|fail|skip|todo)$/.exec(text) ?? [];
      if (what !== undefined) count(what, Number(digits));
      else collect(text);
    },
  };

  function count(what: string, number: number) {
    unhandledError();
    if (what === 'pass') summary = { ...summary, passed: number };
    else if (what === 'fail') summary = { ...summary, failed: number };
    else summary = { ...summary, skipped: summary.skipped + number };
  }

  function collect(text: string) {
    const opened = /^(\S+\.test\.tsx?):$/.exec(text)?.[1];
    if (opened !== undefined) {
      unhandledError();
      file = opened;
      recent = [];
      return;
    }
    recent = [...recent, text].slice(-LINES_MAX);
    // At its end the runner lists every failure again, without what led to it.
    if (text.startsWith('(fail)') && !recent.some((each) => /^\d+ tests? failed:$/.test(each))) failure();
    if (/^\((?:pass|skip|todo)\)/.test(text)) recent = [];
  }

  /** An error outside of every test has no line `(fail)`. */
  function unhandledError() {
    if (recent.some((each) => each.startsWith('# Unhandled error'))) failure();
  }

  function failure() {
    if (summary.failures.length < FAILURES_MAX)
      summary = { ...summary, failures: [...summary.failures, [`${file}:`, ...recent].join('\n')] };
    recent = [];
  }
}

/** Failures to report: what the runner counted, and one more when it crashed or left with an error it did not count. */
export function failuresOf(summary: TestSummary, exitCode: number | null): number {
  const uncounted = !summary.ran || (exitCode !== 0 && summary.failed === 0);
  return summary.failed + (uncounted ? 1 : 0);
}
