import { expect, test } from 'bun:test';
import {
  CHUNKED,
  chunk,
  plain,
  type RawExchange,
  refusedUrl,
  startRawBackend,
} from '../fakes/raw-backend.ts';
import { seeded } from '../fakes/seeded.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';
import { errorText, resultText } from './pair.ts';

const SENDS = 2_000;
const AT_ONCE = 32;

type Act = (exchange: RawExchange, id: string) => unknown;

const good = (id: string) => resultText('"signature"', id);
const answer =
  (body: (id: string) => string): Act =>
  ({ send }, id) =>
    send(plain(body(id)));
const error = (code: number) => answer((id) => errorText(code, 'no', id));
const status =
  (code: number): Act =>
  ({ send }) =>
    send(`HTTP/1.1 ${code} No\r\ncontent-length: 2\r\n\r\nno`);
const then =
  (text: (id: string) => string, end: 'end' | 'reset'): Act =>
  async (exchange, id) => {
    await exchange.send(text(id));
    exchange[end]();
  };

const TAKEN: readonly Act[] = [
  answer(good),
  answer(good),
  answer(good),
  ({ send }, id) => send(`${CHUNKED}${chunk(good(id))}0\r\n\r\n`),
  then((id) => plain(good(id)), 'end'), // the next call meets a closing connection
  then((id) => plain(good(id)), 'reset'),
];
/** It was not taken, so that another backend may have it. */
const TURNED_AWAY: readonly Act[] = [status(429), status(503), error(-32005), error(-32429)];
const UNKNOWN: readonly Act[] = [
  status(500),
  status(502),
  status(504),
  answer(() => ''),
  answer(() => good('"another"')),
  then(() => '', 'end'),
  then(() => '', 'reset'),
  then(() => 'HTTP/1.1 200 O', 'end'),
  then((id) => plain(good(id)).slice(0, -5), 'end'),
  then((id) => plain(good(id)).slice(0, -5), 'reset'),
  then((id) => CHUNKED + chunk(good(id)).slice(0, -9), 'end'),
];
const HANGS: Act = () => undefined;

const random = seeded(13);
/** What was done with each transaction, at whichever backend, in the order of its arrivals. */
const arrivals = new Map<string, Act[]>();

function nextAct(): Act {
  if (random() < 0.01) return HANGS;
  const acts = [TAKEN, TAKEN, TURNED_AWAY, UNKNOWN][Math.floor(4 * random())] ?? TAKEN;
  return acts[Math.floor(acts.length * random())] ?? HANGS;
}

const backends = Array.from({ length: 3 }, () =>
  shared(
    startRawBackend((exchange) => {
      const [, id = '', tx = ''] = /"id":("[^"]*"),.*"(tx \d+)"/.exec(exchange.text) ?? [];
      const act = nextAct();
      arrivals.set(tx, [...(arrivals.get(tx) ?? []), act]);
      return act(exchange, id);
    }),
  ),
);
const gateway = shared(
  await startGateway({
    deadlines: { send: 1 },
    plans: { scale: { rps: 1_000_000, burst: 1_000_000, max_batch: 20 } },
    backends: [...backends.map(({ url }) => url), refusedUrl()].map((url, i) => ({ name: 'abcd'[i], url })),
  }),
);
gateway.maintain();
const keys = Array.from({ length: 20 }, () => gateway.key());

type Answer = Readonly<{ id: number; error?: { code: number } }>;

/** Sends the next transactions, one or a few in a batch, until all are sent; `reported` gets the outcome of each. */
async function sendAll(next: () => number | undefined, reported: Map<string, string>): Promise<void> {
  for (let id = next(); id !== undefined; id = next()) {
    const more = random() < 0.1 ? [next(), next(), next()].filter((each) => each !== undefined) : [];
    const calls = [id, ...more].map((each) => ({
      jsonrpc: '2.0',
      id: each,
      method: 'sendTransaction',
      params: [`tx ${each}`],
    }));
    const key = keys[Math.floor(keys.length * random())];
    const response = await gateway.post(more.length === 0 ? calls[0] : calls, key);
    const answers: Answer | readonly Answer[] = JSON.parse(await response.text());
    for (const { id: own, error: refusal } of [answers].flat())
      reported.set(`tx ${own}`, refusal === undefined ? 'taken' : String(refusal.code));
  }
}

test('G4 of thousands of sends at backends that fail in every way none goes to a second backend that may have been accepted, and each caller gets its outcome', async () => {
  const reported = new Map<string, string>();
  let sent = 0;
  const next = () => (sent < SENDS ? sent++ : undefined);
  await Promise.all(Array.from({ length: AT_ONCE }, () => sendAll(next, reported)));

  expect(reported.size).toBe(SENDS);
  const wasTurnedAway = (act: Act) => TURNED_AWAY.includes(act);
  const sentAgain = [...arrivals].filter(([, acts]) => acts.length > 1);
  expect(sentAgain.length).toBeGreaterThan(SENDS / 50);
  expect(sentAgain.filter(([, acts]) => !acts.slice(0, -1).every(wasTurnedAway))).toEqual([]);

  const reportedAs = (code: string) => [...reported].filter(([, each]) => each === code).map(([tx]) => tx);
  const actsOf = (tx: string) => arrivals.get(tx) ?? [];
  const lastOf = (tx: string) => actsOf(tx).at(-1) ?? HANGS;
  // A caller may send such a transaction again.
  expect(reportedAs('-503').filter((tx) => !actsOf(tx).every(wasTurnedAway))).toEqual([]);
  expect(reportedAs('taken').filter((tx) => !TAKEN.includes(lastOf(tx)))).toEqual([]);
  const unknown = [...arrivals].filter(([, acts]) => [HANGS, ...UNKNOWN].includes(acts.at(-1) ?? HANGS));
  expect(new Set(unknown.map(([tx]) => reported.get(tx)))).toEqual(new Set(['-504']));
  expect(new Set(reported.values())).toEqual(new Set(['taken', '-503', '-504', '-32005']));
}, 60_000);
