import fc from 'fast-check';
import { readEnvelope } from '../../gateway/request/envelope.ts';
import { systemClock } from '../../shared/clock.ts';
import { CHUNKED, ECHOED_ID, framedChunk, type RawExchange, startRawBackend } from '../fakes/raw-backend.ts';
import { jsonText, membersText, mutated, objectText } from '../gateway/json/json-text.ts';
import { expectedOf, parsed, readAtOnce, summary } from '../gateway/request/body.ts';
import { settledOf } from '../gateway/usage/counted.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { startGateway } from '../started/gateway.ts';
import { callsOf, checkCalls, type Reply } from './call-plans.ts';
import { type Count, type Random, randomOf, type Report, runTimed, turns, until } from './episodes.ts';
import { converse } from './listener.ts';

export const PARTS = ['envelope', 'ids', 'faulty'] as const;
type Part = (typeof PARTS)[number];

const jsonBodies = fc.oneof(
  jsonText,
  membersText.map((members) => objectText(members, ' ')),
  fc
    .array(membersText, { maxLength: 3 })
    .map((batch) => `[${batch.map((one) => objectText(one, '')).join()}]`),
);

/**
 * Bodies against JSON.parse (`envelope`), and calls with hostile ids of a gateway in this process, whose backend answers them
 * (`ids`), or is faulty.
 */
