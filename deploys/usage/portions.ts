import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import type { Hours } from './calendar.ts';

/** What to sum: SQL for the columns of a row, and for what makes a group of cells one row. */
type Summing = Readonly<{ select: string; group: string }>;

/** Sums of the cells in these hours, in parts: a group may come in several. Ends early when `signal` aborts. */
type ReadPortions<Row> = (hours: Hours, signal: AbortSignal) => AsyncGenerator<readonly Row[]>;

/** Cells summed at once: one or two milliseconds, in which everything else here waits. */
const PORTION = 2_000;
const PAUSE_MS = 1;

type Place = Readonly<{ hour: number; accountId: number; keyId: string; method: string; node: string }>;
type To = Readonly<{
  toHour: number;
  toAccountId: number;
  toKeyId: string;
  toMethod: string;
  toNode: string;
}>;

const PLACE = '(hour, account_id, key_id, method, node)';

/** Reads the hours of all accounts in portions, by their primary key, with a pause between them. Throws when it cannot. */
export function createReadPortions<Row>(
  ledger: Store,
  clock: Clock,
  { select, group }: Summing,
): ReadPortions<Row> {
  const endOf = ledger.prepare<Place, Place & { before: number }>(`
    SELECT hour, account_id AS accountId, key_id AS keyId, method, node FROM usage_hours
    WHERE ${PLACE} > ($hour, $accountId, $keyId, $method, $node) AND hour < $before
    ORDER BY hour, account_id, key_id, method, node LIMIT 1 OFFSET ${PORTION - 1}`);
  const sumsOf = ledger.prepare<Row, Place & To>(`
    SELECT ${select} FROM usage_hours WHERE ${PLACE} > ($hour, $accountId, $keyId, $method, $node)
      AND ${PLACE} <= ($toHour, $toAccountId, $toKeyId, $toMethod, $toNode) GROUP BY ${group}`);

  return async function* readPortions({ fromHour, toHour }, signal) {
    let place = lastOf(fromHour - 1);
    while (!signal.aborted) {
      const end = endOf.get({ ...place, before: toHour });
      const to = end ?? lastOf(toHour - 1);
      yield sumsOf.all({
        ...place,
        toHour: to.hour,
        toAccountId: to.accountId,
        toKeyId: to.keyId,
        toMethod: to.method,
        toNode: to.node,
      });
      if (end === null) return;
      place = end;
      await clock.sleep(PAUSE_MS, signal);
    }
  };
}

/** Behind every cell of an hour. */
function lastOf(hour: number): Place {
  return { hour, accountId: Number.MAX_SAFE_INTEGER, keyId: '\u{10FFFF}', method: '', node: '' };
}
