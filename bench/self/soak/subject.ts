import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import type { Store } from '../../../shared/store/open.ts';
import { type CrewOptions, startCrew } from '../../../test/started/crew.ts';
import { opened } from '../../../test/started/gateway.ts';
import { residentBytes, ROOT, startProcess } from '../../../test/started/process.ts';
import { startRedis } from '../../../test/started/redis.ts';

/** What several gateway processes share their accounts by. */
export const CENTRES = ['sqlite', 'redis'] as const;
export type Centre = (typeof CENTRES)[number];

export const CALL = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';

/** `centre`: `redis` is one of its own; `redisUrl` leads to another. */
type Options = Readonly<{ processes: number; extra: string; centre?: Centre; redisUrl?: string }>;

/** Gateway processes on one port before the cheapest backend there is. */
export async function startSubject({ processes, extra, centre, redisUrl }: Options) {
  await using parts = new AsyncDisposableStack();
  const url = centre === 'redis' ? parts.use(await startRedis()).url : redisUrl;
  const backend = parts.use(await startProcess([join(ROOT, 'bench/self/backend.ts')], ROOT));
  const storageLines = url === undefined ? '' : `redis = "${url}"\n`;
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
    /** Its ledger; ends it. */
    async ledger(): Promise<Store> {
      crew.kill('SIGTERM');
      await crew.exited;
      return opened(join(crew.folder, LEDGER_FILE), LEDGER_MIGRATIONS);
    },
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}
