import { expect, test } from 'bun:test';
import { createWords } from '../../../gateway/workers.ts';

function spoken() {
  const stream = new TransformStream<Uint8Array, Uint8Array>();
  const writer = stream.writable.getWriter();
  const out: string[] = [];
  const words = createWords(stream.readable, (bytes) => void out.push(Buffer.from(bytes).toString()));
  return { ...words, out, say: (text: string) => writer.write(Buffer.from(text)), end: () => writer.close() };
}

test('nothing is handed on before the release, everything from it on', async () => {
  const words = spoken();
  await words.say('one\n');
  await words.say('two\n');
  expect(words.out).toEqual([]);
  words.release();
  await words.say('three\n');
  await words.end();
  await words.ended;
  expect(words.out.join('')).toBe('one\ntwo\nthree\n');
  expect(words.last()).toBe('one\ntwo\nthree');
});

test('the last words are bounded, however much is said', async () => {
  const words = spoken();
  for (let i = 0; i < 1_000; i++) await words.say(`line ${i}\n`);
  await words.end();
  await words.ended;
  expect(words.last().length).toBeLessThanOrEqual(4_096);
  expect(words.last()).toEndWith('line 998\nline 999');
  expect(words.out).toEqual([]);
});
