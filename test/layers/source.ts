import { join } from 'node:path';

/** One file of the project: its path from the root and its text. What every rule in this folder reads. */
export type Source = Readonly<{ path: string; text: string }>;

/** A broken rule, in one line that names the file. */
export type Breach = string;

/** The folders that hold the product; `test` checks them. */
export const PRODUCT = ['cli', 'gateway', 'deploys', 'shared', 'localnet', 'bench'] as const;

/** Every TypeScript file under `folders`. */
export function sourcesOf(root: string, folders: readonly string[]): Promise<readonly Source[]> {
  const paths = folders.flatMap((folder) => [
    ...new Bun.Glob(`${folder}/**/*.{ts,tsx}`).scanSync({ cwd: root }),
  ]);
  return Promise.all(
    paths.toSorted().map(async (path) => ({ path, text: await Bun.file(join(root, path)).text() })),
  );
}

/** The top folder of a path. */
export function topOf(path: string): string {
  return path.slice(0, path.indexOf('/'));
}

/** Whether this file is the one that acts: the only kind that may touch the environment. */
export function isMain(path: string): boolean {
  return path.endsWith('/main.ts');
}

/** The text without comments, roughly: enough to distinguish a name that is used from one that is only mentioned. */
export function codeOf({ text }: Source): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[^:'"`\\])\/\/.*$/gm, '$1');
}
