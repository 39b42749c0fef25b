import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { WEBHOOKS_PATH } from '../../deploys/api/webhook-routes.ts';
import { startChain, addressOf } from '../fakes/chain.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { startDeploys, until, watchedOf, WATCHER_KEY, AUTHORITY } from './started.ts';

const bad = () => new Response(`<html>${WATCHER_KEY}</html>`, { status: 502 });

test('the watcher reads with its own key, which is in no log line and no health text, as no host is that strangers may read', async () => {
  const [first, second] = [startChain(), startChain()] as const;
  first.fault = bad;
  await using deploys = startDeploys(watchedOf('A'), [first, second]);
  second.fault = bad;
  void deploys.watch();
  await until(() => deploys.lines.length > 0);
  const health = async () => (await deploys.answer(new Request('http://localhost/health'))).text();
  const ill = await health();
  expect(ill).toContain('rpc_urls[0] returned HTTP 502');
  second.fault = undefined;
  await deploys.clock.advance(60_000);
  await deploys.watch();
  expect(second.calls.every(({ headers }) => headers.get('x-token') === WATCHER_KEY)).toBe(true);
  expect(await health()).toStartWith('ok: 1 programs, read');
  expect(JSON.stringify(deploys.lines)).toContain('returned HTTP 502');
  expect(JSON.stringify(deploys.lines) + ill).not.toContain(WATCHER_KEY);
  expect(ill).not.toContain(first.url.hostname);
});

test('readings, deploys, statuses and answers are counted, and nothing else is served beside them', async () => {
  await using deploys = startDeploys(watchedOf('A', 'B', 'C'));
  expect(Object.keys(await deploys.figures())).not.toContain('deploys_reading_age_seconds');
  deploys.chain.deploy(addressOf('A'), 5, AUTHORITY);
  deploys.chain.deploy(addressOf('B'), 5);
  await deploys.watch();
  deploys.chain.deploy(addressOf('A'), 6, AUTHORITY);
  await deploys.readAgain();
  await deploys.clock.advance(1_500);
  await deploys.get();
  await deploys.get('', {});
  expect(await deploys.figures()).toMatchObject({
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

test('after a restart the rate of each key goes on, at both APIs (E40)', async () => {
  using folder = temporaryFolder();
  const started = () => startDeploys(watchedOf('A'), [startChain()], join(folder.path, 'sluice.db'));
  const statuses = ({ answer }: ReturnType<typeof started>, key: string) =>
    Promise.all(
      [PROGRAMS_PATH, WEBHOOKS_PATH].map(async (path) => {
        const request = new Request(`http://localhost${path}`, { headers: { 'x-token': key } });
        return (await answer(request)).status;
      }),
    );
  await using first = started();
  for (let i = 0; i < 60; i++) expect(await statuses(first, first.key)).toEqual([503, 200]);
  await using second = started();
  expect(await statuses(second, first.key)).toEqual([429, 429]);
  expect(await statuses(second, second.key)).toEqual([503, 200]);
});
