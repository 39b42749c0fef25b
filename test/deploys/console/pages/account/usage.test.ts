import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { type AccountWorld, startAccountWorld } from '../../account-world.ts';
import { CUSTOMER } from '../../started.tsx';

let world: AccountWorld;
let keyId: string;
beforeEach(() => {
  world = startAccountWorld();
  keyId = world.addKey('acme', 'indexer').id;
  world.count([
    { calls: 100, credits: 150, refunded: 50, keyId, errors: 2, bytesOut: 5_000_000, within10Ms: 100 },
    { calls: 40, keyId, method: 'getBlock', hoursAgo: 30, refused: 10 },
    { calls: 7, keyId: 'gone', method: 'getBlock', hoursAgo: 24 * 20 },
    { calls: 1, keyId, method: 'getSlot', hoursAgo: 24 * 60 },
    { calls: 99_999, accountId: 8, method: 'getTheirs', keyId: 'theirs' },
  ]);
});
afterEach(() => world[Symbol.dispose]());

const PATH = '/accounts/7/usage';
const textOf = (page: string) => page.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
function drawnOf(html: string) {
  const drawn: unknown = JSON.parse(
    (/data-chart="([^"]+)"/.exec(html)?.[1] ?? '').replaceAll('&quot;', '"').replaceAll('&amp;', '&'),
  );
  return drawn as { times: number[]; series: { label: string; values: number[] }[] }; // what Chart writes
}
const sum = (values: number[]) => values.reduce((total, each) => total + each, 0);

describe('the page of usage', () => {
  test('is of a week by hour and method unless asked otherwise', async () => {
    const html = await world.page(PATH);
    const { times, series } = drawnOf(html);
    expect([times.length, series.map(({ label, values }) => [label, sum(values)])]).toEqual([
      168,
      [
        ['getSlot', 100],
        ['getBlock', 40],
      ],
    ]);
    const text = textOf(html);
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
    const { times, series } = drawnOf(await world.page(`${PATH}?period=${period}`));
    expect([times.length, sum(series.flatMap(({ values }) => values))]).toEqual([bars, calls]);
  });

  test.each([
    ['credits', 100],
    ['errors', 2],
    ['refused', 10],
  ])('shows %s', async (show, total) => {
    const { series } = drawnOf(await world.page(`${PATH}?show=${show}`));
    expect(sum(series.flatMap(({ values }) => values))).toBe(total);
  });

  test('by key names each key, also one that is no more', async () => {
    const { series } = drawnOf(await world.page(`${PATH}?by=key&period=30d`));
    expect(series.map(({ label }) => label)).toEqual([expect.stringMatching(/^indexer \(….{4}\)$/), 'gone']);
  });

  test('is of one key or one method alone where a row led', async () => {
    const ofKey = await world.page(`${PATH}?key=gone&period=30d`);
    expect(textOf(ofKey)).toContain('Filtered by gone · Clear');
    expect(drawnOf(ofKey).series.map(({ label, values }) => [label, sum(values)])).toEqual([['getBlock', 7]]);
    const ofMethod = drawnOf(await world.page(`${PATH}?method=getBlock&period=30d`));
    expect(ofMethod.series.map(({ values }) => sum(values))).toEqual([40, 7]);
  });

  test('sums up what is beyond six', async () => {
    world.count(Array.from({ length: 8 }, (_, i) => ({ method: `get${i}`, calls: 200 + i, keyId })));
    const { series } = drawnOf(await world.page(PATH));
    expect(series.map(({ label }) => label)).toEqual([
      'get7',
      'get6',
      'get5',
      'get4',
      'get3',
      'get2',
      'Others',
    ]);
    expect(sum(series.at(-1)?.values ?? [])).toBe(200 + 201 + 140);
  });

  test('where nothing was used says so, without an empty chart', async () => {
    const html = await world.page(`${PATH}?key=none`);
    expect(html).toContain('No usage in this period');
    expect(html).not.toContain('data-chart');
    expect(html).not.toContain('Download CSV');
  });
});

describe('the file of usage', () => {
  const lines = async (query = '') => (await world.page(`${PATH}.csv${query}`)).trimEnd().split('\n');

  test('has the columns of the command, and the rows of its own account', async () => {
    const response = await world.ask(`${PATH}.csv?period=24h`);
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(response.headers.get('content-disposition')).toBe(
      'attachment; filename="usage-2026-11-19-to-2026-11-20.csv"',
    );
    expect(await response.text()).toBe(
      'hour,account,key_id,method,calls,credits,errors,bytes_out,refused\n' +
        `2026-11-20T00:00Z,acme,${keyId},getSlot,100,100,2,5000000,0\n`,
    );
  });

  test('is of the time, the key and the method of its page', async () => {
    expect(await lines('?period=90d')).toHaveLength(5);
    expect(await lines('?period=30d&key=gone')).toHaveLength(2);
    expect(await lines('?period=30d&method=getSlot')).toHaveLength(2);
  });

  test('is refused with the page while its user reads in eight places, and read when one was left', async () => {
    const readers = Array.from({ length: 8 }, () => world.turns.enter(CUSTOMER.userId));
    for (const path of [PATH, `${PATH}.csv`]) {
      const response = await world.ask(path);
      expect(response.status).toBe(503);
      expect(response.headers.get('retry-after')).toBe('2');
      expect(await response.text()).toContain('Reload this page in a moment.');
    }
    readers[0]?.leave();
    expect(await lines()).not.toEqual([]);
    // Read to its end or not, it leaves room for the next.
    const unread = await world.ask(`${PATH}.csv`);
    await unread.body?.cancel();
    expect((await world.ask(PATH)).status).toBe(200);
  });

  test('is linked from the page with what it is narrowed to', async () => {
    const html = await world.page(`${PATH}?period=30d&key=${keyId}&show=credits`);
    expect(html).toContain(`href="${PATH}.csv?period=30d&amp;key=${keyId}"`);
  });
});
