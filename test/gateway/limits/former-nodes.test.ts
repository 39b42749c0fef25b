import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { createLeases } from '../../../gateway/limits/leases.ts';
import { createJournal, spentBy, spentElsewhere } from '../../../gateway/limits/journal.ts';
import { createLeaseSync } from '../../../gateway/limits/lease-sync.ts';
import type { LeaseStore } from '../../../gateway/limits/messages.ts';
import { createScanPermits } from '../../../gateway/limits/scans.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
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
  expect(spentBy(ledger, 'own')).toEqual([{ accountId: 1, node: 'own', charged: 7, refunded: 0 }]);
  expect(spentBy(ledger, null).map(({ node }) => node)).toEqual(['gateway', 'gone', 'own', 'gateway']);
});

test('what dead nodes spent is reported below every fence, until the store has taken all of it', async () => {
  const { clock, advance, sleeping } = createVirtualClock();
  const sent: unknown[] = [];
  let isOut = true;
  const store: LeaseStore = {
    async sync(sender, messages) {
      sent.push([sender, messages]);
      return messages.map(() => (isOut ? undefined : {}));
    },
    close: async () => undefined,
  };
  const journal = createJournal(ledger, 'own', setImmediate);
  const accounts = createLeases({ ...journal, revision: () => 1, share: 1 });
  const parts = { accounts, scans: createScanPermits(), store, journal, clock };
  const sync = createLeaseSync({ ...parts, node: 'own', fence: 1 });
  const { signal } = new AbortController();
  const reporting = sync.resync('gone', spentBy(ledger, 'gone'), signal);
  while (sleeping() === 0) await new Promise(setImmediate);
  isOut = false;
  advance(1_000);
  await reporting;
  const credits = { charged: 4, refunded: 1, total: 0, held: 0, wanted: 0, needed: 0 };
  const report = [{ node: 'gone', fence: 0, seq: 0 }, [{ accountId: 1, revision: -1, credits }]];
  expect(sent).toEqual([report, report]);
});
