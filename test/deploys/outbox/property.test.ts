import { expect, test } from 'bun:test';
import fc from 'fast-check';
import type { ClaimedDelivery } from '../../../deploys/outbox/claim.ts';
import { nextDelivery, PROGRESS, type DeliveryProgress } from '../../../deploys/outbox/delivery-state.ts';
import { verdictOf } from '../../../deploys/outbox/outcome.ts';
import { createPrune } from '../../../deploys/outbox/prune.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { answered, failedWith } from '../../fakes/scripted-send.ts';
import { arrowsIn } from '../../layers/diagram.ts';
import { startQueue } from './queue.ts';

const [LEASE_MS, WAIT_MS_MAX] = [30_000, 7_200_000];
const RUNS = 100;
/** Three of them are on one host, whose bound of eight is met before theirs of four each. */
const WEBHOOKS = ['one', 'two', 'three', 'four'] as const;
const OUTCOMES = [answered(200), answered(500), failedWith('timeout'), failedWith('aborted')] as const;
/** The second process runs with its lock bypassed. */
const PROCESSES = [0, 1] as const;

const process = fc.constantFrom(...PROCESSES);
const webhook = fc.constantFrom(...WEBHOOKS);
const which = fc.nat(63);
type Arbitraries<More> = { [Name in keyof More]: fc.Arbitrary<More[Name]> };
const of = <Kind extends string, More>(weight: number, kind: Kind, more: Arbitraries<More>) => ({
  weight,
  arbitrary: fc.record({ ...more, kind: fc.constant(kind) }) as fc.Arbitrary<More & { kind: Kind }>, // a spread loses the names
});
const step = fc.oneof(
  of(3, 'upgrade', {}),
  of(1, 'ping', { webhook }),
  of(6, 'claim', { process }),
  of(8, 'finish', { process, which, outcome: fc.constantFrom(...OUTCOMES) }),
  of(4, 'fail all', { process }),
  of(3, 'reap', { process }),
  of(2, 'crash', { process }),
  of(6, 'wait', { ms: fc.constantFrom(1, 5_000, LEASE_MS, 120_000, 600_000, WAIT_MS_MAX) }),
  of(1, 'prune', {}),
  of(2, 'resend', { which }),
  of(1, 'pause', { webhook }),
  of(1, 'resume', { webhook }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

type Row = {
  id: string;
  state: string;
  attempts: number;
  automatic: number;
  started: number;
  due_at_ms: number | null;
  lease_until_ms: number | null;
  body: string;
};
const ROWS = `SELECT d.id, d.state, d.attempts, d.due_at_ms, d.lease_until_ms, hex(d.body) AS body,
  (SELECT count(*) FROM attempts a WHERE a.delivery_id = d.id AND a.trigger = 'auto') AS automatic,
  (SELECT count(*) FROM attempts a WHERE a.delivery_id = d.id AND a.state = 'started') AS started
  FROM deliveries d ORDER BY d.rowid`;

const ARROWS = arrowsIn('deploys/outbox/delivery-state.ts');

/** What is not settled. */
const OPEN = `SELECT id FROM deliveries
  WHERE finished_at_ms IS NULL OR lease_token IS NOT NULL OR resend_at_ms IS NOT NULL ORDER BY id`;

/** The queue, what each process has under way, and what those that died never said. */
function startModel() {
  const queue = startQueue();
  for (const id of WEBHOOKS)
    queue.addWebhook(id, { host: id === 'four' ? 'b.example.com' : 'a.example.com' });
  const underWay: [ClaimedDelivery[], ClaimedDelivery[]] = [[], []];
  const ghosts: ClaimedDelivery[] = [];
  const bodies = new Map<string, string>();
  const delivered = new Set<string>();
  const leases = new Map<string, { token: string; untilMs: number }>();
  const states = new Map<string, string>();
  const prune = createPrune(queue.store);
  let [nowMs, slot] = [START_MS, 0];

  /** Each delivery is where the diagram has an arrow to from where it was. */
  function walk() {
    for (const { id, state } of queue.rows('SELECT id, state FROM deliveries') as Pick<
      Row,
      'id' | 'state'
    >[]) {
      const from = states.get(id) ?? '[*]';
      if (from !== state) expect(ARROWS).toContain(`${from} --> ${state}`);
      states.set(id, state);
    }
  }

  function claim(of: 0 | 1) {
    for (const claimed of queue.outbox.claim(nowMs, underWay[of])) {
      const live = leases.get(claimed.deliveryId);
      if (live !== undefined && live.untilMs > nowMs)
        throw new Error('a delivery under a live lease was claimed');
      leases.set(claimed.deliveryId, { token: claimed.token, untilMs: nowMs + LEASE_MS });
      const body = Buffer.from(claimed.body).toString('hex').toUpperCase();
      expect(body).toBe(bodies.get(claimed.deliveryId) ?? body);
      bodies.set(claimed.deliveryId, body);
      underWay[of].push(claimed);
    }
    for (const id of WEBHOOKS)
      expect(underWay[of].filter(({ webhookId }) => webhookId === id).length).toBeLessThanOrEqual(4);
    expect(underWay[of].filter(({ host }) => host === 'a.example.com').length).toBeLessThanOrEqual(8);
  }

  function finish(claimed: ClaimedDelivery | undefined, sent: (typeof OUTCOMES)[number]) {
    if (claimed === undefined) return;
    const isHolder = leases.get(claimed.deliveryId)?.token === claimed.token;
    const before = isHolder ? undefined : queue.rows(ROWS);
    const verdict = verdictOf(sent);
    const [recorded] = queue.outbox.finish([
      { claim: claimed, verdict, sent, headers: {}, endedAtMs: nowMs },
    ]);
    expect(recorded).toBe(isHolder ? 'recorded' : 'stale');
    if (before === undefined) leases.delete(claimed.deliveryId);
    else expect(queue.rows(ROWS)).toEqual(before);
    walk();
  }

  function reap(of: 0 | 1) {
    const mine = new Set(underWay[of].map(({ deliveryId }) => deliveryId));
    queue.outbox.reap(nowMs, mine);
    for (const [id, { untilMs }] of leases) if (untilMs <= nowMs && !mine.has(id)) leases.delete(id);
    walk();
  }

  function take(next: Step) {
    switch (next.kind) {
      case 'upgrade':
        return queue.upgrade(`program ${slot % 3}`, ++slot, nowMs);
      case 'ping':
        return void queue.enqueue.ping(next.webhook, nowMs);
      case 'claim':
        return claim(next.process);
      case 'finish': {
        // A process that seemed dead may still say how its attempts ended.
        const [ghost] = next.which % 4 === 0 ? ghosts.splice(next.which % Math.max(1, ghosts.length), 1) : [];
        const own = underWay[next.process];
        const [mine] = ghost === undefined ? own.splice(next.which % Math.max(1, own.length), 1) : [];
        return finish(ghost ?? mine, next.outcome);
      }
      case 'fail all':
        for (const claimed of underWay[next.process].splice(0)) finish(claimed, answered(500));
        nowMs += WAIT_MS_MAX;
        return claim(next.process);
      case 'reap':
        return reap(next.process);
      case 'crash':
        return void ghosts.push(...underWay[next.process].splice(0));
      case 'wait':
        return void (nowMs += next.ms);
      case 'resend': {
        const rows = queue.rows('SELECT id FROM deliveries');
        return void queue.resend(String(rows[next.which % Math.max(1, rows.length)]?.['id']), nowMs);
      }
      case 'prune': {
        // A hundred days later, when all that is settled is old.
        const before = queue.values(OPEN);
        while (prune(nowMs + 100 * 86_400_000));
        expect(queue.values(OPEN)).toEqual(before);
        return expect(queue.values('SELECT count(*) FROM deliveries')).toEqual([[before.length]]);
      }
      case 'pause': {
        const progress = () =>
          queue.rows(
            `SELECT ${PROGRESS} FROM deliveries d WHERE webhook_id = '${next.webhook}' ORDER BY id`,
          ) as DeliveryProgress[]; // the columns of the query
        const event = { kind: 'stopped', stoppedAs: 'skipped', atMs: nowMs } as const;
        const stopped = progress().map((row) => nextDelivery(row, event));
        queue.pause(next.webhook, nowMs);
        return expect(progress()).toEqual(stopped);
      }
      case 'resume':
        return void queue.resume(next.webhook);
    }
  }

  function check() {
    walk();
    const rows = queue.rows(ROWS) as Row[]; // the columns of the query
    for (const row of rows) {
      expect(row.attempts).toBeLessThanOrEqual(6);
      expect(row.automatic).toBeLessThanOrEqual(6);
      expect(row.started).toBe(row.lease_until_ms === null ? 0 : 1);
      if (delivered.has(row.id)) expect(row.state).toBe('delivered');
      if (row.state === 'delivered') delivered.add(row.id);
      if (row.state === 'attempting') expect(row.lease_until_ms).toBeLessThanOrEqual(nowMs + LEASE_MS);
      if (row.state !== 'queued' && row.state !== 'retry_scheduled') continue;
      if (row.lease_until_ms === null) expect(row.due_at_ms).not.toBeNull();
      expect(row.due_at_ms ?? 0).toBeLessThanOrEqual(nowMs + WAIT_MS_MAX);
    }
  }

  /** Both processes live on; receivers answer. Gives the states that are left. */
  function settle(): string[] {
    for (let turn = 0; turn < 40 && queue.values(OPEN).length > 0; turn++) {
      for (const of of PROCESSES) {
        for (const claimed of underWay[of].splice(0)) finish(claimed, answered(200));
        reap(of);
        claim(of);
      }
      nowMs += WAIT_MS_MAX / 4;
      check();
    }
    return queue.states();
  }

  return { ...queue, take, check, settle };
}

test('whatever processes claim, finish, reap, prune and crash: six attempts, one lease, delivered is final, and all come to an end (E24)', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 80, size: 'max' }), (steps) => {
      using model = startModel();
      for (const next of steps) {
        model.take(next);
        model.check();
      }
      const open = model.settle().filter((state) => !['delivered', 'failed', 'skipped'].includes(state));
      expect(open).toEqual([]);
      expect(model.values('SELECT count(*) FROM deliveries WHERE lease_token IS NOT NULL')).toEqual([[0]]);
      expect(model.values("SELECT count(*) FROM attempts WHERE state = 'started'")).toEqual([[0]]);
    }),
    { numRuns: RUNS, seed: 5 },
  );
}, 30_000);
