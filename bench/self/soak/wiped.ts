import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE } from '../../../shared/keys/schema.ts';
import { startCrew } from '../../../test/started/crew.ts';
import { temporaryFolder } from '../../../test/started/gateway.ts';
import { freePort } from '../../../test/started/ports.ts';
import { startRedis } from '../../../test/started/redis.ts';
import { admitted, at, offering, outcomes, soonMs } from '../load.ts';
import { atLeast, atMost, exactly, type Finding, said } from '../finding.ts';
import { addAccounts, keyAt } from '../many-keys.ts';
import { CALL, startBackend } from '../subject.ts';

const [HOSTS, WIPES, EVERY_MS, PER_SECOND, CREDITS] = [4, 10, 2_000, 1_000, 20_000];
/** No node holds more than this part of a trial. */
const PART_MAX = 1 / 100;
const CONNECTIONS = 8;
const REST_SECONDS = 10;
const PLANS = '[plans.wiped]\nrps = 1_000_000\nburst = 1_000_000\ncredits = 1\n';

/**
 * Hosts that share a trial by one Redis, each with a data directory of its own, and lose power and disk one after the other:
 * nothing is spent twice, and no more is out of reach than lost nodes may have held.
 */
export async function wipe(signal: AbortSignal): Promise<readonly Finding[]> {
  await using parts = new AsyncDisposableStack();
  const redis = parts.use(await startRedis());
  const backend = parts.use(await startBackend());
  /** A gateway on a host of its own. */
  async function startHost() {
    const { path: dataDir } = parts.use(temporaryFolder());
    const options = {
      backendUrl: backend.url.href,
      processes: 1,
      listen: `127.0.0.1:${freePort()}`,
      dataDir,
      storageLines: `redis = "${redis.url}"\n`,
      extra: PLANS,
    };
    let crew = await startCrew(options);
    parts.defer(() => crew[Symbol.asyncDispose]());
    addAccounts(crew.accounts, 'wiped', 1);
    crew.accounts.run('UPDATE accounts SET credits_granted = ?', [CREDITS]);
    return {
      url: crew.url.href,
      /** kill -9, and a new disk that has the accounts alone. */
      async loseAll(): Promise<void> {
        await crew[Symbol.asyncDispose]();
        for (const name of readdirSync(dataDir))
          if (!name.startsWith(ACCOUNTS_FILE)) rmSync(join(dataDir, name), { recursive: true });
        crew = await startCrew(options);
      },
    };
  }
  const hosts: Awaited<ReturnType<typeof startHost>>[] = [];
  for (let i = 0; i < HOSTS; i++) hosts.push(await startHost());

  const startMs = soonMs();
  const seconds = Math.ceil((WIPES * EVERY_MS) / 1_000) + REST_SECONDS;
  const load = { key: keyAt(1), bodies: [CALL], connections: CONNECTIONS, seconds, startMs };
  const loading = Promise.all(
    hosts.map(({ url }) => offering({ ...load, url, perSecond: PER_SECOND / HOSTS }, signal)),
  );
  for (let done = 0; done < WIPES; done++) {
    await at(startMs + EVERY_MS * (done + 1), signal);
    signal.throwIfAborted();
    await hosts[done % HOSTS]?.loseAll();
  }
  const seen = (await loading).flat();
  const { lost = 0, strange = 0, ...counts } = outcomes(seen);
  return [
    said('disks lost', String(WIPES)),
    atMost('credits answered', admitted(seen), CREDITS),
    atLeast('credits answered', admitted(seen), CREDITS - WIPES * CREDITS * PART_MAX - lost),
    atLeast('402 at the end', counts['out-of-credits'] ?? 0, 1),
    exactly('answers that contradict themselves', strange, 0),
  ];
}
