/** One figure of a run and whether it is within its bounds. */
export type Finding = Readonly<{ what: string; bounds: string; measured: string; holds: boolean }>;

/** A figure from `low` to `high`; `digits` are those behind the point. */
export function between(what: string, measured: number, low: number, high: number, digits = 0): Finding {
  const bounds = `${low.toFixed(digits)} - ${high.toFixed(digits)}`;
  return { what, bounds, measured: measured.toFixed(digits), holds: measured >= low && measured <= high };
}

/** A whole figure that can be no other. */
export function exactly(what: string, measured: number, expected: number): Finding {
  return { ...between(what, measured, expected, expected), bounds: expected.toFixed(0) };
}

/** A figure of at most `high`. */
export function atMost(what: string, measured: number, high: number, digits = 0): Finding {
  return { ...between(what, measured, -Infinity, high, digits), bounds: `<= ${high.toFixed(digits)}` };
}

/** A figure of at least `low`. */
export function atLeast(what: string, measured: number, low: number, digits = 0): Finding {
  return { ...between(what, measured, low, Infinity, digits), bounds: `>= ${low.toFixed(digits)}` };
}

/** A figure that is said and not judged. */
export function said(what: string, measured: string): Finding {
  return { what, bounds: '', measured, holds: true };
}

/** Findings as a table, under the name of what was run. */
export function tableOfFindings(name: string, findings: readonly Finding[]): readonly (readonly string[])[] {
  const rows = findings.map(({ what, bounds, measured, holds }) => [
    what,
    bounds,
    measured,
    bounds === '' && holds ? '' : holds ? 'holds' : 'BREACH',
  ]);
  return [[name, 'bounds', 'measured', 'verdict'], ...rows];
}
