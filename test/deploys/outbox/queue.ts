import type { ClaimedDelivery } from '../../../deploys/outbox/claim.ts';
import { createEnqueue } from '../../../deploys/outbox/enqueue.ts';
import { createAccountDeliveries } from '../../../deploys/outbox/list.ts';
import { createOutbox } from '../../../deploys/outbox/outbox.ts';
import { type Sent, verdictOf } from '../../../deploys/outbox/outcome.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { createBlockTimeStore } from '../../../deploys/watch/block-time.ts';
import { createCancelPending } from '../../../deploys/webhooks/change.ts';
import type { Store } from '../../../shared/store/open.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';
import { opened, random } from '../../started/gateway.ts';

export const BLOCK_TIME = START_MS / 1_000 - 13;

/** The queue with webhooks put in by hand, as whoever manages them would. */
export function startQueue(path = ':memory:') {
  const store = opened(path, DEPLOYS_MIGRATIONS);
  return { ...queueOver(store), [Symbol.dispose]: () => store.close() };
}

/** The same with these webhooks. */
export function queueWith(...ids: readonly string[]) {
  const queue = startQueue();
  for (const id of ids) queue.addWebhook(id);
  return queue;
}

export function queueOver(store: Store) {
  const outbox = createOutbox(store, random);
  const enqueue = createEnqueue(store, (program) => `label of ${program.slice(0, 4)}`, random);
  const times = createBlockTimeStore(store);
  const withdraw = createCancelPending(store);
  const deliveries = createAccountDeliveries(store);
  const accountOf = store.prepare<{ id: number }, [string]>(
    'SELECT account_id AS id FROM deliveries WHERE id = ?',
  );
  const find = (id: string) => deliveries.find(accountOf.get(id)?.id ?? 0, id);

  function addWebhook(
    id: string,
    more: { host?: string; programs?: readonly string[]; account?: number } = {},
  ) {
    const host = more.host ?? `${id.replaceAll(' ', '-')}.example.com`;
    const programs = more.programs === undefined ? null : JSON.stringify(more.programs);
    store.run(
      `INSERT INTO webhooks
         (id, account_id, url, host, programs_json, secret_ct, secret_kid, created_at_ms, updated_at_ms)
       VALUES (?, ?, ?, ?, ?, x'00', 1, 0, 0)`,
      [id, more.account ?? 1, `https://${host}/hook`, host, programs],
    );
  }

  /** An upgrade of `name` in `slot`, as a reading that finds it stores it; its block time is known unless told otherwise. */
  function upgrade(name: string, slot: number, nowMs = START_MS, isTimed = true) {
    if (isTimed) times.save(BigInt(slot), BLOCK_TIME);
    const deploy = { program: addressOf(name), previousSlot: BigInt(slot - 1), deploySlot: BigInt(slot) };
    store.transaction(() => enqueue.deploys([deploy], nowMs)).immediate();
    while (outbox.release(nowMs) === 'more');
  }

  const pause = store.transaction((id: string, nowMs: number) => {
    store.run('UPDATE webhooks SET paused_at_ms = ? WHERE id = ?', [nowMs, id]);
    withdraw(id, 'skipped', nowMs);
  });
  const drop = store.transaction((id: string, nowMs: number) => {
    store.run('UPDATE webhooks SET deleted_at_ms = ? WHERE id = ?', [nowMs, id]);
    withdraw(id, 'cancelled', nowMs);
  });

  /** Claims portion after portion while there is something due with a place for it. */
  function claimAll(nowMs: number, underWay: readonly ClaimedDelivery[]): readonly ClaimedDelivery[] {
    const claims: ClaimedDelivery[] = [];
    for (;;) {
      const portion = outbox.claim(nowMs, [...underWay, ...claims]);
      if (portion.length === 0) return claims;
      claims.push(...portion);
    }
  }

  return {
    store,
    outbox,
    claimAll,
    enqueue,
    times,
    find,
    attemptsOf: (id: string) => find(id)?.tries ?? [],
    addWebhook,
    /** All webhooks that there are succeed now, and may have several places for a minute. */
    trust: (nowMs = START_MS) =>
      store.run('UPDATE webhooks SET last_success_at_ms = ?, failing_since_ms = NULL', [nowMs]),
    upgrade,
    /** Makes an attempt by hand due at once, where there may be one. */
    resend: (id: string, nowMs: number) =>
      store.run(
        "UPDATE deliveries SET resend_at_ms = ? WHERE id = ? AND lease_token IS NULL AND state != 'queued'",
        [nowMs, id],
      ),
    pause: (id: string, nowMs = START_MS) => pause.immediate(id, nowMs),
    drop: (id: string, nowMs = START_MS) => drop.immediate(id, nowMs),
    resume: (id: string) => store.run('UPDATE webhooks SET paused_at_ms = NULL WHERE id = ?', [id]),
    /** Ends an attempt; gives what became of the result. */
    end: (claim: ClaimedDelivery | undefined, sent: Sent, endedAtMs: number) =>
      claim && outbox.finish([{ claim, verdict: verdictOf(sent), sent, headers: {}, endedAtMs }])[0],
    states: () =>
      store
        .query<{ state: string }, []>('SELECT state FROM deliveries ORDER BY rowid')
        .all()
        .map(({ state }) => state),
    rows: (sql: string) => store.query<Record<string, unknown>, []>(sql).all(),
    values: (sql: string) => store.query(sql).values(),
  };
}
