import { expect, setDefaultTimeout, test } from 'bun:test';
import { openCaller, postText, type RawCaller } from '../fakes/raw-caller.ts';
import { atRest, startGatewayProcess } from './gateway-process.ts';
import { callText, pair, resultText } from './pair.ts';

// What takes seconds here takes longer beside other work.
setDefaultTimeout(30_000);

const call = (id: number, method = 'getSlot') => callText(id, method);
const answer = (id: number) => resultText('"answer to getSlot"', id);

const { backend, gateway } = await pair({
  gateway: { idle_seconds: 2 },
  plans: { trial: { rps: 1_000, burst: 1_000 } },
});
const key = gateway.key();

/** Milliseconds that the listener's clock may take for an idle limit of eight seconds: it ticks every four. */
const IDLE_MS_MAX = 13_000;

test('F9 a caller that is slow with a head or a body, drips it, or sends nothing is disconnected within the idle limit', async () => {
  const post = postText(`${call(1)}${' '.repeat(1_000)}`, key);
  const starts: readonly (readonly [string, boolean])[] = [
    ['', false],
    ['POST / HTTP/1.1\r\nhost: a\r\n', false],
    ['POST / HTTP/1.1\r\nhost: a\r\nx-a: ', true],
    [post.slice(0, -1_000), false],
    [post.slice(0, -1_000), true],
    [postText(call(1), key), false],
  ];
  const before = performance.now();
  const callers = await Promise.all(
    starts.map(async ([text, drips]) => {
      const caller = await openCaller(gateway.url);
      caller.send(text);
      const drip = drips ? setInterval(() => caller.send(' '), 250) : undefined;
      void caller.ended.then(() => clearInterval(drip));
      return caller;
    }),
  );
  await Promise.all(callers.map(({ ended }) => ended));
  expect(performance.now() - before).toBeLessThan(IDLE_MS_MAX);
  const texts = callers.map((caller) => caller.text());
  expect(texts.slice(0, -1)).toEqual(['', '', '', '', '']);
  expect(texts.at(-1)).toEndWith(`${answer(1)}\n`);
  expect((await gateway.post(call(2), key)).status).toBe(200);
});

test('F9 a thousand idle keep-alive connections cost little, delay no other caller, and are all released', async () => {
  const CONNECTIONS = 1_000;
  await using apart = await startGatewayProcess(backend.url);
  await (await apart.post(call(0))).text();
  const before = { bytes: apart.resident(), descriptors: await atRest(apart.descriptors) };
  const callers: RawCaller[] = [];
  while (callers.length < CONNECTIONS) {
    const some = await Promise.all(Array.from({ length: 100 }, () => openCaller(apart.url)));
    for (const caller of some) caller.send(postText(call(1), apart.key));
    for (const caller of some) expect(await caller.until(answer(1))).toContain('HTTP/1.1 200 ');
    callers.push(...some);
  }
  expect(apart.descriptors() - before.descriptors).toBeGreaterThanOrEqual(CONNECTIONS);
  expect(apart.resident() - before.bytes).toBeLessThan(64 << 20);
  expect((await apart.post(call(2))).status).toBe(200);
  for (const caller of callers.slice(0, 10)) {
    caller.send(postText(call(3), apart.key));
    expect(await caller.until(answer(3))).toContain(answer(3));
  }
  for (const caller of callers) caller[Symbol.dispose]();
  // What is left over is the gateway's own connections to its backend.
  while (apart.descriptors() - before.descriptors > 110) await Bun.sleep(10); // bounded by the test's own timeout
});

test('F9 two thousand requests one after another on one connection are all answered', async () => {
  using caller = await openCaller(gateway.url);
  for (let id = 1; id <= 2_000; id++) {
    caller.send(postText(call(id), key));
    expect(await caller.until(answer(id))).toEndWith(`${answer(id)}\n`);
  }
});
