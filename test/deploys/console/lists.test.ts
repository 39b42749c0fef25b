import { expect, test } from 'bun:test';
import { addressOf } from '../../fakes/chain.ts';
import { type Customer, startWorld, type World } from './world.ts';

type Fill = (world: World, acme: Customer) => unknown;
const each = (count: number, make: (n: number) => unknown) => {
  for (let n = 0; n < count; n++) make(n);
};
const PINGS: Fill = async (world, { by }) => {
  const { id } = await world.addWebhook(by, { url: 'https://hooks.example.com/' });
  each(120, (n) => world.enqueue.ping(id, world.clock.now() + Math.floor(n / 7)));
};
const WEBHOOKS: Fill = async (world, { by }) => {
  for (let n = 0; n < 21; n++) await world.addWebhook(by, { url: `https://h${n}.example.com/` });
};
const FAILING: Fill = ({ store }) =>
  each(30, (n) =>
    store.run(
      `INSERT INTO webhooks (id, account_id, url, host, secret_ct, secret_kid, created_at_ms, updated_at_ms,
         failing_since_ms, consecutive_failures) VALUES (?, 1, 'x', 'h.example', x'00', 1, 0, 0, ?, 1)`,
      [`w${n}`, Math.floor(n / 2)],
    ),
  );
const DEPLOYS: Fill = ({ save }) =>
  each(60, (n) => save([[addressOf('A'), { status: 'frozen', deploySlot: BigInt(1_000 + n) }]]));

test.each<[list: string, path: string, fill: Fill, row: RegExp, rowsOfPages: number[]]>([
  [
    'keys',
    '/accounts/1/keys',
    ({ addKey }) => each(60, (n) => addKey(`k${n}`)),
    /keys\/[0-9a-f]{16}"/g,
    [50, 10],
  ],
  ['webhooks', '/accounts/1/webhooks', WEBHOOKS, /<strong>h\d+\./g, [20, 1]],
  ['deliveries', '/accounts/1/deliveries', PINGS, /deliveries\/[0-9a-f-]{36}"/g, [50, 50, 20]],
  [
    'deploys',
    `/accounts/1/programs/${addressOf('A')}`,
    DEPLOYS,
    /rowheader"[^>]*>(?:<[^>]*>)*1,0\d\d/g,
    [50, 10],
  ],
  [
    'accounts',
    '/operator/accounts',
    ({ account }) => each(60, (n) => account(`a${n}`)),
    /accounts\/\d+"/g,
    [50, 11],
  ],
  ['failing webhooks', '/operator/queue', FAILING, /webhooks\/w\d+/g, [25, 5]],
  ['audit', '/operator/audit', ({ account }) => each(60, (n) => account(`a${n}`)), />a\d+</g, [50, 10]],
])(
  '%s are shown a page at a time, each once, and only the first page keeps itself up to date',
  async (...row) => {
    const [, path, fill, pattern, wanted] = row;
    using world = startWorld();
    const acme = world.customer();
    await fill(world, acme);
    const found: string[][] = [];
    for (let to = path; to !== '' && found.length < 9;) {
      const { html, older } = await world.operator.get(to);
      if (found.length > 0 && path.endsWith('deliveries')) expect(html).not.toContain('data-live');
      found.push(html.match(pattern) ?? []);
      to = older;
    }
    expect(found.map(({ length }) => length)).toEqual(wanted);
    expect(new Set(found.flat()).size).toBe(found.flat().length);
  },
);
