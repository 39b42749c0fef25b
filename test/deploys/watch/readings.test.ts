import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createRecord } from '../../../deploys/outbox/record.ts';
import { createBlockTimeStore } from '../../../deploys/watch/block-time.ts';
import type { Deploy, ProgramState } from '../../../deploys/watch/change.ts';
import { createHistory, createProgramList, createReadings } from '../../../deploys/watch/readings.ts';
import { addressOf } from '../../fakes/chain.ts';
import { explained } from '../explained.ts';
import { startQueue } from '../outbox/queue.ts';

const [one, two] = [addressOf('one'), addressOf('two')];
const [first, second] = [addressOf('authority'), addressOf('another')];
const [here, there] = ['genesis here', 'genesis there'];
let queue: ReturnType<typeof startQueue>;
beforeEach(() => (queue = startQueue()));
afterEach(() => queue[Symbol.dispose]());

type States = readonly [typeof one, ProgramState][];
const MISSING: ProgramState = { status: 'missing' };
const UNHEARD = { status: 'unheard-of' } as never; // the schema must refuse it
const frozen = (deploySlot: bigint): ProgramState => ({ status: 'frozen', deploySlot });
const deployed = (deploySlot: bigint, upgradeAuthority = first): ProgramState => ({
  status: 'upgradeable',
  deploySlot,
  upgradeAuthority,
});
const readings = () => createReadings(queue.store);
/** Records a reading of these programs as the watcher does. */
function read(states: States, genesis?: string, { atMs = 1_234, deploys = [] as readonly Deploy[] } = {}) {
  const latest = { reading: { contextSlot: 100n, programs: new Map(states) }, checkedAtMs: atMs };
  return createRecord(queue.store, queue.enqueue)(latest, deploys, genesis, atMs);
}

test('a reading replaces the one before whole, also for programs that are no longer watched, or not at all', () => {
  read([[one, frozen(5n)]]);
  const bad: States = [
    [one, frozen(6n)],
    [two, UNHEARD],
  ];
  expect(() => read(bad)).toThrow('CHECK');
  expect(readings().deploySlots()).toEqual(new Map([[one, 5n]]));
  read([[two, frozen(6n)]]);
  expect(readings().deploySlots()).toEqual(new Map([[two, 6n]]));
});

describe('the chain that everything stored is of', () => {
  beforeEach(() => queue.times.save(5n, 1_700_000_000));

  test('is kept while the genesis hash is the same, and when no backend tells it', () => {
    const kept = [here, here, undefined, here].map((hash) => read([[one, frozen(5n)]], hash));
    expect(kept).toEqual(Array(4).fill('same-chain'));
    expect(queue.times.find(5n)).toBe(1_700_000_000);
  });

  test('is left behind with all block times when the genesis hash is another, in one transaction', () => {
    read([[one, frozen(5n)]], here);
    expect(() => read([[two, UNHEARD]], there)).toThrow('CHECK');
    expect(queue.times.find(5n)).toBe(1_700_000_000);
    expect(read([[two, frozen(6n)]], there)).toBe('other-chain');
    expect(queue.times.find(5n)).toBeUndefined();
    expect(readings().deploySlots()).toEqual(new Map([[two, 6n]]));
    expect(read([[two, frozen(6n)]], there)).toBe('same-chain');
  });

  test('has the events of a reading and their deliveries in its transaction, and none of another chain', () => {
    const deploys = [{ program: two, previousSlot: 5n, deploySlot: 6n }];
    const counts = () =>
      queue.values('SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM deliveries)')[0];
    for (const id of ['one', 'two']) queue.addWebhook(id);
    read([[one, frozen(5n)]], here);
    expect([read([[two, frozen(6n)]], there, { deploys }), counts()]).toEqual(['other-chain', [0, 0]]);
    queue.store.run(`CREATE TRIGGER full BEFORE INSERT ON deliveries WHEN new.webhook_id = 'two'
      BEGIN SELECT RAISE(ABORT, 'no room'); END`);
    expect(() => read([[one, frozen(7n)]], there, { deploys })).toThrow('no room');
    expect([readings().deploySlots(), counts()]).toEqual([new Map([[two, 6n]]), [0, 0]]);
    queue.store.run('DROP TRIGGER full');
    expect([read([[one, frozen(7n)]], there, { deploys }), counts()]).toEqual(['same-chain', [1, 2]]);
  });

  test('takes the events along that wait for a block time of it', () => {
    read([[one, frozen(5n)]], here);
    queue.addWebhook('hook');
    queue.upgrade('A', 7, 1_000, false);
    queue.upgrade('B', 6, 1_000);
    read([[one, frozen(5n)]], there);
    queue.times.save(7n, 1_700_000_000);
    while (queue.outbox.release(2_000) === 'more');
    expect(queue.values('SELECT state, last_error, body IS NULL FROM deliveries ORDER BY rowid')).toEqual([
      ['cancelled', 'other_chain', 1],
      ['queued', null, 0],
    ]);
  });
});

