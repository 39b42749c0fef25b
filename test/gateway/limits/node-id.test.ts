import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { claimNodeId } from '../../../gateway/limits/limits.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import type { Config } from '../../../shared/config/config.ts';
import { systemClock } from '../../../shared/clock.ts';
import { createLog } from '../../../shared/log.ts';
import { openStore, type Store } from '../../../shared/store/open.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

let folder: ReturnType<typeof temporaryFolder>;
let ledger: Store;
beforeEach(() => {
  folder = temporaryFolder();
  ledger = opened(join(folder.path, LEDGER_FILE), LEDGER_MIGRATIONS);
});
afterEach(() => {
  ledger.close();
  folder[Symbol.dispose]();
});

/** The claim of one of several processes of a data directory. */
function take(index: number, nowMs = 1_000) {
  const storage = { dataDir: folder.path, redisUrl: undefined };
  const config = { gateway: { processes: 2 }, storage } as Config; // nothing else of it is looked at
  const clock = { ...systemClock, now: () => nowMs };
  const openLedger = () => openStore(join(folder.path, LEDGER_FILE), LEDGER_MIGRATIONS);
  const rest = { log: createLog('test'), random: () => 0.5, makeId: () => crypto.randomUUID() };
  return claimNodeId(index, { config, isFirst: true, ledger, openLedger, clock, ...rest });
}

function taken(index: number, nowMs = 1_000) {
  const taking = take(index, nowMs);
  if (taking.kind === 'refused') throw new Error(taking.sentence);
  const { node, sharing, lock } = taking;
  return { node, lock, fence: sharing?.fence ?? 0 };
}

describe('a node', () => {
  test('keeps its id over restarts and gets a higher fence at each', () => {
    const fences: number[] = [];
    const ids = new Set<string>();
    for (let start = 0; start < 3; start++) {
      const { node: id, fence, lock } = taken(1);
      ids.add(id);
      fences.push(fence);
      lock.release();
    }
    expect(ids.size).toBe(1);
    expect(fences).toEqual([1_000, 1_001, 1_002]);
  });
  test('is another one in another slot', () => {
    const [one, two] = [taken(1), taken(2)];
    expect(one.node).not.toBe(two.node);
    one.lock.release();
    two.lock.release();
  });
  test('is claimed by no other process while its own lives', () => {
    const { lock } = taken(1);
    const second = take(1);
    expect(second).toMatchObject({
      kind: 'refused',
      sentence: expect.stringContaining('gateway-1 is running'),
    });
    lock.release();
    taken(1).lock.release();
  });
  test('stays ahead of its old fences when the ledger is lost, and when the clock steps back', () => {
    const before = taken(1, 5_000);
    before.lock.release();
    ledger.run('DELETE FROM nodes');
    const lost = taken(1, 6_000);
    lost.lock.release();
    expect(lost.fence).toBeGreaterThan(before.fence);
    const back = taken(1, 100);
    back.lock.release();
    expect(back.fence).toBe(lost.fence + 1);
  });
  test.each([
    ['empty', ''],
    ['not an id', 'gateway\n'],
    ['two ids', `${crypto.randomUUID()}\n${crypto.randomUUID()}\n`],
  ])('is refused when its file is %s, and the slot is free again', (_, text) => {
    const path = join(folder.path, 'gateway-1.node');
    writeFileSync(path, text);
    expect(take(1)).toMatchObject({ kind: 'refused', sentence: expect.stringContaining(path) });
    expect(readFileSync(path, 'utf8')).toBe(text);
    rmSync(path);
    taken(1).lock.release();
  });
  test('is refused when the ledger cannot be written', () => {
    ledger.run('PRAGMA query_only = 1');
    expect(take(1).kind).toBe('refused');
    ledger.run('PRAGMA query_only = 0');
    taken(1).lock.release();
  });
});
