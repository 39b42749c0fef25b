import { expect, test } from 'bun:test';
import { AUTHORITY, startDeploys, watchedOf } from './started.ts';
import { addressOf } from '../fakes/chain.ts';

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