describe('a deploy is in the history', () => {
  const history = () => createHistory(queue.store);
  /** Readings of program one a second apart; gives what its history has then. */
  function seen(states: readonly (ProgramState | undefined)[], genesis: readonly string[] = []) {
    for (const [i, state] of states.entries())
      read(state === undefined ? [] : [[one, state]], genesis[i], { atMs: 1_000 * (i + 1) });
    const page = history().of(one, { limit: 100 });
    return page.map(({ deploySlot, previousSlot, detectedAtMs }) => [deploySlot, previousSlot, detectedAtMs]);
  }

  test.each<[string, (ProgramState | undefined)[], number[][]]>([
    ['once, with the slot before it', [5n, 5n, 9n].map((slot) => deployed(slot)), [[9, 5, 3_000]]],
    [
      'but not when its slot falls or comes back',
      [5n, 0n, 5n, 9n].map((slot) => deployed(slot)),
      [[9, 5, 4_000]],
    ],
    [
      'and stays while its program is closed or not watched',
      [deployed(5n), MISSING, undefined, deployed(5n)],
      [],
    ],
  ])('%s', (_, states, further) => {
    expect(seen(states)).toEqual([...further, [5, null, 1_000]]);
    expect(history().of(two, { limit: 9 })).toEqual([]);
  });

  test('of the chain that is watched: another one begins anew', () => {
    expect(seen([deployed(5n), deployed(3n)], [here, there])).toEqual([[3, null, 2_000]]);
  });

  test('with the authority of then, and its time as soon as that is known', () => {
    seen([deployed(5n), deployed(6n, second), frozen(7n)]);
    expect(
      history()
        .of(one, { limit: 5 })
        .map(({ authority }) => authority),
    ).toEqual([null, second, first]);
    expect(history().of(one, { limit: 1 })[0]?.deployedAtMs).toBeNull();
    createBlockTimeStore(queue.store).save(7n, 1_700_000_000);
    expect(history().of(one, { limit: 1 })[0]?.deployedAtMs).toBe(1_700_000_000_000);
  });

  test('a page at a time by its index, the newest first, and the last 500 of a program are kept', () => {
    read([[two, deployed(1n)]]);
    for (let slot = 1n; slot <= 503n; slot++) read([[one, deployed(slot)]]);
    const page = history().of(one, { limit: 1_000 });
    expect([page.length, page[0]?.deploySlot]).toEqual([100, 503]);
    const next = history().of(one, { before: page.at(-1)?.id ?? 0, limit: 2 });
    expect(next.map(({ deploySlot }) => deploySlot)).toEqual([403, 402]);
    const kept = 'SELECT program_id, count(*), min(deploy_slot) FROM program_deploys GROUP BY 1 ORDER BY 2';
    expect(queue.values(kept)).toEqual([
      [two, 1, 1],
      [one, 500, 4],
    ]);
    expect(explained(queue.store, createHistory)[0]?.steps).toEqual([
      'SEARCH program_deploys USING INDEX program_deploys_of_program (program_id=? AND id<?)',
      'SEARCH block_times USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN',
    ]);
  });
});

describe('the list of watched programs', () => {
  const labels = { one: 'Raydium AMM', two: 'Orca', three: 'Raydium CLMM', four: 'Serum' };
  const watched = Object.entries(labels).map(([name, label]) => ({ address: addressOf(name), label }));
  test('has their status, slot, age and authority, in its order', () => {
    read([
      [one, deployed(5n)],
      [two, frozen(6n)],
      [addressOf('three'), MISSING],
    ]);
    queue.times.save(5n, 1_700_000_000);
    const none = { deploySlot: undefined, deployedAtMs: undefined, ageMs: undefined, authority: undefined };
    const times = { deployedAtMs: 1_700_000_000_000, ageMs: 60_000 };
    const states = [
      { status: 'upgradeable', deploySlot: 5, ...times, authority: first },
      { ...none, status: 'frozen', deploySlot: 6 },
      { ...none, status: 'missing' },
      { ...none, status: undefined },
    ] as const;
    const expected = watched.map(({ address, label }, i) => ({ programId: address, label, ...states[i] }));
    expect(createProgramList(queue.store, watched)({}, 1_700_000_060_000)).toEqual(expected as never); // as many states as programs
  });
});
