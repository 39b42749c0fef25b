import { importsOf } from './imports.ts';
import { type Breach, type Source, topOf } from './source.ts';

/** The folder of an app that a path is in; the app itself for files beside the folders. */
function folderOf(path: string): string {
  const [top = '', folder = '', ...rest] = path.split('/');
  return rest.length === 0 ? top : `${top}/${folder}`;
}

/** Imports from one folder of an app into another, or into the files beside them. */
function edgesOf(sources: readonly Source[]) {
  return sources.flatMap((source) =>
    importsOf(source)
      .filter((target) => topOf(target) === topOf(source.path) && folderOf(target) !== folderOf(source.path))
      .map((target) => ({ path: source.path, target, from: folderOf(source.path), to: folderOf(target) })),
  );
}

/** The folders of `app` in the order in which its README lists them. */
export function orderIn(readme: string, app: string): readonly string[] {
  return [...readme.matchAll(/^\d+\. `([a-z-]+)\/`/gm)].map(([, name]) => `${app}/${name}`);
}

/** Apps whose files beside the folders are what all folders stand on; elsewhere they put the folders together. */
const ON_THEIR_FILES: readonly string[] = ['shared', 'bench'];

/** Folders that `order` leaves out or invents, and imports of a folder that `order` has behind it, or of files that put folders together. */
export function againstOrder(sources: readonly Source[], order: readonly string[]): readonly Breach[] {
  const apps = new Set(order.map(topOf));
  const own = sources.filter(({ path }) => apps.has(topOf(path)));
  const folders = new Set(own.map(({ path }) => folderOf(path)).filter((folder) => folder.includes('/')));
  const wrong = edgesOf(own).filter(
    ({ from, to }) =>
      from.includes('/') &&
      (to.includes('/') ? order.indexOf(to) > order.indexOf(from) : !ON_THEIR_FILES.includes(to)),
  );
  return [
    ...[...folders]
      .filter((folder) => !order.includes(folder))
      .map((folder) => `${folder} is not in the order`),
    ...order.filter((folder) => !folders.has(folder)).map((folder) => `${folder} is in the order alone`),
    ...wrong.map(({ path, target }) => `${path} imports ${target} against the order`),
  ];
}

/** Pairs of folders that import each other. */
export function mutualFolders(sources: readonly Source[]): readonly Breach[] {
  const edges = edgesOf(sources).filter(({ from, to }) => from.includes('/') && to.includes('/'));
  const pairs = edges.filter(
    ({ from, to }) => from < to && edges.some((back) => back.from === to && back.to === from),
  );
  return [...new Set(pairs.map(({ from, to }) => `${from} and ${to} import each other`))];
}

/** Imports of one of two folders in the other. */
export function meetings(sources: readonly Source[], folders: readonly [string, string]): readonly Breach[] {
  const edges = edgesOf(sources).filter(({ from, to }) => folders.includes(from) && folders.includes(to));
  return edges.map(({ path, target }) => `${path} imports ${target}`);
}

/** Files that import themselves through others. */
export function circles(sources: readonly Source[]): readonly Breach[] {
  const imports = new Map(sources.map((source) => [source.path, importsOf(source)]));
  return sources.flatMap(({ path }) => {
    const reached = new Set<string>();
    const open = [...(imports.get(path) ?? [])];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (reached.has(next)) continue;
      reached.add(next);
      open.push(...(imports.get(next) ?? []));
    }
    const [back] = [...reached].filter((other) => imports.get(other)?.includes(path));
    return reached.has(path) ? [`${path} is in a circle with ${back}`] : [];
  });
}
