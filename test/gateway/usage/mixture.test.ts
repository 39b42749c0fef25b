import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { CHUNKED, chunk, plain, type RawExchange, startRawBackend } from '../../fakes/raw-backend.ts';
import { openCaller, postText } from '../../fakes/raw-caller.ts';
import { startGateway } from '../../started/gateway.ts';
import { shared } from '../../started/shared.ts';
import { settledOf } from './counted.ts';

/** What becomes of a call at its backend. */
const FATES = ['small', 'large', 'error', 'page', 'reset', 'short', 'cut', 'garbage', 'held'] as const;
/** What is no call, or is answered without a backend. */
const OTHERS = ['unknown', 'notification', 'invalid', 'dear'] as const;
const METHODS = ['getBlock', 'getAccountInfo', 'getProgramAccounts', 'sendTransaction'] as const;
/** Who sends it: one who reads it, one who leaves in the middle, one who has left before. */
const CALLERS = ['reads', 'leaves', 'is gone'] as const;

const GRANT = 400;
const backend = shared(startRawBackend(answer));
const gateway = shared(
  await startGateway({
    backends: [{ name: 'a', url: backend.url, max_connections: 3 }],
    plans: { t: { rps: 100, burst: 60, credits: GRANT, max_batch: 6, in_flight: 4, scans: 1 } },
    credits: {
      default: 1,
      methods: { getBlock: 7, getProgramAccounts: 5, sendTransaction: 3, getBalance: 1_000 },
    },
    deadlines: { light: 1, history: 1, scan: 1, send: 1 },
  }),
);
gateway.maintain();

async function answer({ text, send, reset, end, gone }: RawExchange) {
  const fate = /"params":\["([\w-]+)"\]/.exec(text)?.[1];
  const id = /"id":("(?:[^"\\]|\\.)*"|\d+)/.exec(text)?.[1];
  const whole = (member: string) => `{"jsonrpc":"2.0",${member},"id":${id}}`;
  const large = whole(`"result":"${'a'.repeat(300_000)}"`);
  switch (fate) {
    case 'large':
      return send(plain(large));
    case 'error':
      return send(plain(whole('"error":{"code":-32602,"message":"no"}')));
    case 'page':
      return send('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>');
    case 'garbage':
      return send(plain('no JSON'));
    case 'reset':
      return reset();
    case 'short':
      return send(plain(large).slice(0, -9)).then(end);
    case 'cut':
      return send(`${CHUNKED}${chunk(large.slice(0, 200_000))}`).then(reset);
    case 'held':
      return Promise.race([gone, Bun.sleep(20)]).then(() => send(plain(whole('"result":7'))));
    default:
      return send(plain(whole('"result":7')));
  }
}

type Element = Readonly<{ fate: (typeof FATES)[number] | (typeof OTHERS)[number]; method: string }>;
type Request = Readonly<{ elements: readonly Element[]; isBatch: boolean; caller: (typeof CALLERS)[number] }>;

const element = fc.record<Element>({
  fate: fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...FATES) }, fc.constantFrom(...OTHERS)),
  method: fc.constantFrom(...METHODS),
});
const request = fc.record<Request>({
  elements: fc.array(element, { minLength: 1, maxLength: 7 }),
  isBatch: fc.boolean(),
  caller: fc.constantFrom('reads', ...CALLERS),
});

function textOf({ elements, isBatch }: Request): string {
  const calls = elements.map(({ fate, method }, id) => {
    if (fate === 'invalid') return { jsonrpc: '1.0', id, method };
    if (fate === 'unknown') return { jsonrpc: '2.0', id, method: 'getNothing' };
    if (fate === 'dear') return { jsonrpc: '2.0', id, method: 'getBalance' };
    return { jsonrpc: '2.0', ...(fate === 'notification' ? {} : { id }), method, params: [fate] };
  });
  return JSON.stringify(isBatch ? calls : calls[0]);
}

async function send(one: Request, key: string): Promise<void> {
  if (one.caller === 'reads')
    return void (await gateway
      .post(textOf(one), key)
      .then((response) => response.text())
      .catch(() => 'cut'));
  const caller = await openCaller(gateway.url);
  caller.send(postText(textOf(one), key));
  if (one.caller === 'leaves')
    await Promise.race([caller.until('HTTP'), Bun.sleep(30)]).catch(() => undefined);
  else await caller.flushed();
  caller.reset();
}

/** The account's credits as its journal and as its usage have them, once nothing is under way. */
async function counted(key: string) {
  const isAtRest = () => (gateway.gateway.status().backends[0]?.in_flight ?? 0) === 0;
  for (let calm = 0; calm < 5; calm = isAtRest() ? calm + 1 : 0) await Bun.sleep(1); // bounded by the test's own timeout
  const { journal, usage } = settledOf(gateway, key);
  const [charged, refunded] = journal;
  const free = await gateway.post({ jsonrpc: '2.0', method: 'getSlot' }, key);
  return {
    charged,
    refunded,
    usage,
    left: free.headers.get('x-credits-left'),
  };
}

test('D12 whatever mixture of calls comes, and however they end, usage and journal agree to the unit (§2.4.3)', async () => {
  const sums = { charged: 0, refunded: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 12 }), async (requests) => {
      const key = gateway.key('t', GRANT);
      await Promise.all(requests.map((one) => send(one, key)));
      const { charged, refunded, usage, left } = await counted(key);
      expect(usage).toEqual([charged, refunded, charged, refunded]);
      expect(charged - refunded).toBe(gateway.spent(key));
      expect(charged - refunded).toBeGreaterThanOrEqual(0);
      expect(charged - refunded).toBeLessThanOrEqual(GRANT);
      if (left !== null) expect(Number(left)).toBeLessThanOrEqual(GRANT - charged + refunded);
      sums.charged += charged;
      sums.refunded += refunded;
    }),
    { numRuns: 40 },
  );
  // The property says nothing where nothing is charged, or nothing given back.
  expect(sums.charged).toBeGreaterThan(500);
  expect(sums.refunded).toBeGreaterThan(100);
}, 60_000);
