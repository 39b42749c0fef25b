import { join } from 'node:path';
import { type CrewOptions, startCrew } from '../../../test/faults/gateway-crew.ts';
import { residentBytes, ROOT, startProcess } from '../../../test/started/process.ts';
import { startRedis } from '../../../test/started/redis.ts';

/** What several gateway processes share their accounts by. */
export const CENTRES = ['sqlite', 'redis'] as const;
export type Centre = (typeof CENTRES)[number];

export const CALL = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';

type Options = Readonly<{ processes: number; extra: string; redisUrl?: string | undefined }>;

/** Gateway processes on one port before the cheapest backend there is. */
export async function startSubject({ processes, extra, redisUrl }: Options) {
  await using parts = new AsyncDisposableStack();
  const backend = parts.use(await startProcess([join(ROOT, 'bench/self/backend.ts')], ROOT));
  const storageLines = redisUrl === undefined ? '' : `redis = "${redisUrl}"\n`;
  const options: CrewOptions = { backendUrl: backend.url.href, processes, extra, storageLines };
  const crew = parts.use(await startCrew(options));
  const owned = parts.move();
  return {
    crew,
    /** The greatest resident memory of its processes in bytes. */
    resident: () => Math.max(...[...crew.processes().values()].map(residentBytes)),
    /** Lines that it logged until it ended; ends it. */
    async linesLogged(): Promise<number> {
      crew.kill('SIGTERM');
      await crew.exited;
      return crew.linesPrinted() + (await crew.stderr).split('\n').length - 1;
    },
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

/** A Redis of the scenario's own when `centre` is one. */
export async function startCentre(centre: Centre) {
  const redis = centre === 'redis' ? await startRedis() : undefined;
  return {
    redis,
    url: redis?.url,
    [Symbol.asyncDispose]: async () => redis?.[Symbol.asyncDispose](),
  };
}
