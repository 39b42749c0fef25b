import { join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { StorageConfig } from '../../shared/config/config.ts';
import type { Log } from '../../shared/log.ts';
import { NO_REDIS_ADDRESS } from '../../shared/redis/options.ts';
import { openStore, type Store } from '../../shared/store/open.ts';
import { createOutbox, noteUnsent } from '../usage/outbox.ts';
import { openPush, type Push } from '../usage/push.ts';
import { createSharedAccounts, type SharedAccounts } from './accounts.ts';
import { openPublished } from './published.ts';
import { createServed, SERVED_FILE, SERVED_MIGRATIONS } from './served.ts';

/** What a process has to do with deploys on another host: accounts come from there, and usage goes there. */
export type Hosts = Readonly<{
  accounts: SharedAccounts;
  /** The one process of the host that sends usage; the others have none. */
  push: Push | undefined;
}>;

type OpeningHosts =
  | { readonly kind: 'open'; readonly hosts: Hosts | undefined }
  /** `sentence` tells the operator which file is wrong. */
  | { readonly kind: 'refused'; readonly sentence: string };

type Deps = Readonly<{
  storage: StorageConfig;
  accounts: Store;
  ledger: Store;
  /** The place of this process among those of its host. */
  slot: number;
  clock: Clock;
  log: Log;
  /** A number from 0 up to 1. */
  random(): number;
  /** A UUID. */
  makeId(): string;
}>;

/** Opens the ways to the other hosts; there are none without `storage.redis`. */
export function openHosts(deps: Deps): OpeningHosts {
  const { storage, accounts, ledger, slot, clock, log, random, makeId } = deps;
  const url = storage.redisUrl?.reveal();
  if (url === undefined) return { kind: 'open', hosts: undefined };
  const file = openStore(join(storage.dataDir, SERVED_FILE), SERVED_MIGRATIONS);
  if (file.kind === 'unusable') return { kind: 'refused', sentence: file.sentence };
  const onWarning = (warning: string) => log.warn({ warning }, 'redis');
  const published = openPublished(url, clock, random);
  if (published === undefined) return { kind: 'refused', sentence: NO_REDIS_ADDRESS };
  const served = createServed(file.store);
  const shared = createSharedAccounts({ accounts, served, published, clock, log });
  noteUnsent(ledger);
  const push =
    slot > 1
      ? undefined
      : openPush({
          outbox: createOutbox(ledger),
          deploysAt: shared.deploysAt,
          url,
          clock,
          random,
          makeId,
          onWarning,
        });
  return { kind: 'open', hosts: { accounts: shared, push } };
}
