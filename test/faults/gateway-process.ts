import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { addKey, JSON_HEADERS, opened, temporaryFolder } from '../started/gateway.ts';
import { residentBytes, ROOT, startProcess } from '../started/process.ts';

/** A gateway as a process of its own before one backend, with what can be seen of it from outside. */
export async function startGatewayProcess(backendUrl: string, idleSeconds = 120) {
  const folder = temporaryFolder();
  const config = join(folder.path, 'sluice.toml');
  writeFileSync(
    config,
    `[gateway]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\nidle_seconds = ${idleSeconds}\n` +
      `[storage]\ndata_dir = "${folder.path}"\n[[backends]]\nname = "a"\nurl = "${backendUrl}"\n` +
      '[plans.scale]\nrps = 1_000_000\nburst = 1_000_000\nmax_batch = 500\nscans = 1_000\n',
  );
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const key = addKey(accounts, 'scale');
  accounts.close();
  const started = await startProcess([join(ROOT, 'gateway/main.ts'), '--config', config], folder.path);
  return {
    url: started.url,
    stderr: started.stderr,
    /** A key without limits that matter here. */
    key,
    post: (body: string, init: RequestInit = {}) =>
      fetch(started.url, {
        method: 'POST',
        body,
        ...init,
        headers: { ...JSON_HEADERS, 'x-token': key, ...init.headers },
      }),
    /** Its resident memory in bytes. */
    resident: () => residentBytes(started.pid),
    /** Files and sockets it has open (Linux). */
    descriptors: () => readdirSync(`/proc/${started.pid}/fd`).length,
    async [Symbol.asyncDispose]() {
      await started[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

/** Looks in which nothing may move; several, as a busy machine may let no process run for a while between two. */
const LOOKS = 10;

/** Resolves when `read` gives the same for `restMs`: what moved has come to rest. The test's own timeout bounds it. */
export async function atRest(read: () => number, restMs = 100): Promise<number> {
  let seen = read();
  for (let same = 0; same < LOOKS; same++) {
    await Bun.sleep(restMs / LOOKS); // the end of movement is the event awaited
    const now = read();
    if (now !== seen) [seen, same] = [now, -1];
  }
  return seen;
}
