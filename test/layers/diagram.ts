import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dir, '../..');

/** The arrows of the first state diagram in a file after the text `after`, as `from --> to`. */
export function arrowsIn(path: string, after = ''): ReadonlySet<string> {
  const text = readFileSync(join(root, path), 'utf8');
  const [diagram = ''] = (text.slice(text.indexOf(after)).split('stateDiagram-v2')[1] ?? '').split('```');
  return new Set([...diagram.matchAll(/\S+ --> \S+\b/g)].map(([arrow]) => arrow));
}
