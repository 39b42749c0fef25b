import { describe, expect, test } from 'bun:test';
import {
  createTakeDrained,
  type Drained,
  type HourCell,
  openRedisCells,
} from '../../../deploys/usage/redis-cells.ts';
import { findMismatches } from '../../../deploys/usage/maintenance.ts';
import { systemClock } from '../../../shared/clock.ts';
import {
  CELL_COLUMNS,
  CELL_COUNTER_NAMES,
  cellField,
  type CellKey,
  cellsKey,
  CHANGED_CELLS,
  NO_HOUR,
  cellKeyText,
  spentKey,
} from '../../../shared/ledger/cells.ts';
import { waited } from '../../started/host.ts';
import { startRedis } from '../../started/redis.ts';
import { cellOf, createTakeCells, startLedger } from './ledger.ts';

test('L18 a cell that comes twice, late or out of order changes nothing, and one that is newer replaces it', () => {
  using books = startLedger();
  const take = createTakeCells(books.ledger);
  const all: HourCell[] = Array.from({ length: 20 }, (_, i) =>
    cellOf(Object.fromEntries(CELL_COUNTER_NAMES.map((name, n) => [name, i * (n + 1)]))),
  );
  for (const i of [3, 1, 19, 19, 0, 7, 18]) take([all[i] ?? cellOf(), all[0] ?? cellOf()]);
  expect(books.values(`SELECT ${CELL_COLUMNS.join()} FROM usage_hours`)).toEqual([
    [0, 1, 'k1', 'getSlot', 'n1', ...CELL_COUNTER_NAMES.map((_name, n) => 19 * (n + 1))],
  ]);
});

test('cells are taken all or none', () => {
  using books = startLedger();
  books.ledger.run(
    "CREATE TRIGGER broken BEFORE INSERT ON usage_hours WHEN new.hour = 1 BEGIN SELECT RAISE(ABORT, 'no'); END",
  );
  expect(() => createTakeCells(books.ledger)([cellOf(), cellOf({ hour: 1 })])).toThrow('no');
  expect(books.values('SELECT * FROM usage_hours')).toEqual([]);
});

test('a journal that comes with its cells agrees with them, whatever comes twice or late', async () => {
  using books = startLedger();
  const take = createTakeDrained(books.ledger);
  const at = (charged: number, refunded: number) => ({
    cells: [cellOf({ charged, returned: refunded })],
    spent: [{ accountId: 1, node: 'n1', charged, refunded }],
  });
  for (const drained of [at(5, 0), at(9, 4), at(5, 0), at(9, 4), at(7, 1)]) take(drained);
  expect(books.values('SELECT * FROM spent')).toEqual([[1, 'n1', 9, 4]]);
  expect(await findMismatches(books.ledger, systemClock, new AbortController().signal)).toEqual([]);
});

/** What gateways on other hosts counted is taken from Redis once, and forgotten there (limits.md 4). */
const place = (accountId: number, method = 'getSlot', hour = 500_000): CellKey => ({
  accountId,
  hour,
  keyId: 'k',
  method,
  node: 'n',
});
const counted = (calls: number) => CELL_COUNTER_NAMES.map((name) => (name === 'calls' ? calls : 0)).join(',');

type Cli = (...args: readonly string[]) => Promise<string>;

async function tell(cli: Cli, at: CellKey, calls: number): Promise<void> {
  await cli('hset', spentKey(at.accountId), at.node, `${calls},0`);
  if (at.hour !== NO_HOUR) await cli('hset', cellsKey(at.accountId, at.hour), cellField(at), counted(calls));
  await cli('zadd', CHANGED_CELLS, String(calls), cellKeyText(at));
}

function taking(url: string, take: (drained: Drained) => void, isOwn = () => true) {
  const source = openRedisCells({
    url,
    clock: systemClock,
    random: () => 0.5,
    isOwn,
    onWarning: () => undefined,
  });
  if (source === undefined) throw new Error('the address is one');
  const over = new AbortController();
  const running = source.run(take, over.signal);
  return {
    async [Symbol.asyncDispose]() {
      over.abort();
      await running;
    },
  };
}

