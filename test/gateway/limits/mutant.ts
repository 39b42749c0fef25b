import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Authority } from './world.ts';

const SOURCES = join(import.meta.dir, '../../../gateway/limits');
const FILES = ['authority', 'authority-rate', 'authority-credits', 'messages'];

/**
 * The arithmetic with a fault planted where `from` stands, which is in one place. Its files import values of each other
 * alone, so that copies of them run from anywhere.
 */
export async function authorityWith(from: string, to: string, folder: string): Promise<Authority> {
  const path = join(folder, Bun.hash(from + to).toString(36));
  mkdirSync(path);
  let places = 0;
  for (const name of FILES) {
    const parts = (await Bun.file(join(SOURCES, `${name}.ts`)).text()).split(from);
    places += parts.length - 1;
    await Bun.write(join(path, `${name}.ts`), parts.join(to));
  }
  if (places !== 1) throw new Error(`the arithmetic holds ${places} times: ${from}`);
  const { answer }: { answer: Authority } = await import(join(path, 'authority.ts'));
  return answer;
}

/** Faults as rows `name | what stands in the source -> what replaces it`. */
export function faultsIn(rows: string): readonly (readonly [name: string, from: string, to: string])[] {
  const parts = rows
    .trim()
    .split('\n')
    .map((row) => row.split(/ \| | -> /));
  return parts.map(([name = '', from = '', to = '']) => [name, from, to]);
}
