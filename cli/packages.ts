import { statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';

/** Whether the packages of `root` are missing or older than the lock file. */
export function packagesAreStale(root: string): boolean {
  const installed = changedAtMs(join(root, 'node_modules'));
  const locked = changedAtMs(join(root, 'bun.lock'));
  return installed === undefined || (locked !== undefined && installed < locked);
}

/** Installs exactly what the lock file says, and says so first where that takes time; gives the installer's own words when it fails. */
export async function installPackages(
  root: string,
  env: Readonly<Record<string, string | undefined>>,
  say: (text: string) => unknown,
): Promise<string | undefined> {
  if (packagesAreStale(root)) say(`Installing packages into ${join(root, 'node_modules')}...\n`);
  const install = Bun.spawn([process.execPath, 'install', '--frozen-lockfile'], {
    cwd: root,
    env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: INSTALL_MS_MAX,
  });
  const [out, err] = await Promise.all([install.stdout.text(), install.stderr.text(), install.exited]);
  if (install.exitCode !== 0) return `${out}${err}The packages could not be installed. See above.`;
  if (packagesAreStale(root)) touch(join(root, 'node_modules'), join(root, 'bun.lock'));
  return undefined;
}

/** A slow line may take minutes for the first install. */
const INSTALL_MS_MAX = 10 * 60_000;

/** An install that finds nothing to do leaves the folder's time alone, and the next command would install again. */
function touch(path: string, like: string) {
  const { atime, mtimeMs } = statSync(like);
  // A time is set to the millisecond: the file's own would be before it.
  utimesSync(path, atime, new Date(Math.ceil(mtimeMs)));
}

function changedAtMs(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}
