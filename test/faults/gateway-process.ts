import { readdirSync } from 'node:fs';
import { residentBytes } from '../started/process.ts';
import { startAlone } from '../started/crew.ts';

const PLANS = '[plans.scale]\nrps = 1_000_000\nburst = 1_000_000\nmax_batch = 500\nscans = 1_000\n';

/** A gateway as a process of its own before one backend, with a key without limits that matter, and its memory and files. */
export async function startGatewayProcess(backendUrl: string) {
  const started = await startAlone(backendUrl, { extra: PLANS });
  const key = started.key();
  return {
    ...started,
    key,
    post: (body: string, init: RequestInit = {}) => started.post(key, body, { keepalive: true, ...init }),
    /** Its resident memory in bytes. */
    resident: () => residentBytes(started.pid),
    /** Files and sockets it has open (Linux). */
    descriptors: () => readdirSync(`/proc/${started.pid}/fd`).length,
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
