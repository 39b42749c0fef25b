import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../started/gateway.ts';
import { freePort } from '../started/ports.ts';
import { MAIN, plainEnv } from './sluice.ts';

/** A folder with a config of its own: free ports, data inside. `more` is further TOML. */
export async function installation(more = '') {
  const folder = temporaryFolder();
  const [gateway, deploys, localnet] = [freePort(), freePort(), freePort()];
  const config = join(folder.path, 'sluice.toml');
  const dataDir = join(folder.path, 'data');
  writeFileSync(
    config,
    `[gateway]
listen = "127.0.0.1:${gateway}"
metrics = "127.0.0.1:${freePort()}"
[deploys]
listen = "127.0.0.1:${deploys}"
metrics = "127.0.0.1:${freePort()}"
poll_seconds = 1
[storage]
data_dir = "${dataDir}"
[localnet]
listen = "127.0.0.1:${localnet}"
slot_ms = 50
rooted_lag = 2
${more}`,
  );
  return { ...folder, config, dataDir, ports: { gateway, deploys, localnet } };
}

type Installation = Awaited<ReturnType<typeof installation>>;

/** `start` on that installation, in a process group of its own, as a terminal would run it. */
export function begin(
  { config, path }: Installation,
  options: Readonly<{ command?: readonly string[]; cwd?: string; args?: readonly string[] }> = {},
) {
  const command = options.command ?? [process.execPath, MAIN, 'start'];
  const child = Bun.spawn([...command, '--config', config, ...(options.args ?? [])], {
    cwd: options.cwd ?? path,
    env: plainEnv(),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    detached: true,
  });
  let out = '';
  const err = child.stderr.text();
  const ready = Promise.withResolvers<string>();
  const ended = (async () => {
    const decoder = new TextDecoder();
    for await (const bytes of child.stdout) {
      out += decoder.decode(bytes, { stream: true });
      if (out.includes('Ctrl-C stops everything') || out.includes('"gateway":')) ready.resolve(out);
    }
    ready.resolve(out);
    const code = await child.exited;
    return { code, out, err: await err };
  })();
  return { child, pid: child.pid, ready: ready.promise, ended };
}

/** Ids of the processes that have the config of this installation on their command line. */
export function processesOf({ config }: Installation): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(config);
      } catch {
        return false; // ended while we looked
      }
    })
    .map(Number);
}

/** Waits until no process of the installation is left; gives those that are after ten seconds. */
export async function gone(installed: Installation): Promise<readonly number[]> {
  for (let i = 0; i < 100 && processesOf(installed).length > 0; i++) await Bun.sleep(100);
  return processesOf(installed);
}
