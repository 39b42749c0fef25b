import { join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { Config } from '../../shared/config/config.ts';
import type { Log } from '../../shared/log.ts';
import { type Lock, takeLock } from '../../shared/store/lock.ts';
import { openStore, type Store } from '../../shared/store/open.ts';
import type { LeaseStore } from '../lease/messages.ts';
import { openRedisStore } from '../lease/store/redis.ts';
import { NO_REDIS_ADDRESS, placesFrom } from '../../shared/redis/options.ts';
import { takeNode } from '../lease/store/node-identity.ts';
import { createSqliteStore } from '../lease/store/sqlite.ts';
import { formerNodes } from './former-nodes.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from './ledger.ts';
import type { Sharing } from './limits.ts';

/** Whether other gateway processes may charge the same accounts. */
export function sharesAccounts({ gateway, storage }: Config): boolean {
  return gateway.processes > 1 || storage.redisUrl !== undefined;
}

/** The name of a process's place: of its lock and, alone, of its rows in the ledger. Place 0 has no supervisor. */
export function placeName(slot: number): string {
  return slot === 0 ? 'gateway' : `gateway-${slot}`;
}

/** What a process is to the others of its data directory. */
export type Place = Readonly<{
  /** Its rows in the ledger. */
  node: string;
  /** What it shares accounts with; `undefined`: nobody. */
  sharing: Sharing | undefined;
  lock: Lock;
}>;

export type TakingPlace =
  | { readonly kind: 'taken'; readonly place: Place }
  /** `sentence` tells the operator why not. */
  | { readonly kind: 'refused'; readonly sentence: string };

type Deps = Readonly<{
  config: Config;
  ledger: Store;
  clock: Clock;
  log: Log;
  random(): number;
  makeId(): string;
}>;

/** Takes the place `slot` among the gateway's processes, 0 for a process without a supervisor. Nobody else has it then. */
export function takePlace(slot: number, deps: Deps): TakingPlace {
  const { config, ledger, clock, makeId } = deps;
  const { dataDir } = config.storage;
  const name = placeName(slot);
  if (!sharesAccounts(config)) {
    const locking = takeLock(dataDir, name);
    if (locking.kind === 'refused') return locking;
    return { kind: 'taken', place: { node: name, sharing: undefined, lock: locking.lock } };
  }
  if (!isRedisAddress(config.storage.redisUrl?.reveal()))
    return { kind: 'refused', sentence: NO_REDIS_ADDRESS };
  const taking = takeNode(dataDir, name, ledger, clock.now(), makeId);
  if (taking.kind === 'refused') return taking;
  const { node } = taking;
  // One process speaks for those that do not run. What it says of one that does is true as well, and changes nothing.
  const formers = slot <= 1 ? formerNodes(ledger, node.id) : [];
  const openCentre = (onLoss: () => void) => centreOf(deps, onLoss);
  const sharing = { node, openCentre, share: 1 / config.gateway.processes, formers };
  return { kind: 'taken', place: { node: node.id, sharing, lock: node.lock } };
}

function isRedisAddress(url: string | undefined): boolean {
  return url === undefined || placesFrom(url) !== undefined;
}

function centreOf({ config, clock, log, random }: Deps, onLoss: () => void): LeaseStore {
  const { dataDir, redisUrl } = config.storage;
  const onReleased = (accountId: number, released: object) =>
    log.warn({ accountId, ...released }, 'credits of a process that was silent for a day are released');
  if (redisUrl === undefined) {
    const own = openStore(join(dataDir, LEDGER_FILE), LEDGER_MIGRATIONS);
    if (own.kind === 'unusable') throw new Error(own.sentence);
    const centre = createSqliteStore({ ledger: own.store, clock, onReleased });
    return { ...centre, close: () => centre.close().then(() => own.store.close()) };
  }
  const opened = openRedisStore({
    url: redisUrl.reveal(),
    clock,
    random,
    onWarning: (warning) => log.warn({ warning }, 'redis'),
    onLoss,
    onReleased,
  });
  if (opened.kind === 'unusable') throw new Error(opened.sentence);
  return opened.store;
}
