import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { createBlockTimeStore } from '../../../deploys/watch/block-time.ts';
import type { ProgramState } from '../../../deploys/watch/change.ts';
import { createHistory, createReadings } from '../../../deploys/watch/readings.ts';
import { addressOf } from '../../fakes/chain.ts';
import { opened } from '../../started/gateway.ts';
import { explained } from '../explained.ts';

const [one, two] = [addressOf('one'), addressOf('two')];
const [first, second] = [addressOf('authority'), addressOf('another')];
let store: ReturnType<typeof opened>;
let history: ReturnType<typeof createHistory>;

beforeEach(() => {
  store = opened(':memory:', DEPLOYS_MIGRATIONS);
  history = createHistory(store);
});
afterEach(() => store.close());

const deployed = (deploySlot: bigint, upgradeAuthority = first): ProgramState => ({
  status: 'upgradeable',
  deploySlot,
  upgradeAuthority,
});
/** A reading of these programs, stored as the watcher stores it. */
function read(checkedAtMs: number, states: readonly [typeof one, ProgramState][], genesis?: string) {
  const reading = { contextSlot: 100n, programs: new Map(states) };
  createReadings(store, () => undefined).save({ reading, checkedAtMs }, genesis);
}
const seen = (program = one) =>
  history
    .of(program, { limit: 100 })
    .map(({ deploySlot, previousSlot, detectedAtMs }) => [deploySlot, previousSlot, detectedAtMs]);

describe('a deploy is in the history', () => {
  test('once, from the first reading on, with the slot before it', () => {
    read(1_000, [[one, deployed(5n)]]);
    read(2_000, [[one, deployed(5n)]]);
    read(3_000, [[one, deployed(9n)]]);
    expect(seen()).toEqual([
      [9, 5, 3_000],
      [5, null, 1_000],
    ]);
    expect(seen(two)).toEqual([]);
  });
  test('but a slot that falls is none, nor one that comes back', () => {
    for (const [i, slot] of [5n, 0n, 5n, 9n].entries()) read(1_000 * (i + 1), [[one, deployed(slot)]]);
    expect(seen()).toEqual([
      [9, 5, 4_000],
      [5, null, 1_000],
    ]);
  });
  test('with the authority of then, and its time as soon as that is known', () => {
    read(1_000, [[one, deployed(5n)]]);
    read(2_000, [[one, deployed(6n, second)]]);
    read(3_000, [[one, { status: 'frozen', deploySlot: 7n }]]);
    expect(history.of(one, { limit: 5 }).map(({ authority }) => authority)).toEqual([null, second, first]);
    expect(history.of(one, { limit: 1 })[0]?.deployedAtMs).toBeNull();
    createBlockTimeStore(store).save(7n, 1_700_000_000);
    expect(history.of(one, { limit: 1 })[0]?.deployedAtMs).toBe(1_700_000_000_000);
  });
  test('and stays when its program is closed or watched no more, and is not seen anew when it comes back', () => {
    read(1_000, [[one, deployed(5n)]]);
    read(2_000, [[one, { status: 'missing' }]]);
    read(3_000, []);
    read(4_000, [[one, deployed(5n)]]);
    expect(seen()).toEqual([[5, null, 1_000]]);
  });
  test('of the chain that is watched: another one begins anew', () => {
    read(1_000, [[one, deployed(5n)]], 'here');
    read(2_000, [[one, deployed(3n)]], 'there');
    expect(seen()).toEqual([[3, null, 2_000]]);
  });
});

test('the history comes in pages, the newest first, and keeps the last 500 of a program', () => {
  read(1, [[two, deployed(1n)]]);
  for (let slot = 1n; slot <= 503n; slot++) read(Number(slot), [[one, deployed(slot)]]);
  const page = history.of(one, { limit: 1_000 });
  expect([page.length, page[0]?.deploySlot]).toEqual([100, 503]);
  const next = history.of(one, { before: page.at(-1)?.id ?? 0, limit: 2 });
  expect(next.map(({ deploySlot }) => deploySlot)).toEqual([403, 402]);
  const count = store.query(
    'SELECT program_id, count(*), min(deploy_slot) FROM program_deploys GROUP BY 1 ORDER BY 2',
  );
  expect(count.values()).toEqual([
    [two, 1, 1],
    [one, 500, 4],
  ]);
});

test('a page is read by its index', () => {
  const [page] = explained(store, createHistory);
  expect(page?.steps).toEqual([
    'SEARCH program_deploys USING INDEX program_deploys_of_program (program_id=? AND id<?)',
    'SEARCH block_times USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN',
  ]);
});
