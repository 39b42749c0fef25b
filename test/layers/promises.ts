import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ROOT = dirname(dirname(import.meta.dir));
const TESTS = join(ROOT, 'test');

/** A promise with the tests whose titles have its id; a fault with the files that its page names for it. */
type Promised = Readonly<{ id: string; says: string; tests: readonly Title[]; files?: readonly string[] }>;

/** A title of a test in its file, which has neither `test/` nor endings. */
type Title = Readonly<{ file: string; text: string }>;

/** Sections of docs/spec.md in whose table each row is a promise, named by its first cell. */
const BY_ROW = ['2.5', '3.2', '4.1', '6'];

const FAULTS = [
  { page: 'faults', path: 'faults/README.md', row: /^\| ([A-HLMP]\d+) +\|([^|]*)\|([^|]+)\|/gm },
  { page: 'webhooks', path: 'deploys/delivery/README.md', row: /^\| (E\d+) +\|([^|]*)\|.*\|([^|]+)\|$/gm },
] as const;

/** The titles by the ids in them: `(§2.4.1)` and `(E18)` at the end, those of the page of faults at the beginning, as `A6 C7 `. */
export function titlesById(): ReadonlyMap<string, readonly Title[]> {
  const found = new Map<string, Title[]>();
  for (const path of [...new Bun.Glob('**/*.test.{ts,tsx}').scanSync({ cwd: TESTS })].toSorted()) {
    const file = path.replace(/(?:\.long)?\.test\.tsx?$/, '');
    const texts = readFileSync(join(TESTS, path), 'utf8').matchAll(/(['"`])((?:\\.|(?!\1)[^\\\n])*)\1/g);
    for (const [, , text = ''] of texts)
      for (const id of idsIn(text)) found.set(id, [...(found.get(id) ?? []), { file, text }]);
  }
  return found;
}

function idsIn(title: string): readonly string[] {
  const first = /^(?:[A-HLMP]\d{1,2} )+/.exec(title)?.[0].trim().split(' ') ?? [];
  const last = [...title.matchAll(/\(((?:§|E\d)[^()]*)\)/g)].flatMap(([, all = '']) =>
    all.split(/, (?=§|E\d)/),
  );
  return [
    ...first.map((id) => `faults ${id}`),
    ...last.map((id) => (id.startsWith('§') ? id : `webhooks ${id.split(', ')[0]}`)),
  ];
}

/** Every promise of docs/spec.md, by its section, and of the two pages of faults, by its row. */
export function readPromises(titles = titlesById()): readonly Promised[] {
  const faults = FAULTS.flatMap(({ page, path, row }) =>
    [...readFileSync(join(TESTS, path), 'utf8').matchAll(row)].map(([, id, says = '', cell = '']) => ({
      id: `${page} ${id}`,
      says,
      files: [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => fileOf(name, page)),
    })),
  );
  const specified = specifiedBy(readFileSync(join(ROOT, 'docs/spec.md'), 'utf8'));
  return [...specified, ...faults].map((each) => ({ ...each, tests: titles.get(each.id) ?? [] }));
}

/** The file that a page of faults names without its own folder. */
function fileOf(name: string, page: 'faults' | 'webhooks'): string {
  if (page === 'faults') return name.includes('/') ? name : `faults/${name}`;
  return /^(?:hosts|shared)\//.test(name) ? name : `deploys/${name}`;
}

/** The numbered points of each section, or the rows of its table, or else itself. */
function specifiedBy(page: string): readonly Readonly<{ id: string; says: string }>[] {
  return page.split(/^##+ (?=\d)/m).flatMap((section) => {
    const [, number = '', title = '', text = ''] = /^(\d(?:\.\d)?)\.? (.*)\n([^]*)$/.exec(section) ?? [];
    if (number === '') return [];
    const points = [...text.matchAll(/^(\d)\. (.*)$/gm)].map(([, n, says = '']) => [`§${number}.${n}`, says]);
    const table = BY_ROW.includes(number) ? [...text.matchAll(/^\| (.+?) +\|(.*)\|$/gm)].slice(2) : [];
    const rows = table.map(([, cell = '', says = '']) => [`§${number} ${cell.replaceAll('`', '')}`, says]);
    const all = new Map([...points, ...rows].map(([id = '', says = '']) => [id, says]));
    return [...(all.size > 0 ? all : [[`§${number}`, title] as const])].map(([id, says]) => ({ id, says }));
  });
}

if (import.meta.main) {
  for (const { id, says, tests } of readPromises()) {
    console.log(`${id}: ${says.trim().replaceAll(/ +/g, ' ')}`);
    for (const { file, text } of tests) console.log(`  ${file}: ${text}`);
    if (tests.length === 0) process.exitCode = 1;
  }
}
