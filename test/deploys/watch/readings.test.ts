import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { createCancelOtherChain } from '../../../deploys/outbox/enqueue.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { createBlockTimeStore } from '../../../deploys/watch/block-time.ts';
import type { ProgramState } from '../../../deploys/watch/change.ts';
import { createReadings } from '../../../deploys/watch/readings.ts';
import type { Latest } from '../../../deploys/watch/watcher.ts';
import { addressOf } from '../../fakes/chain.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { startQueue } from '../outbox/queue.ts';

const [one, two] = [addressOf('one'), addressOf('two')];
const upgradeAuthority = addressOf('authority');
const latest = (...states: [typeof one, ProgramState][]): Latest => ({
  reading: { contextSlot: 100n, programs: new Map(states) },
  checkedAtMs: 1_234,
});

test('a stored reading is there after a restart', () => {
  using folder = temporaryFolder();
  const path = join(folder.path, 'sluice.db');
  const before = opened(path, DEPLOYS_MIGRATIONS);
  createReadings(before, createCancelOtherChain(before)).save(
    latest([one, { status: 'upgradeable', deploySlot: 5n, upgradeAuthority }], [two, { status: 'missing' }]),
  );
  before.close();
  const after = opened(path, DEPLOYS_MIGRATIONS);
  expect(createReadings(after, createCancelOtherChain(after)).deploySlots()).toEqual(new Map([[one, 5n]]));
  expect(after.query('SELECT context_slot, checked_at_ms FROM reading').all()).toEqual([
    { context_slot: 100, checked_at_ms: 1_234 },
  ]);
  after.close();
});

test('a reading replaces the one before whole, also for programs that are no longer watched, or not at all', () => {
  using store = opened(':memory:', DEPLOYS_MIGRATIONS);
  const readings = createReadings(store, createCancelOtherChain(store));
  readings.save(latest([one, { status: 'frozen', deploySlot: 5n }]));
  const bad = latest([one, { status: 'frozen', deploySlot: 6n }], [two, { status: 'unheard-of' } as never]); // the schema must refuse it
  expect(() => readings.save(bad)).toThrow('CHECK');
  expect(readings.deploySlots()).toEqual(new Map([[one, 5n]]));
  readings.save(latest([two, { status: 'frozen', deploySlot: 6n }]));
  expect(readings.deploySlots()).toEqual(new Map([[two, 6n]]));
});

describe('the chain that everything stored is of', () => {
  const [here, there] = ['genesis here', 'genesis there'];
  function start() {
    const store = opened(':memory:', DEPLOYS_MIGRATIONS);
    const [readings, times] = [
      createReadings(store, createCancelOtherChain(store)),
      createBlockTimeStore(store),
    ];
    times.save(5n, 1_700_000_000);
    const first = latest([one, { status: 'frozen', deploySlot: 5n }]);
    const second = latest([two, { status: 'frozen', deploySlot: 6n }]);
    return { store, readings, times, first, second, [Symbol.dispose]: () => store.close() };
  }

  test('is kept while the genesis hash is the same, and when no backend tells it', () => {
    using s = start();
    const kept = [here, here, undefined, here].map((hash) => s.readings.save(s.first, hash));
    expect(kept).toEqual(Array(4).fill('same-chain'));
    expect(s.times.find(5n)).toBe(1_700_000_000);
  });

  test('is left behind with all block times when the genesis hash is another', () => {
    using s = start();
    s.readings.save(s.first, here);
    expect(s.readings.save(s.second, there)).toBe('other-chain');
    expect(s.times.find(5n)).toBeUndefined();
    expect(s.readings.deploySlots()).toEqual(new Map([[two, 6n]]));
    expect(s.readings.save(s.second, there)).toBe('same-chain');
  });

  test('brings what follows from a reading into its transaction, unless it is another one', () => {
    using s = start();
    const added: string[] = [];
    s.readings.save(s.first, here, () => void added.push('first'));
    s.readings.save(s.second, there, () => void added.push('of another chain'));
    expect(added).toEqual(['first']);
    const failing = () => {
      throw new Error('no room for events');
    };
    expect(() => s.readings.save(s.first, there, failing)).toThrow('no room');
    expect(s.readings.deploySlots()).toEqual(new Map([[two, 6n]]));
  });

  test('takes the events along that wait for a block time of it', () => {
    using queue = startQueue();
    const readings = createReadings(queue.store, createCancelOtherChain(queue.store));
    const first = latest([one, { status: 'frozen', deploySlot: 5n }]);
    readings.save(first, here);
    queue.addWebhook('hook');
    queue.upgrade('A', 7, 1_000, false);
    queue.upgrade('B', 6, 1_000);
    readings.save(first, there);
    createBlockTimeStore(queue.store).save(7n, 1_700_000_000);
    while (queue.outbox.release(2_000) === 'more');
    expect(queue.values('SELECT state, last_error, body IS NULL FROM deliveries ORDER BY rowid')).toEqual([
      ['cancelled', 'other_chain', 1],
      ['queued', null, 0],
    ]);
  });
});
