import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { findMismatches } from '../../deploys/usage/maintenance.ts';
import { systemClock } from '../../shared/clock.ts';
import { waited } from '../started/host.ts';
import { becomes, end, type Host, startHosts } from './hosts.ts';

/** Usage of all hosts in one ledger. */
let hosts: Awaited<ReturnType<typeof startHosts>>;
let one: Host;
let two: Host;
let key: string;
const UNPACED = 'rps = 1_000_000\nburst = 1_000_000\n';
beforeEach(async () => {
  hosts = await startHosts(`[plans.trial]\n${UNPACED}[plans.small]\ncredits = 60\n${UNPACED}`);
  [one, two] = [await hosts.publishing(), hosts.host()];
  await Promise.all([one.startGateway(), two.startGateway()]);
  ({ key } = await one.key('payer', 'trial'));
  await becomes(two, key, 200);
});
afterEach(() => hosts[Symbol.asyncDispose]());

const COUNTED = `SELECT hour, account_id, key_id, method, node, calls, credits, refunded, errors, bytes_out, refused,
  charged, returned FROM usage_hours ORDER BY node, hour, account_id, key_id, method`;

/** Every cell and every spending that a host's ledger has. */
function booksOf(host: Host) {
  const ledger = host.ledger();
  const [cells, spent] = [COUNTED, 'SELECT * FROM spent ORDER BY node, account_id'].map((sql) =>
    ledger.query(sql).values(),
  );
  ledger.close();
  return { cells, spent };
}

/** Whether the first host's ledger has all that another's has, as it is there. */
function has(all: ReturnType<typeof booksOf>, part: ReturnType<typeof booksOf>): boolean {
  const holds = (rows: unknown[] | undefined, some: unknown[] | undefined) =>
    (some ?? []).every((row) => rows?.some((other) => Bun.deepEquals(row, other)));
  return holds(all.cells, part.cells) && holds(all.spent, part.spent);
}

const callsIn = (books: ReturnType<typeof booksOf>) =>
  (books.cells ?? []).reduce((sum: number, row) => sum + Number((row as unknown[])[5]), 0);

/** Calls one after another; gives how many were answered with 200. */
async function call(host: Host, key: string, times: number): Promise<number> {
  let answered = 0;
  for (let i = 0; i < times; i++) {
    const status = await host.status(key).catch(() => 0);
    if (status === 200) answered++;
  }
  return answered;
}

describe('usage of two hosts', () => {
  test('adds up in the first to the unit after the second was killed and started again, and is counted once', async () => {
    await becomes(one, key, 200);
    const own = 1 + (await call(one, key, 40));
    const [answered] = await Promise.all([
      call(two, key, 200),
      Bun.sleep(300).then(() => two.gateway().kill('SIGKILL')), // in the middle of the calls
    ]);
    await two.gateway().exited;
    await two.startGateway();
    // A trial is let in when the limits of the new process have found Redis.
    await becomes(two, key, 200);
    const later = 1 + (await call(two, key, 25));
    expect(later).toBe(26);
    // Usage is flushed once a second; the journal and what belongs to it at once.
    await waited(() => callsIn(booksOf(two)) >= 1 + answered + later);
    await waited(() => has(booksOf(one), booksOf(two)));
    const [first, second] = [booksOf(one), booksOf(two)];
    expect(callsIn(second)).toBeWithin(1 + answered + later, 1 + answered + later + 2);
    expect(callsIn(first)).toBe(own + callsIn(second));
    const rows = (await one.cli('usage', '--account', 'payer')) as unknown as {
      // the shape of `usage --json`, read member by member
      calls: number;
      credits: number;
    }[];
    expect(rows.reduce((sum, { calls }) => sum + calls, 0)).toBe(callsIn(first));
    expect(rows.reduce((sum, { credits }) => sum + credits, 0)).toBe(callsIn(first));
    const ledger = one.ledger();
    expect(await findMismatches(ledger, systemClock, new AbortController().signal)).toEqual([]);
    ledger.close();
    const account = (await one.cli('account', 'list')).find((row) => row['account'] === 'payer');
    expect(Number(account?.['credits_left'])).toBe(250_000 - callsIn(first));
  }, 60_000);

  test('is not lost when Redis is away or begins with nothing before it was taken', async () => {
    await end(one.deploys(), 'SIGKILL');
    await call(two, key, 20);
    // It is in Redis, and nobody takes it.
    await waited(async () => Number(await hosts.redis.cli('ZCARD', '{sluice:usage}:changed')) > 0);
    const unsent = () => {
      const ledger = two.ledger();
      const rows = ledger.query('SELECT * FROM unsent').values().length;
      ledger.close();
      return rows;
    };
    await waited(() => unsent() === 0);
    await hosts.redis.restart('empty');
    await becomes(two, key, 200);
    await one.startDeploys();
    await waited(() => callsIn(booksOf(two)) >= 22 && has(booksOf(one), booksOf(two)), 25_000);
    expect(callsIn(booksOf(one))).toBe(callsIn(booksOf(two)));
  }, 60_000);

  test('a trial spends its credits once', async () => {
    const { key } = await one.key('spender', 'small');
    await becomes(two, key, 200);
    const statuses: number[] = [];
    for (let i = 0; i < 400 && statuses.slice(-4).filter((status) => status === 402).length < 4; i++) {
      const status = await (i % 2 === 0 ? one : two).status(key);
      statuses.push(status);
      if (status === 429 || status === 503) await Bun.sleep(1_000); // what its Retry-After says
    }
    expect(statuses.slice(-4)).toEqual([402, 402, 402, 402]);
    expect(statuses.filter((status) => status === 200)).toHaveLength(59); // beside the first
  }, 60_000);
});

const NAMES_AND_LIVES = `local pairs = {}
for _, name in ipairs(redis.call('KEYS', '*')) do
  pairs[#pairs + 1] = name
  pairs[#pairs + 1] = redis.call('PTTL', name)
end
return pairs`;

test('usage stays in Redis for three days at most, and what says so has no end of its own', async () => {
  await waited(async () => (await hosts.redis.cli('--scan', '--pattern', '{sluice:*}:usage:*')) !== '');
  // In one script: a key that was taken between two commands would have no life at all.
  const pairs = (await hosts.redis.cli('EVAL', NAMES_AND_LIVES, '0')).split('\n');
  const ends = new Map<string, number>();
  for (let at = 0; at < pairs.length; at += 2) ends.set(String(pairs[at]), Number(pairs[at + 1]));
  const endless = [...ends].filter(([, ttl]) => ttl === -1).map(([name]) => name);
  expect(endless.toSorted()).toEqual([
    '{sluice:2}:lease',
    '{sluice:accounts}:accounts',
    '{sluice:accounts}:head',
    '{sluice:accounts}:keys',
    '{sluice:accounts}:log',
  ]);
  for (const [name, ttl] of ends) if (/usage|spent/.test(name)) expect(ttl).toBeWithin(1, 72 * 3_600_000 + 1);
}, 30_000);
