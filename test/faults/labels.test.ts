import { expect, test } from 'bun:test';
import { openCaller } from '../fakes/raw-caller.ts';
import { callText, pair } from './pair.ts';

const { gateway } = await pair({ plans: { scale: { rps: 100_000, burst: 100_000 } } });
const key = gateway.key('scale');

/** Every series there is: its name and labels, without its value. */
const series = async () =>
  (await gateway.gateway.metrics.text())
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.slice(0, line.lastIndexOf(' ')));

/** A request whose bytes need be neither UTF-8 nor a URL that anything can read; gives its status. */
async function status(target: string, body: string): Promise<string | undefined> {
  const head = `POST ${target} HTTP/1.1\r\nhost: a\r\nx-token: ${key}\r\ncontent-type: application/json\r\n`;
  using caller = await openCaller(gateway.url);
  caller.send(
    Buffer.from(`${head}content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`, 'latin1'),
  );
  await caller.ended;
  return /^HTTP\/1\.1 (\d+)/.exec(caller.text())?.[1];
}

const call = (method: string) => callText(1, JSON.stringify(method).slice(1, -1));
const HOSTILE = [
  '__proto__',
  'a"b',
  'a\nb',
  '\ud800',
  'x"} 1\nsluice_gateway_calls_total{method="y',
  'x'.repeat(10_000),
  '',
];

test('F8 no method name of a caller becomes a label, and a name that is not UTF-8 harms nothing', async () => {
  for (const body of [call('getSlot'), call('nope'), '{']) await gateway.post(body, key);
  const before = await series();
  for (const method of HOSTILE) {
    const body = call(method);
    expect((await gateway.post(body, key)).status).toBe(200);
    expect((await gateway.post(`[${body},${body}]`, key)).status).toBe(200);
  }
  for (let i = 0; i < 300; i++) await gateway.post(call(`method${i}`), key);
  expect(await status('/', call('get\xffSlot'))).toBe('400');
  expect(await status('/', call('\xc3\x28'))).toBe('400');
  expect(await series()).toEqual(before);
  expect((await gateway.post(call('getSlot'), key)).status).toBe(200);
});

test('F8 no target of a request becomes a label, whatever its bytes', async () => {
  const before = await series();
  const targets = ['/\xff\xfe', '/%ff%00', `/${'x'.repeat(5_000)}`, '/?api-key=%zz', '/metrics'];
  for (const target of targets) expect(await status(target, call('getSlot'))).toMatch(/^(200|400|401|404)$/);
  const added = (await series()).filter((each) => !before.includes(each));
  // The target with another key is refused, which is a kind of its own.
  expect(added).toEqual(['sluice_gateway_requests_total{outcome="invalid-key"}']);
});
