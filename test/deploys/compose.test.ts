import { expect, test } from 'bun:test';
import { startChain } from '../fakes/chain.ts';
import { startDeploys, until, watchedOf, WATCHER_KEY } from './started.ts';

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
