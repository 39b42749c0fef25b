import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { crewConfig } from '../../../test/started/crew.ts';
import { addKey, opened, temporaryFolder } from '../../../test/started/gateway.ts';
import { ROOT, startProcess } from '../../../test/started/process.ts';
import { freePort } from '../../../test/started/ports.ts';
import { startRedis } from '../../../test/started/redis.ts';
import { admitted, type Answers, outcomes } from '../answers.ts';
import { at, offering, soonMs } from '../offering.ts';
import { atLeast, atMost, exactly, type Finding, said } from './finding.ts';
import { CALL } from './subject.ts';

type Wipes = Readonly<{
  hosts: number;
  wipes: number;
  everyMs: number;
  perSecond: number;
  credits: number;
}>;

type Wiped = Readonly<{ wipes: number; credits: number; seen: Answers }>;

/** No node holds more than this part of a trial. */
const PART_MAX = 1 / 100;
const CONNECTIONS = 8;
const REST_SECONDS = 10;
const PLANS = '[plans.wiped]\nrps = 1_000_000\nburst = 1_000_000\ncredits = 1\n';

/** A gateway on a host of its own: its data directory is nobody else's. */
type Host = {
  readonly folder: string;
  readonly args: readonly string[];
  process: Awaited<ReturnType<typeof startProcess>>;
};

/** Hosts that share a trial by one Redis, and lose power and disk one after the other (limits.md 5, row 8). */
export async function wipe(options: Wipes, signal: AbortSignal): Promise<Wiped> {
  const { wipes, everyMs, perSecond, credits } = options;
  await using parts = new AsyncDisposableStack();
  const redis = parts.use(await startRedis());
  const backend = parts.use(await startProcess([join(ROOT, 'bench/self/backend.ts')], ROOT));
  const first = temporaryFolder();
  parts.use(first);
  const accounts = opened(join(first.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const key = addKey(accounts, 'wiped', credits);
  accounts.run('PRAGMA wal_checkpoint(TRUNCATE)');
  accounts.close();

  const hosts: Host[] = [];
  for (let i = 0; i < options.hosts; i++) {
    const folder = temporaryFolder();
    parts.use(folder);
    cpSync(first.path, folder.path, { recursive: true });
    const { args } = crewConfig(folder.path, {
      backendUrl: backend.url.href,
      processes: 1,
      listen: `127.0.0.1:${freePort()}`,
      storageLines: `redis = "${redis.url}"\n`,
      extra: PLANS,
    });
    const host: Host = { folder: folder.path, args, process: await startProcess(args, folder.path) };
    parts.defer(() => host.process[Symbol.asyncDispose]());
    hosts.push(host);
  }

  const startMs = soonMs();
  const seconds = Math.ceil((wipes * everyMs) / 1_000) + REST_SECONDS;
  const load = {
    key,
    bodies: [CALL],
    perSecond: perSecond / hosts.length,
    connections: CONNECTIONS,
    seconds,
    startMs,
  };
  const loading = Promise.all(
    hosts.map(({ process: { url } }) => offering({ ...load, url: url.href }, signal)),
  );
  let done = 0;
  for (; done < wipes && !signal.aborted; done++) {
    await at(startMs + everyMs * (done + 1), signal);
    const host = hosts[done % hosts.length];
    if (host !== undefined) await loseAll(host);
  }
  const seen = (await loading).flat().toSorted((a, b) => a.sentMs - b.sentMs);
  return { wipes: done, credits, seen };
}

/** kill -9, and a new disk that has the accounts and the config alone. */
async function loseAll(host: Host): Promise<void> {
  await host.process[Symbol.asyncDispose]();
  for (const name of readdirSync(host.folder))
    if (!name.startsWith(ACCOUNTS_FILE) && !name.endsWith('.toml'))
      rmSync(join(host.folder, name), { recursive: true });
  host.process = await startProcess(host.args, host.folder);
}

/** That nothing is spent twice, and no more is out of reach than lost nodes may have held. */
export function bounded({ wipes, credits, seen }: Wiped): readonly Finding[] {
  const counts = outcomes(seen);
  const lost = counts.lost ?? 0;
  return [
    said('disks lost', String(wipes)),
    atMost('credits answered', admitted(seen), credits),
    atLeast('credits answered', admitted(seen), credits - wipes * credits * PART_MAX - lost),
    atLeast('402 at the end', counts['out-of-credits'] ?? 0, 1),
    exactly('answers that contradict themselves', counts.strange ?? 0, 0),
  ];
}
