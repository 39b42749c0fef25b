/** How a process of the crew ended, as far as the wait before the next one depends on it. */
export type Life = Readonly<{ listened: boolean; livedMs: number }>;

/** What is remembered of a seat between two processes: deaths in a row that came soon, and those before it listened. */
export type DeathRecord = Readonly<{ soon: number; stillborn: number }>;

export const CLEAN: DeathRecord = { soon: 0, stillborn: 0 };

/** A process that has listened for this long has shown that it can: its death is a new story. */
const PROVEN_MS = 10_000;

const WAIT_MS = 100;
const WAIT_MS_MAX = 10_000;

/** After so many deaths in a row before listening, there is no reason to believe in the next. */
export const STILLBORN_MAX = 5;

/** The record after a death. */
export function afterDeath({ soon, stillborn }: DeathRecord, { listened, livedMs }: Life): DeathRecord {
  return { soon: listened && livedMs >= PROVEN_MS ? 1 : soon + 1, stillborn: listened ? 0 : stillborn + 1 };
}

/** How long a seat stays empty after its latest death: not at all after the first, then twice as long each time. */
export function waitMsAfter({ soon }: DeathRecord): number {
  return soon <= 1 ? 0 : Math.min(WAIT_MS_MAX, WAIT_MS * 2 ** (soon - 2));
}
