import { type Breach, codeOf, type Source, topOf } from './source.ts';

/** The packages of a `package.json`: what an install for production has, by name. */
type Manifest = Readonly<{ dependencies: Readonly<Record<string, string>> }>;

/** Folders that are packages of their own, which a production install leaves out. */
const WORKSPACES = ['localnet', 'bench'];

/** Imports of packages that the folder's own `package.json` does not name; that of `gateway`, `deploys`, `shared` and `cli` is the root's. */
export function foreignPackages(
  sources: readonly Source[],
  manifests: Readonly<Record<string, Manifest>>,
): readonly Breach[] {
  return sources.flatMap((source) => {
    const own = manifests[topOf(source.path)] ?? manifests['.'];
    return packagesOf(source)
      .filter((name) => own?.dependencies[name] === undefined)
      .map((name) => `${source.path} imports ${name}`);
  });
}

/** Packages that a file imports, or finds files of; the runtime's own modules are none. */
function packagesOf(source: Source): readonly string[] {
  const found = codeOf(source).matchAll(
    /(?:^import\s+|^(?:import|export)\s[^;'=]*\sfrom\s+|\bimport\(|\bresolveSync\()'((?:@[\w-]+\/)?[a-z][\w.-]*)(?:\/[^']*)?'/gm,
  );
  return [...found].map(([, name = '']) => name).filter((name) => name !== 'bun');
}

/** Imports of what a production install cannot run, by files that it has: those at run time and not on demand. */
export function workspaceImports(sources: readonly Source[]): readonly Breach[] {
  return sources
    .filter(({ path }) => !WORKSPACES.includes(topOf(path)))
    .flatMap((source) =>
      [
        ...codeOf(source).matchAll(
          /^(?:import|export)(?! type)[^;]*?\bfrom\s*'[./]+(localnet|bench)\/[^']*'/gm,
        ),
      ].map(([, folder]) => `${source.path} imports ${folder}`),
    );
}
