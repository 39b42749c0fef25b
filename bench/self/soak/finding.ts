/** One figure of a scenario and whether it is within its bounds. */
export type Finding = Readonly<{ what: string; bounds: string; measured: string; holds: boolean }>;

/** A figure from `low` to `high`; `digits` are those behind the point. */
export function between(what: string, measured: number, low: number, high: number, digits = 0): Finding {
  const bounds = `${low.toFixed(digits)} - ${high.toFixed(digits)}`;
  return { what, bounds, measured: measured.toFixed(digits), holds: measured >= low && measured <= high };
}

/** A whole figure that can be no other. */
export function exactly(what: string, measured: number, expected: number): Finding {
  return {
    what,
    bounds: expected.toFixed(0),
    measured: measured.toFixed(0),
    holds: measured === expected,
  };
}

/** A figure of at most `high`. */
export function atMost(what: string, measured: number, high: number, digits = 0): Finding {
  return {
    what,
    bounds: `<= ${high.toFixed(digits)}`,
    measured: measured.toFixed(digits),
    holds: measured <= high,
  };
}

/** A figure of at least `low`. */
export function atLeast(what: string, measured: number, low: number, digits = 0): Finding {
  return {
    what,
    bounds: `>= ${low.toFixed(digits)}`,
    measured: measured.toFixed(digits),
    holds: measured >= low,
  };
}

/** A figure that is said and not judged. */
export function said(what: string, measured: string): Finding {
  return { what, bounds: '', measured, holds: true };
}
