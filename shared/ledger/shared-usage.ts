/** How long usage stays in Redis for a deploys that does not take it, in milliseconds. */
export const SHARED_USAGE_LIFE_MS = 72 * 3_600_000;

/** The hash of an account's cells in one hour: fields by `cellField`, values by `countersText`. */
export function cellsKey(accountId: number, hour: number): string {
  return `{sluice:${accountId}}:usage:${hour}`;
}

/** The hash of what each node has charged to an account and given back: `CHARGED,REFUNDED`. */
export function spentKey(accountId: number): string {
  return `{sluice:${accountId}}:spent`;
}

/** Cells that deploys has not taken yet: a sorted set of `placeText`s by a number that grows with every message. */
export const CHANGED_CELLS = '{sluice:usage}:changed';
/** That number. */
export const CELLS_CLOCK = '{sluice:usage}:clock';
/** Another one whenever Redis has begun with nothing. */
export const USAGE_LIFE = '{sluice:usage}:life';

/** Where a cell belongs. `hour` -1, with neither key nor method: what the node spent, and no cell. */
export type CellPlace = Readonly<{
  accountId: number;
  hour: number;
  keyId: string;
  method: string;
  node: string;
}>;

/** The hour of places that are no cells. */
export const NO_HOUR = -1;

export function placeText({ accountId, hour, keyId, method, node }: CellPlace): string {
  return JSON.stringify([accountId, hour, keyId, method, node]);
}

/** Reads such a text; `undefined` when it is none. */
export function placeFrom(text: string): CellPlace | undefined {
  try {
    const [accountId, hour, keyId, method, node]: unknown[] = JSON.parse(text);
    if (typeof accountId !== 'number' || typeof hour !== 'number') return undefined;
    return { accountId, hour, keyId: String(keyId), method: String(method), node: String(node) };
  } catch {
    return undefined;
  }
}

export function cellField({ keyId, method, node }: CellPlace): string {
  return JSON.stringify([keyId, method, node]);
}

/** Counters as text: whole numbers after commas, exact up to 2^53. */
export function countersText(counters: readonly number[]): string {
  return counters.join(',');
}

/** Reads such a text; one that was not sent is 0. */
export function counterAt(text: string, at: number): number {
  return Number(text.split(',')[at] ?? 0);
}
