import { expect, test } from 'bun:test';
import { createSendIds } from '../../../gateway/request/send-id.ts';

const textOf = (id: Uint8Array) => Buffer.from(id).toString();

test('B7 every send has an id of its own: 16 characters of base 32 in quotes, of five random bits each, that stays as it was', () => {
  const blocks: number[] = [];
  const nextId = createSendIds((bytes) => {
    blocks.push(bytes.length);
    crypto.getRandomValues(bytes);
  });
  const ids = Array.from({ length: 2_000 }, nextId);
  const texts = ids.map(textOf);
  expect(texts.filter((text) => !/^"[A-Z2-7]{16}"$/.test(text))).toEqual([]);
  expect(new Set(texts).size).toBe(2_000);
  // Each character is as often as any other at each place, within six standard deviations.
  for (let at = 1; at <= 16; at++) {
    const counts = Object.values(Object.groupBy(texts, (text) => text[at] ?? '')).map(
      (all) => all?.length ?? 0,
    );
    expect(counts.length).toBe(32);
    expect(Math.max(...counts)).toBeLessThan(2_000 / 32 + 6 * Math.sqrt(2_000 / 32));
  }
  expect(ids.map(textOf)).toEqual(texts);
  expect(blocks.length).toBeLessThan(5);
});

test('B7 an id is made of what was random, and of nothing else', () => {
  const [zeros, ones] = [0, 255].map((byte) => createSendIds((bytes) => bytes.fill(byte)));
  expect([textOf(zeros?.() ?? new Uint8Array()), textOf(zeros?.() ?? new Uint8Array())]).toEqual([
    '"AAAAAAAAAAAAAAAA"',
    '"AAAAAAAAAAAAAAAA"',
  ]);
  expect(textOf(ones?.() ?? new Uint8Array())).toBe('"7777777777777777"');
});
