import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { plain, type RawExchange, startRawBackend } from '../fakes/raw-backend.ts';
import { countedOf } from '../gateway/usage/counted.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { startGateway } from '../started/gateway.ts';
import { atRest } from './gateway-process.ts';
import { resultText } from './pair.ts';
import { shared } from '../started/shared.ts';

/** What becomes of a call when its caller stays: it has an answer, or an error that costs nothing, or it cuts the batch. */
const FATES = {
  small: 'paid',
  large: 'paid',
  unknown: 'paid',
  reset: 'free',
  page: 'free',
  413: 'free',
  'no-room': 'free',
  notification: 'free',
  short: 'cuts',
  stalls: 'cuts',
} as const;
type Fate = keyof typeof FATES;

const GRANT = 1_000;
const IDLE_SECONDS = 2;
const PRICES = { default: 1, methods: { getBlock: 7, getBalance: 3 } };
const priceOf = (fate: Fate) =>
  fate === 'notification' ? 0 : fate === 'unknown' ? 1 : fate === 'no-room' ? 3 : 7;

const virtual = createVirtualClock();

const archive = shared(startRawBackend(answer));
const full = shared(startRawBackend(() => undefined));
const gateway = shared(
  await startGateway(
    {
      gateway: { idle_seconds: IDLE_SECONDS },
      backends: [
        { name: 'archive', url: archive.url, lanes: ['archive'] },
        { name: 'full', url: full.url, lanes: ['state'], max_connections: 1 },
      ],
      plans: { t: { rps: 1_000_000, burst: 1_000_000, credits: GRANT, max_batch: 100 } },
      credits: PRICES,
    },
    virtual.clock,
  ),
);
gateway.maintain();

/** Lets a call that is never answered take the only place at the full backend, until it is disposed of. */
async function fill(): Promise<AsyncDisposable> {
  virtual.advance(20_000); // whatever failed before is forgiven
  const before = full.calls();
  const leave = new AbortController();
  const body = { jsonrpc: '2.0', id: 1, method: 'getBalance' };
  const key = gateway.key('t', GRANT);
  const answered = gateway.post(body, key, { signal: leave.signal }).catch(() => undefined);
  await full.called(before + 1);
  return {
    async [Symbol.asyncDispose]() {
      leave.abort();
      await answered;
    },
  };
}

/** What the archive does with a block, as its parameter says. */
function answer({ text, send, reset, end }: RawExchange) {
  const fate = /"params":\["([\w-]+)"\]/.exec(text)?.[1];
  const id = /"id":(\d+)/.exec(text)?.[1];
  const body = (megabytes: number) => plain(resultText(`"${'a'.repeat(megabytes * 1e6)}"`, id));
  if (fate === 'reset') return reset();
  if (fate === 'page') return send('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>');
  if (fate === '413') return send('HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n');
  if (fate === 'large') return send(body(0.1));
  if (fate === 'short') return send(body(0.1).slice(0, -100)).then(end);
  if (fate === 'stalls') return send(body(0.1).slice(0, -100));
  return send(body(0));
}

function elementOf(fate: Fate, id: number): object {
  if (fate === 'notification') return { jsonrpc: '2.0', method: 'getBlock', params: [fate] };
  if (fate === 'unknown') return { jsonrpc: '2.0', id, method: 'nope' };
  return { jsonrpc: '2.0', id, method: fate === 'no-room' ? 'getBalance' : 'getBlock', params: [fate] };
}

/** What the account has spent; its usage must say the same, though a refund may come between the two questions. */
async function spentBy(key: string): Promise<number> {
  for (let times = 0; ; times++) {
    await gateway.post({ jsonrpc: '2.0', method: 'getSlot' }, key); // free, and a turn in which the ledger is written
    const spent = gateway.spent(key);
    const used = Object.values(countedOf(gateway, key)).reduce((sum, { credits }) => sum + credits, 0);
    if (times === 3) expect(used).toBe(spent);
    if (used === spent) return spent;
  }
}

/** Sends the batch, and lets time go by whenever nothing moves, until it is over. */
async function whole(elements: readonly object[], key: string): Promise<'whole' | 'cut'> {
  let bytes = 0;
  let end: 'whole' | 'cut' | undefined;
  const reading = (async () => {
    const answered = await gateway.post(elements, key);
    for await (const piece of answered.body ?? []) bytes += piece.length;
  })().then(
    () => void (end = 'whole'),
    () => void (end = 'cut'),
  );
  for (;;) {
    await Promise.race([reading, atRest(() => bytes + archive.calls() + full.calls(), 25)]);
    if (end !== undefined) return end;
    virtual.advance(IDLE_SECONDS * 1_000);
  }
}

/** Prices of the elements that are paid for when their caller stays: those with an answer, up to where the batch is cut. */
function priceOfDelivered(fates: readonly Fate[]): number {
  const cut = fates.findIndex((fate) => FATES[fate] === 'cuts');
  const delivered = cut === -1 ? fates : fates.slice(0, cut);
  return delivered.reduce((sum, fate) => sum + (FATES[fate] === 'paid' ? priceOf(fate) : 0), 0);
}

const names = Object.keys(FATES) as Fate[]; // the table's own keys
const fates = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 14 });

test('D2 a batch costs the price of what it delivered, however its calls fail and wherever it is cut (§2.4.3)', async () => {
  await fc.assert(
    fc.asyncProperty(fates, async (chosen) => {
      await using _ = await fill();
      const key = gateway.key('t', GRANT);
      const end = await whole(chosen.map(elementOf), key);
      expect(end).toBe(chosen.some((fate) => FATES[fate] === 'cuts') ? 'cut' : 'whole');
      expect(await spentBy(key)).toBe(priceOfDelivered(chosen));
    }),
    { numRuns: 30, examples: [[['short', ...Array<Fate>(7).fill('no-room')]]] },
  );
}, 10_000);

test('a caller who leaves pays for the calls that were sent, and not for those that waited or were never begun', async () => {
  await using _ = await fill();
  const key = gateway.key('t', GRANT);
  const caller = new AbortController();
  const before = archive.calls();
  const elements = [...Array<Fate>(3).fill('no-room'), ...Array<Fate>(20).fill('stalls')];
  const answered = gateway.post(elements.map(elementOf), key, { signal: caller.signal });
  const reading = answered.then((response) => response.text()).catch(() => 'left');
  await archive.called(before + 8); // eight are under way, and three light reads wait
  expect(await spentBy(key)).toBe(23 * 7 - 3 * 4);
  caller.abort();
  await reading;
  while ((await spentBy(key)) !== 8 * 7) await Bun.sleep(1);
});
