import { describe, expect, test } from 'bun:test';
import { periodFrom } from '../../cli/period.ts';

const hour = (text: string) => Date.parse(`${text}:00Z`) / 3_600_000;
const NOW_MS = Date.parse('2026-11-21T19:30:00Z');
const hours = (from: string, to: string) => ({ kind: 'hours', fromHour: hour(from), toHour: hour(to) });

describe('the hours that are asked for', () => {
  test.each([
    [undefined, undefined, '2026-11-20T20', '2026-11-21T20'],
    ['2026-11-01', undefined, '2026-11-01T00', '2026-11-21T20'],
    [undefined, '2026-11-01', '2026-11-01T00', '2026-11-02T00'],
    [undefined, '2026-11-01T05', '2026-10-31T06', '2026-11-01T06'],
    ['2026-11-01', '2026-11-01', '2026-11-01T00', '2026-11-02T00'],
    ['2026-11-01T05', '2026-11-01T05', '2026-11-01T05', '2026-11-01T06'],
    ['2026-11-01T05:00Z', '2026-11-01T23:00', '2026-11-01T05', '2026-11-02T00'],
    ['2024-02-29', '2024-02-29T12', '2024-02-29T00', '2024-02-29T13'],
  ])('from %p to %p are %s up to %s', (from, to, first, end) => {
    expect(periodFrom(from, to, NOW_MS)).toEqual(hours(first, end) as never); // its kind is a text here
  });

  test.each([
    ['2026-13-01'],
    ['2026-02-30'],
    ['2026-11-1'],
    ['2026-11-01T24'],
    ['2026-11-01T5'],
    ['2026-11-01T05:30Z'],
    ['yesterday'],
    ['2026-11-01+02:00'],
    ['1e3'],
  ])('cannot be read from %p', (text) => {
    expect(periodFrom(text, undefined, NOW_MS)).toEqual({ kind: 'unreadable', option: 'from' });
    expect(periodFrom(undefined, text, NOW_MS)).toEqual({ kind: 'unreadable', option: 'to' });
  });

  test('do not run backwards', () => {
    expect(periodFrom('2026-11-02', '2026-11-01', NOW_MS)).toEqual({ kind: 'backwards' });
    expect(periodFrom('2026-11-22', undefined, NOW_MS)).toEqual({ kind: 'backwards' });
    expect(periodFrom('2026-11-01T06', '2026-11-01T05', NOW_MS)).toEqual({ kind: 'backwards' });
  });
});
