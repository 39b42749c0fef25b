import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { ROOT } from '../../started/process.ts';

const css = await Bun.file(join(ROOT, 'deploys/console/assets/page.css')).text();
const pairs = [...css.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)];
const tokens = new Map(pairs.map(([, name = '', light = '', dark = '']) => [name, { light, dark }]));

/** Relative luminance (WCAG 2.2). */
function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function contrast(a: string, b: string): number {
  const [light = 0, dark = 0] = [luminance(a), luminance(b)].toSorted((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

const GROUNDS = ['canvas', 'surface', 'raised'];
const WASHES = ['good', 'bad', 'warning', 'waiting', 'quiet'];
/** Text on its ground: 4.5:1. */
const TEXTS = [
  ...['ink', 'ink-soft', 'accent'].flatMap((ink) => GROUNDS.map((ground) => [ink, ground])),
  ...WASHES.map((tone) => [`${tone}-ink`, `${tone}-wash`]),
  ...WASHES.map((tone) => [`${tone}-ink`, 'surface']),
  ['accent-ink', 'accent-wash'],
  ['ink-soft', 'bad-wash'],
  ['danger', 'surface'],
  ['on-accent', 'accent-strong'],
  ['on-danger', 'danger-strong'],
];
/** Shapes that say something, such as a field's edge: 3:1. */
const SHAPES = [
  ...['line-strong', 'focus'].flatMap((shape) => GROUNDS.map((ground) => [shape, ground])),
  ...[1, 2, 3, 4, 5, 6, 7].map((n) => [`series-${n}`, 'surface']),
];
const ROWS = [
  ...TEXTS.map(([over = '', ground = '']) => [over, ground, 4.5] as const),
  ...SHAPES.map(([over = '', ground = '']) => [over, ground, 3] as const),
];

test('black on white is 21:1', () => expect(contrast('#000000', '#ffffff')).toBeCloseTo(21));

test.each(ROWS)('%s on %s is at least %f:1 in both themes', (over, ground, least) => {
  const [above, below] = [tokens.get(over), tokens.get(ground)];
  if (above === undefined || below === undefined) throw new Error(`no token ${over} or ${ground}`);
  expect(contrast(above.light, below.light)).toBeGreaterThanOrEqual(least);
  expect(contrast(above.dark, below.dark)).toBeGreaterThanOrEqual(least);
});
