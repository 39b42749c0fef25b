import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { claimNodeId } from '../../../gateway/cluster/node.ts';
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
function claim(index: number, nowMs = 1_000) {
  const storage = { dataDir: folder.path, redisUrl: undefined };
  const config = { gateway: { processes: 2 }, storage } as Config; // nothing else of it is read
  const clock = { ...systemClock, now: () => nowMs };
  const openLedger = () => openStore(join(folder.path, LEDGER_FILE), LEDGER_MIGRATIONS);
  const rest = { log: createLog('test'), random: () => 0.5, makeId: () => crypto.randomUUID() };
  return claimNodeId(index, { config, isFirst: true, ledger, openLedger, clock, ...rest });
}

/** The node and the fence that a process gets, which then ends. */
function claimed(index: number, nowMs?: number) {
  const claiming = claim(index, nowMs);
  if (claiming.kind === 'refused') throw new Error(claiming.sentence);
  claiming.lock.release();
  return [claiming.node, claiming.sharing?.fence];
}

test('a node keeps its id over restarts with a higher fence each, also when the ledger is lost or the clock steps back', () => {
  const [node] = claimed(1);
  expect(claimed(1)).toEqual([node, 1_001]);
  ledger.run('DELETE FROM nodes');
  expect(claimed(1, 6_000)).toEqual([node, 6_000]);
  expect(claimed(1, 100)).toEqual([node, 6_001]);
  expect(claimed(2)[0]).not.toBe(node);
});

test('a node is claimed by no other process while its own lives', () => {
  const first = claim(1);
  const sentence = expect.stringContaining('gateway-1 is already running');
  expect(claim(1)).toMatchObject({ kind: 'refused', sentence });
  if (first.kind === 'claimed') first.lock.release();
  claimed(1);
});

test.each([
  ['empty', ''],
  ['two ids', `${crypto.randomUUID()}\n${crypto.randomUUID()}\n`],
])('a node is refused when its file is %s, and its name is free again', (_, text) => {
  const path = join(folder.path, 'gateway-1.node');
  writeFileSync(path, text);
  expect(claim(1)).toMatchObject({ kind: 'refused', sentence: expect.stringContaining(path) });
  expect(readFileSync(path, 'utf8')).toBe(text);
  rmSync(path);
  claimed(1);
});

test('a node is refused when the ledger cannot be written', () => {
  ledger.run('PRAGMA query_only = 1');
  expect(claim(1).kind).toBe('refused');
});
