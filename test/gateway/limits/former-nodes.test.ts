import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { CreditAsk, LeaseStore, Speaker } from '../../../gateway/lease/messages.ts';
import { formerNodes, speakFor, spentBy, spentElsewhere } from '../../../gateway/limits/former-nodes.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/limits/ledger.ts';
import type { Store } from '../../../shared/store/open.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { createVirtualClock } from '../virtual-clock.ts';

let folder: ReturnType<typeof temporaryFolder>;
let ledger: Store;
beforeEach(() => {
  folder = temporaryFolder();
  ledger = opened(join(folder.path, LEDGER_FILE), LEDGER_MIGRATIONS);
  const spend = ledger.prepare<null, [number, string, number, number]>(
    'INSERT INTO spent VALUES (?, ?, ?, ?)',
  );
  spend.run(1, 'gateway', 30, 10);
  spend.run(2, 'gateway', 5, 0);
  spend.run(1, 'own', 7, 0);
  spend.run(1, 'gone', 4, 1);
});
afterEach(() => {
  ledger.close();
  folder[Symbol.dispose]();
});

test('what others spent is known by account, without what this node did', () => {
  expect(spentElsewhere(ledger, 'own')).toEqual(
    new Map([
      [1, 23],
      [2, 5],
    ]),
  );
  expect(formerNodes(ledger, 'own').toSorted()).toEqual(['gateway', 'gone']);
  expect(spentBy(ledger, 'own')).toEqual([{ accountId: 1, charged: 7, refunded: 0 }]);
});

test('the centre is told what former nodes spent, below every fence, until it has taken all of it', async () => {
  const { clock, advance, sleeping } = createVirtualClock();
  const told: [Speaker, readonly CreditAsk[]][] = [];
  let isOut = true;
  const store: Pick<LeaseStore, 'credits'> = {
    async credits(speaker, asks) {
      told.push([speaker, asks]);
      const grant = {
        allowance: 0,
        available: 0,
        heldByOthers: 0,
        heldByDead: 0,
        recalled: false,
        learning: false,
      };
      return asks.map(() => (isOut ? { kind: 'failed' } : { kind: 'granted', grant }));
    },
  };
  const signal = new AbortController().signal;
  // Of the store only this is asked.
  const speaking = speakFor(['gone'], { ledger, store: store as LeaseStore, clock, signal });
  while (sleeping() === 0) await new Promise(setImmediate);
  isOut = false;
  advance(1_000);
  await speaking;
  const ask = {
    accountId: 1,
    charged: 4,
    refunded: 1,
    revision: -1,
    total: 0,
    held: 0,
    wanted: 0,
    needed: 0,
  };
  const speaker = { node: 'gone', fence: 0, seq: 0 };
  expect<unknown>(told).toEqual([
    [speaker, [ask]],
    [speaker, [ask]],
  ]);
});
