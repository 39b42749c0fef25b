import { expect, test } from 'bun:test';
import { startChain, addressOf } from '../fakes/chain.ts';
import { startDeploys, until, watchedOf, WATCHER_KEY, AUTHORITY } from './started.ts';

const bad = () => new Response(`<html>${WATCHER_KEY}</html>`, { status: 502 });

test('the watcher reads with its own key, which is in no log line and no health text', async () => {
  const [first, second] = [startChain(), startChain()] as const;
  first.fault = bad;
  await using deploys = startDeploys(watchedOf('A'), [first, second]);
  await deploys.watch();
  expect(second.calls.every(({ headers }) => headers.get('x-token') === WATCHER_KEY)).toBe(true);
  const health = await (await deploys.answer(new Request('http://localhost/health'))).text();
  expect(health).toStartWith('ok: 1 programs, read');
  expect(JSON.stringify(deploys.lines)).toContain('returned HTTP 502');
  expect(JSON.stringify(deploys.lines) + health).not.toContain(WATCHER_KEY);
});

test('a backend that hangs costs its eight seconds, and the same reading goes on with the next', async () => {
  const [first, second] = [startChain(), startChain()] as const;
  first.fault = () => new Promise<Response>(() => {});
  await using deploys = startDeploys(watchedOf('A'), [first, second]);
  const watching = deploys.watch();
  await until(() => first.calls.length === 1);
  expect((await deploys.get()).status).toBe(503);
  await deploys.clock.advance(8_000);
  await watching;
  expect(await (await deploys.get()).json()).toMatchObject({ checked_at: '2026-11-20T00:00:00.000Z' });
  expect(JSON.stringify(deploys.lines)).toContain('rpc_urls[0] did not respond within 8 s');
});

test('what strangers may read on /health names no host', async () => {
  const chain = startChain();
  chain.fault = bad;
  await using deploys = startDeploys(watchedOf('A'), [chain]);
  void deploys.watch();
  await until(() => deploys.lines.length > 0);
  const health = await (await deploys.answer(new Request('http://localhost/health'))).text();
  expect(health).toContain('rpc_urls[0] returned HTTP 502');
  expect(health).not.toContain(chain.url.hostname);
  chain.fault = undefined;
  await deploys.clock.advance(60_000);
  await deploys.watch();
});

type Deploys = ReturnType<typeof startDeploys>;
async function figures(deploys: Deploys): Promise<Record<string, number>> {
  const response = await deploys.answerMetrics(new Request('http://localhost/metrics'));
  expect(response.headers.get('content-type')).toStartWith('text/plain');
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}

test('readings, deploys, statuses and answers are counted, and nothing else is served beside them', async () => {
  await using deploys = startDeploys(watchedOf('A', 'B', 'C'));
  expect(Object.keys(await figures(deploys))).not.toContain('deploys_reading_age_seconds');
  deploys.chain.deploy(addressOf('A'), 5, AUTHORITY);
  deploys.chain.deploy(addressOf('B'), 5);
  await deploys.watch();
  deploys.chain.deploy(addressOf('A'), 6, AUTHORITY);
  await deploys.readAgain();
  await deploys.clock.advance(1_500);
  await deploys.get();
  await deploys.get('', {});
  expect(await figures(deploys)).toMatchObject({
    'deploys_readings_total{outcome="read"}': 2,
    sluice_usage_mismatch: 0,
    deploys_found_total: 1,
    'deploys_programs{status="upgradeable"}': 1,
    'deploys_programs{status="frozen"}': 1,
    'deploys_programs{status="other_loader"}': 0,
    'deploys_programs{status="missing"}': 1,
    'deploys_api_answers_total{status="200"}': 1,
    'deploys_api_answers_total{status="401"}': 1,
    deploys_reading_age_seconds: 1.5,
  });
  expect((await deploys.answerMetrics(new Request('http://localhost/'))).status).toBe(404);
});
