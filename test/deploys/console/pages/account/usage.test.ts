import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { type Customer, startWorld, type World } from '../../world.ts';

let world: World;
let acme: Customer;
let keyId: string;
beforeEach(() => {
  world = startWorld();
  acme = world.customer();
  keyId = world.addKey('indexer').id;
  world.count([
    { calls: 100, credits: 150, refunded: 50, keyId, errors: 2, bytesOut: 5_000_000, within10Ms: 100 },
    { calls: 40, keyId, method: 'getBlock', hoursAgo: 30, refused: 10 },
    { calls: 7, keyId: 'gone', method: 'getBlock', hoursAgo: 24 * 20 },
    { calls: 1, keyId, method: 'getSlot', hoursAgo: 24 * 60 },
    { calls: 99_999, accountId: 2, method: 'getTheirs', keyId: 'theirs' },
  ]);
});
afterEach(() => world[Symbol.dispose]());

const PATH = '/accounts/1/usage';
const sum = (values: number[]) => values.reduce((total, each) => total + each, 0);

describe('the page of usage', () => {
  test('shows a week by hour and method by default', async () => {
    const { text, chart } = await acme.get(PATH);
    const { times, series } = chart();
    expect([times.length, series.map(({ label, values }) => [label, sum(values)])]).toEqual([
      168,
      [
        ['getSlot', 100],
        ['getBlock', 40],
      ],
    ]);
    for (const each of ['Requests by method, 7 days', '5.0 MB', '≤ 10 ms', '71%'])
      expect(text).toContain(each);
  });

  test.each([
    ['24h', 24, 100],
    ['7d', 168, 140],
    ['30d', 30, 147],
    ['90d', 90, 148],
    ['12m', 12, 148],
    ['nonsense', 168, 140],
  ])('over %s has %i bars and %i requests', async (period, bars, calls) => {
    const { times, series } = (await acme.get(`${PATH}?period=${period}`)).chart();
    expect([times.length, sum(series.flatMap(({ values }) => values))]).toEqual([bars, calls]);
  });

  test.each([
    ['credits', 100],
    ['errors', 2],
    ['refused', 10],
  ])('shows %s', async (show, total) => {
    const { series } = (await acme.get(`${PATH}?show=${show}`)).chart();
    expect(sum(series.flatMap(({ values }) => values))).toBe(total);
  });

  test('by key names each key, also a deleted one', async () => {
    const { series } = (await acme.get(`${PATH}?by=key&period=30d`)).chart();
    expect(series.map(({ label }) => label)).toEqual([expect.stringMatching(/^indexer \(….{4}\)$/), 'gone']);
  });

  test('is narrowed to one key or method', async () => {
    const ofKey = await acme.get(`${PATH}?key=gone&period=30d`);
    expect(ofKey.text).toContain('Filtered by gone · Clear');
    expect(ofKey.chart().series.map(({ label, values }) => [label, sum(values)])).toEqual([['getBlock', 7]]);
    const ofMethod = (await acme.get(`${PATH}?method=getBlock&period=30d`)).chart();
    expect(ofMethod.series.map(({ values }) => sum(values))).toEqual([40, 7]);
  });

  test('sums up what is beyond the first six', async () => {
    world.count(Array.from({ length: 8 }, (_, i) => ({ method: `get${i}`, calls: 200 + i, keyId })));
    const { series } = (await acme.get(PATH)).chart();
    const named = ['get7', 'get6', 'get5', 'get4', 'get3', 'get2', 'Others'];
    expect(series.map(({ label }) => label)).toEqual(named);
    expect(sum(series.at(-1)?.values ?? [])).toBe(200 + 201 + 140);
  });

  test('without usage says so and draws no chart', async () => {
    const { html } = await acme.get(`${PATH}?key=none`);
    expect(html).toContain('No usage in this period');
    expect(html).not.toContain('data-chart');
    expect(html).not.toContain('Download CSV');
  });
});

describe('the file of usage', () => {
  const lines = async (query = '') =>
    (await (await acme.ask(`${PATH}.csv${query}`)).text()).trimEnd().split('\n');

  test('has the columns of the command and the rows of its account', async () => {
    const response = await acme.ask(`${PATH}.csv?period=24h`);
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(response.headers.get('content-disposition')).toBe(
      'attachment; filename="usage-2026-11-19-to-2026-11-20.csv"',
    );
    expect(await response.text()).toBe(
      'hour,account,key_id,method,calls,credits,errors,bytes_out,refused\n' +
        `2026-11-20T00:00Z,acme,${keyId},getSlot,100,100,2,5000000,0\n`,
    );
  });

  test('has the period, key and method of its page', async () => {
    expect(await lines('?period=90d')).toHaveLength(5);
    expect(await lines('?period=30d&key=gone')).toHaveLength(2);
    expect(await lines('?period=30d&method=getSlot')).toHaveLength(2);
  });

  test('and its page are refused while a user reads eight files, and given when one was closed', async () => {
    const unread = await Promise.all(Array.from({ length: 8 }, () => acme.ask(`${PATH}.csv`)));
    for (const path of [PATH, `${PATH}.csv`]) {
      const response = await acme.ask(path);
      expect(response.status).toBe(503);
      expect(response.headers.get('retry-after')).toBe('2');
      expect(await response.text()).toContain('Reload this page in a moment.');
    }
    await unread[0]?.body?.cancel();
    expect(await lines()).toHaveLength(3);
    expect((await acme.ask(PATH)).status).toBe(200);
    await Promise.all(unread.map(({ body, bodyUsed }) => bodyUsed || body?.cancel()));
  });

  test('is linked from the page with its filters', async () => {
    const { html } = await acme.get(`${PATH}?period=30d&key=${keyId}&show=credits`);
    expect(html).toContain(`href="${PATH}.csv?period=30d&amp;key=${keyId}"`);
  });
});
