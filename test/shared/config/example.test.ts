import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { configFrom } from '../../../shared/config/config.ts';
import { PRICES_BY_DEFAULT } from '../../../shared/config/plans.ts';

const ENV = {
  SLUICE_WATCHER_KEY: 'k',
  SLUICE_SECRET: Buffer.alloc(32).toString('base64'),
  AGAVE_TOKEN: 't',
  SLUICE_OIDC_SECRET: 'o',
};
const text = await Bun.file(join(import.meta.dir, '../../../sluice.example.toml')).text();
/** The file with every setting that is commented out, `#key = ...`, taken in. */
const whole = Bun.TOML.parse(text.replace(/^#(?=[a-z[])/gm, ''));

/** Every key of a document, as `table.key`; lists of tables count once. */
function keysOf(value: unknown, path: string): readonly string[] {
  if (Array.isArray(value)) return keysOf(value[0], path);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    const own = path === '' ? key : `${path}.${key}`;
    return [own, ...keysOf(member, own)];
  });
}

test('a copy of sluice.example.toml changes nothing', () => {
  const [copied, embedded] = [configFrom(Bun.TOML.parse(text), {}), configFrom({}, {})];
  expect(copied.kind).toBe('config');
  expect(copied).toEqual(embedded);
});

test('every price that is not the usual one stands in it', () => {
  expect(PRICES_BY_DEFAULT.size).toBeGreaterThan(30);
  const { credits } = Bun.TOML.parse(text) as { credits: { methods: Record<string, number> } }; // the test above reads it
  expect(new Map(Object.entries(credits.methods))).toEqual(new Map(PRICES_BY_DEFAULT));
});

test('every setting in it is accepted, those commented out too', () => {
  expect(configFrom(whole, ENV)).toMatchObject({
    kind: 'config',
    config: { backends: [{ name: 'agave-1' }] },
  });
});

test('it has every key that the config knows', async () => {
  // That the page has all of them is proven beside it.
  const page = await Bun.file(join(import.meta.dir, '../../../docs/configure.md')).text();
  const known = [...page.matchAll(/^\| `([^`]+)` +\|/gm)].map(([, key = '']) => key.replace('[]', ''));
  expect(known.length).toBeGreaterThan(35);
  const keys = keysOf(whole, '').map((key) => key.replace(/^plans\.\w+/, 'plans.NAME'));
  expect(known.filter((key) => !keys.includes(key))).toEqual([]);
});
