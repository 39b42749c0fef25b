import { join } from 'node:path';
import { createTakeDrained, type HourCell } from '../../../deploys/usage/redis-cells.ts';
import type { Store } from '../../../shared/store/open.ts';
import { CELL_COUNTER_NAMES, USAGE_COUNTERS } from '../../../shared/ledger/cells.ts';
import { USAGE_MIGRATIONS } from '../../../shared/ledger/schema.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

const COLUMNS = Object.values(USAGE_COUNTERS);

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

type Counts = Record<(typeof CELL_COUNTER_NAMES)[number], number>;
const ZERO = Object.fromEntries(CELL_COUNTER_NAMES.map((name) => [name, 0])) as Counts; // each is there
const PLACE = { hour: 0, accountId: 1, keyId: 'k1', method: 'getSlot', node: 'n1' };

/** A cell of account 1 with nothing counted, except for what is given. */
export const emptyCell = (given: Partial<HourCell> = {}): HourCell => ({ ...PLACE, ...ZERO, ...given });

/** A cell of account 1 with one call of one credit, except for what is given. */
export const cellOf = (given: Partial<HourCell> = {}): HourCell =>
  emptyCell({ calls: 1, credits: 1, bytesOut: 10, ...given });

/** Writes cells into a ledger as they are. */
export const createTakeCells = (ledger: Store) => {
  const take = createTakeDrained(ledger);
  return (cells: readonly HourCell[]) => take({ cells, spent: [] });
};

/** A ledger on a disk, with as many connections to it as are asked for. */
export function startLedger() {
  const folder = temporaryFolder();
  const path = join(folder.path, 'ledger.db');
  const ledger = opened(path, USAGE_MIGRATIONS);
  const connections = [ledger];
  return {
    path,
    ledger,
    connect() {
      const other = opened(path, USAGE_MIGRATIONS);
      connections.push(other);
      return other;
    },
    values: (sql: string) => ledger.query(sql).values(),
    /** Everything that was ever counted, wherever it stands. */
    total: () =>
      ledger
        .query(
          `SELECT ${COLUMNS.map((column) => `sum(${column}) AS ${column}`).join()} FROM (${[
            'hours',
            'days',
            'months',
          ]
            .map((table) => `SELECT ${COLUMNS.join()} FROM usage_${table}`)
            .join(' UNION ALL ')})`,
        )
        .get() as Record<string, number>, // of the columns above
    [Symbol.dispose]() {
      for (const connection of connections) connection.close();
      folder[Symbol.dispose]();
    },
  };
}