export async function fuzz(
  parts: readonly Part[],
  seed: number,
  seconds: number,
  report?: Report,
  signal?: AbortSignal,
) {
  const work = timedTurns();
  await using honest = await startWorld(work, false);
  await using faulty = await startWorld(work, true);
  const run = (random: Random, count: Count) => {
    const part = random.one(parts);
    return part === 'envelope'
      ? runBodies(random, count, work)
      : runCalls(random, count, work, part === 'ids' ? honest : faulty);
  };
  const fuzzed = await runTimed({ seed, seconds, lanes: 1, run, report, signal }, work);
  work.stop();
  const marks = /^sluice_gateway_(?:backend_failures|streams_cut)_total\{.*$/gm;
  const marked = (await honest.gateway.gateway.metrics.text())
    .match(marks)
    // A probe that a busy machine answers too late is no call.
    ?.filter((line) => !/"(?:unread|evicted|probe)"/.test(line));
  return { ...fuzzed, finding: fuzzed.finding ?? marked?.[0] };
}

type Work = ReturnType<typeof timedTurns>;

/**
 * Measures whole turns of the loop but for what is set aside, which is no work of the gateway, by the shorter of time and CPU
 * time: other processes take the one, other threads the other.
 */
function timedTurns() {
  let [longestMs, isOver] = [0, false];
  const now = () => [systemClock.monotonic(), process.cpuUsage().user / 1_000] as const;
  let [fromMs, fromCpuMs] = now();
  const endTurn = () => {
    const [ms, cpuMs] = now();
    longestMs = Math.max(longestMs, Math.min(ms - fromMs, cpuMs - fromCpuMs));
    [fromMs, fromCpuMs] = now();
    if (!isOver) setImmediate(endTurn);
  };
  endTurn();
  return {
    aside<T>(work: () => T): T {
      const [ms, cpuMs] = now();
      try {
        return work();
      } finally {
        const [endMs, endCpuMs] = now();
        fromMs += endMs - ms;
        fromCpuMs += endCpuMs - cpuMs;
      }
    },
    takeLongestMs() {
      const taken = longestMs;
      longestMs = 0;
      return taken;
    },
    stop: () => void (isOver = true),
  };
}

/** Bodies near JSON, at once and in slices, some of them long. */
async function runBodies(random: Random, count: Count, { aside }: Work): Promise<void> {
  const options = { seed: random.below(2 ** 31), numRuns: 20 };
  const bodies = aside(() => fc.sample(mutated(jsonBodies), options).map((bytes) => Buffer.from(bytes)));
  const members = aside(() => fc.sample(membersText, options));
  aside(() => members.forEach(checkMembers));
  const [unit = Buffer.alloc(0)] = bodies;
  const times = Math.ceil(random.one([70_000, 300_000, 1_000_000]) / (unit.length + 1));
  const long = aside(() =>
    Buffer.from(
      `[${Array(times)
        .fill(unit.toString('latin1'))
        .join(random.one([',', ',', '']))}]`,
      'latin1',
    ),
  );
  for (const body of [...bodies, long]) {
    const sliceBytes = body === long ? undefined : 1 + random.below(30);
    const read = await readEnvelope(body, 1_000, sliceBytes);
    aside(() => {
      const what = () => `${body.length} bytes ${body.toString('latin1', 0, 1_000)}`;
      const whole = readAtOnce(body, 1_000);
      if (!Bun.deepEquals(read, whole))
        throw new Error(`in slices of ${sliceBytes} it is another: ${what()}`);
      // Such a one is not read to its end.
      if (whole.kind === 'too-long' || (whole.kind === 'malformed' && /deep/.test(whole.reason)))
        return count('bounded');
      const json = parsed(body);
      const isJson = whole.kind !== 'malformed' || whole.code !== -32700;
      if (isJson !== (json !== undefined)) throw new Error(`${isJson ? 'taken' : 'refused'}: ${what()}`);
      count(isJson ? 'JSON' : 'no JSON');
      if (!('elements' in whole)) return;
      const values = whole.kind === 'batch' ? (json?.value as unknown[]) : [json?.value]; // the parser agrees that it is an array
      for (const [i, element] of whole.elements.entries()) {
        if (element.kind !== 'call') continue;
        const { id, method, params } = Object(values[i]);
        const own = [element.id, element.params ?? 'null'].map((text) =>
          JSON.parse(Buffer.from(text).toString()),
        );
        if (
          !Bun.deepEquals([...own, element.method], [id, params ?? null, method.length > 1_000 ? '' : method])
        )
          throw new Error(`element ${i} is read as another: ${what()}`);
      }
    });
  }
}

function checkMembers(members: typeof membersText extends fc.Arbitrary<infer T> ? T : never): void {
  const text = objectText(members, '');
  const read = readAtOnce(text);
  const [one] = 'elements' in read ? read.elements : [];
  if (!Bun.deepEquals(summary(one), expectedOf(members)))
    throw new Error(`its members are read as others: ${text}`);
}

type World = Awaited<ReturnType<typeof startWorld>>;

/** A gateway with backends that answer by tag. */
async function startWorld({ aside }: Work, isFaulty: boolean) {
  const replies = new Map<string, Reply>();
  const backend = startRawBackend((exchange) => {
    const calls = aside(() =>
      [...exchange.text.matchAll(CALL)].map(([, id = '', tag = '']) => ({ id, tag })),
    );
    const [first, ...others] = calls.flatMap(({ id, tag }) => {
      const reply = replies.get(tag);
      return reply === undefined ? [] : [{ ...reply, id }];
    });
    if (first === undefined) return exchange.reset();
    return answer(exchange, exchange.text.includes('\r\n\r\n[') ? together(first, others) : first);
  });
  let other = { id: ECHOED_ID, text: '{}' };
  async function answer(exchange: RawExchange, reply: Reply) {
    const random = randomOf(reply.seed);
    const { send, end, reset } = exchange;
    const { fault } = reply;
    const [own, before] = [{ id: exchange.id, text: reply.text }, other];
    other = own;
    const { id, text } = fault === 'foreign' ? before : own;
    const pieces = aside(() => piecesOf(random, text.replace(ECHOED_ID, id), id, reply));
    // Its caller's deadline passes meanwhile, or it does not.
    if (fault === 'late') await turns(20 + random.below(80));
    const last = fault === 'cut' ? random.below(pieces.length) : pieces.length;
    for (const piece of pieces.slice(0, last)) {
      await send(piece);
      await turns(random.below(3));
    }
    if (fault === 'cut') return reset();
    if (fault === 'surplus')
      await send(`${CHUNKED}${framedChunk(before.text.replace(ECHOED_ID, before.id))}0\r\n\r\n`);
    if (reply.framing === 'close' || fault === 'short') end();
  }
  const { clock, advance } = createVirtualClock();
  const gateway = await startGateway(
    {
      backends: [{ name: 'a', url: backend.url, max_connections: 500 }],
      plans: { t: { rps: 1e6, burst: 1e6, credits: 1e9, max_batch: 100, in_flight: 10_000, scans: 1_000 } },
      deadlines: isFaulty ? { light: 1, history: 1, scan: 1, send: 1 } : {},
    },
    isFaulty ? clock : systemClock,
  );
  gateway.maintain();
  return {
    gateway,
    replies,
    isFaulty,
    advance,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      backend[Symbol.dispose]();
    },
  };
}