const callsOf = ({ cells }: Drained) =>
  cells.map(({ accountId, method, calls }) => [accountId, method, calls]);

describe('cells of other hosts', () => {
  test('are left to the deploys whose accounts they are of (E42)', async () => {
    await using redis = await startRedis();
    await tell(redis.cli, place(1), 1);
    let [asked, isOwn] = [0, false];
    const all: Drained[] = [];
    await using _ = taking(
      redis.url,
      (drained) => void all.push(drained),
      () => {
        asked++;
        return isOwn;
      },
    );
    await waited(() => asked > 1);
    expect([all, await redis.cli('zcard', CHANGED_CELLS)]).toEqual([[], '1']);
    isOwn = true;
    await waited(() => all.length > 0);
    expect(all.flatMap(callsOf)).toEqual([[1, 'getSlot', 1]]);
  }, 15_000);

  test('of many accounts are taken and forgotten in commands that do not grow with them', async () => {
    await using redis = await startRedis();
    const accounts = Array.from({ length: 300 }, (_, id) => id + 1);
    // One command of redis-cli for each would take longer than the test.
    const lua = `for i = 1, 300 do
      redis.call('HSET', '{sluice:' .. i .. '}:spent', 'n', i .. ',0')
      redis.call('HSET', '{sluice:' .. i .. '}:usage:500000', ARGV[1], i .. ',0')
      redis.call('ZADD', '${CHANGED_CELLS}', i, '[' .. i .. ',500000,"k","getSlot","n"]')
    end`;
    await redis.cli('eval', lua, '0', cellField(place(1)));
    await tell(redis.cli, place(8, 'getBlock'), 1_000);
    await tell(redis.cli, place(400, '', NO_HOUR), 44);
    await redis.cli('config', 'resetstat');
    const all: Drained[] = [];
    await using _ = taking(redis.url, (drained) => void all.push(drained));
    await waited(async () => (await redis.cli('dbsize')) === '0');
    const [first, ...more] = all;
    expect(more).toEqual([]);
    expect(new Set(first?.cells.map(({ accountId }) => accountId))).toEqual(new Set(accounts));
    expect(first?.cells.filter(({ accountId }) => accountId === 8).map(({ calls }) => calls)).toEqual([
      8, 1_000,
    ]);
    expect(first?.spent).toContainEqual({ accountId: 400, node: 'n', charged: 44, refunded: 0 });
    const stats = await redis.cli('info', 'commandstats');
    const commands = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)];
    expect(commands.reduce((sum, [, calls]) => sum + Number(calls), 0)).toBeWithin(4, 12);
  }, 15_000);

  test('that could not be written come again, as do those that are told again while they are taken', async () => {
    await using redis = await startRedis();
    await tell(redis.cli, place(1), 1);
    await tell(redis.cli, place(2), 2);
    const all: Drained[] = [];
    await using _ = taking(redis.url, (drained) => {
      all.push(drained);
      if (all.length === 1) throw new Error('the ledger is busy');
      if (all.length > 2) return;
      const again = [
        ['hset', cellsKey(1, 500_000), cellField(place(1)), counted(9)],
        ['zadd', CHANGED_CELLS, '9', cellKeyText(place(1))],
      ];
      // It must be there before the first one is forgotten, and `take` does not wait.
      for (const args of again) Bun.spawnSync(['redis-cli', '-p', String(redis.port), ...args]);
    });
    await waited(async () => (await redis.cli('dbsize')) === '0');
    const both = [
      [1, 'getSlot', 1],
      [2, 'getSlot', 2],
    ];
    expect(all.map(callsOf)).toEqual([both, both, [[1, 'getSlot', 9]]]);
  }, 15_000);
});