/** The id and the tag of a call as it is sent. */
const CALL = /"id":("[A-Z2-7]{16}"),"method":"[^"]*","params":\["([^"]*)"/g;

type Sent = Reply & Readonly<{ id: string }>;

/** The answer to a batch: one error, or an array in any order, of a faulty one without some, or with one of nobody. */
function together(first: Sent, others: readonly Sent[]): Sent {
  const random = randomOf(first.seed);
  if (first.fault !== 'none' && random.below(12) === 0)
    return { ...first, text: '{"jsonrpc":"2.0","error":{"code":-32600,"message":"no batches"},"id":null}' };
  const texts = [first, ...others].map(({ id, text }) => text.replace(ECHOED_ID, id));
  const isOdd = first.fault !== 'none' && random.below(2) === 0;
  const some = isOdd ? texts.filter(() => random.below(4) > 0) : texts;
  if (isOdd && random.below(2) === 0) some.push(first.text.replace(ECHOED_ID, '"AAAAAAAAAAAAAAAA"'));
  const ordered = random.below(3) === 0 ? some.toReversed() : some;
  return { ...first, text: `[${ordered.join(random.one([',', ' ,\n']))}]` };
}

/** An answer as it comes, split also within its id. */
function piecesOf(random: Random, text: string, id: string, { framing, fault }: Reply): readonly Buffer[] {
  const twice = fault === 'twice' ? text.repeat(2) : text;
  const body = Buffer.from(fault === 'short' ? twice.slice(0, random.below(text.length)) : twice);
  const splitAt = (bytes: Buffer, most: number) => {
    const idAt = bytes.lastIndexOf(id);
    const cuts = Array.from({ length: random.below(most + 1) }, () =>
      random.below(2) === 0 ? Math.max(0, idAt) + random.below(id.length) : random.below(bytes.length + 1),
    ).toSorted((a, b) => a - b);
    return [0, ...cuts]
      .map((from, i) => bytes.subarray(from, cuts[i] ?? bytes.length))
      .filter(({ length }) => length > 0);
  };
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
  if (framing === 'length') {
    const length = fault === 'short' ? Buffer.byteLength(text) : body.length;
    return splitAt(Buffer.concat([Buffer.from(`${head}content-length: ${length}\r\n\r\n`), body]), 5);
  }
  if (framing === 'close') return splitAt(Buffer.concat([Buffer.from(`${head}\r\n`), body]), 5);
  const chunks = splitAt(body, 5).flatMap((bytes) => [
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from('\r\n'),
  ]);
  return splitAt(Buffer.concat([Buffer.from(CHUNKED), ...chunks, Buffer.from('0\r\n\r\n')]), 5);
}

/** Callers at once of one key. */
async function runCalls(random: Random, count: Count, { aside }: Work, world: World): Promise<void> {
  const { gateway, replies, isFaulty, advance } = world;
  const key = aside(() => gateway.key('t', 1e9));
  const calls = aside(() => callsOf(random, key, `${random.below(2 ** 31)}`, isFaulty));
  for (const [tag, reply] of calls.replies) replies.set(tag, reply);
  let isOver = false;
  const tick = () => {
    if (isFaulty) advance(20.3);
    if (!isOver) setImmediate(tick);
  };
  tick();
  const backends = () => gateway.gateway.status().backends;
  try {
    const run = async (plan: (typeof calls.plans)[number]) => {
      const bytes = await converse(Number(gateway.url.port), plan, random);
      if (bytes === undefined) return count('left');
      for (const name of aside(() => checkCalls(plan, bytes, isFaulty)))
        count(isFaulty ? `faulty ${name}` : name);
    };
    await Promise.all(calls.plans.map(run));
    await until(
      () => aside(backends).every((backend) => backend.in_flight === 0),
      () => 'a call does not end',
    );
  } finally {
    isOver = true;
    replies.clear();
  }
  const text = () => calls.plans.map((plan) => `${plan.end} ${plan.text}`).join('\n');
  const { journal, usage } = aside(() => settledOf(gateway, key));
  if (usage.length > 0 && !Bun.deepEquals(usage, [...journal, ...journal]))
    throw new Error(`${text()}\n  the journal has ${journal.join()}, the usage ${usage.join()}`);
  if (journal[0] > 0) count('charged');
  const marked = isFaulty
    ? undefined
    : aside(backends).find((backend) => backend.recent_failed > 0 || !backend.in);
  if (marked !== undefined) throw new Error(`${text()}\n  the backend is marked: ${JSON.stringify(marked)}`);
}
