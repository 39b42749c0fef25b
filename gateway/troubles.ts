import { basename } from 'node:path';
import type { Config } from '../shared/config/config.ts';
import { descriptorsMax, descriptorTrouble, fileReason } from '../shared/store/private.ts';
import { type Store, watchFile } from '../shared/store/open.ts';
import type { Trouble } from './health.ts';
import type { StoreLink } from './cluster/lease-sync.ts';
import type { Hosts } from './cluster/hosts.ts';

type Sources = Readonly<{
  accounts: Store;
  ledger: Store;
  hosts?: Hosts | undefined;
  config: Config;
  /** Why charges, or usage, could not be written for a while; `undefined` while they are. */
  journal: Readonly<{ failure(): string | undefined }>;
  usage: Readonly<{ failure(): string | undefined }>;
  link: StoreLink | undefined;
}>;

/** A full disk takes a small write now and then, and of several processes each tries a store when it has something for it. */
const CLEAR_MS = 3_000;

/** Readings of a store that may fail in a row: another process may hold the file for a moment. */
const FAILED_MAX = 2;

/** Reads a row of a store; `cause` says why it cannot. */
function createReading<Row>(store: Store, sql: string) {
  const statement = store.prepare<Row, []>(sql);
  let failed = 0;
  let reason = '';
  return {
    get(): Row | undefined {
      try {
        const row = statement.get() ?? undefined;
        failed = 0;
        return row;
      } catch (error) {
        failed++;
        reason = fileReason(error);
        return undefined;
      }
    },
    cause: () => (failed > FAILED_MAX ? reason : undefined),
  };
}

const NO_SOURCE =
  'no accounts are known: the Redis of storage.redis was not reached yet, or nothing is published there and no account is kept here';

const OLDER =
  'Redis has older accounts and keys than it had: those that were served here stay as they were, and other keys get 503';
/** A deploys that runs, or is restarted, publishes again in less. */
const OLDER_MS = 3_000;

/** Gives what looks at all that a process needs besides its backends. */
export function createTroubles({ accounts, ledger, hosts, config, journal, usage, link }: Sources) {
  const descriptorsAtMost = descriptorsMax();
  const files = [accounts, ledger].map(watchFile);
  const reading = createReading<{ some: number }>(
    accounts,
    'SELECT EXISTS (SELECT 1 FROM keys) OR EXISTS (SELECT 1 FROM accounts) AS some FROM revision',
  );
  const ledgerReading = createReading(ledger, 'SELECT 1 FROM spent LIMIT 1');
  let hasAccount = false;

  function ofAccounts(): Trouble | undefined {
    const source = hosts?.accounts.source();
    if (source === 'unknown') return { what: NO_SOURCE, cause: hosts?.accounts.older(), stops: true };
    if (source === 'remote') return ofPublished();
    const store = accounts.filename;
    const cause = reading.cause();
    if (cause !== undefined) return { what: `${basename(store)} cannot be read`, store, cause, stops: true };
    const remedy = 'create one with "bun run sluice account create NAME", or correct storage.data_dir';
    if (hasAccount) return undefined;
    return { what: `${basename(store)} has no account yet`, store, cause: remedy, stops: true };
  }

  function ofPublished(): Trouble | undefined {
    const cause = hosts?.accounts.older();
    if (cause === undefined) return undefined;
    return { what: OLDER, store: 'Redis', cause, stops: false, raiseMs: OLDER_MS, clearMs: CLEAR_MS };
  }

  function ofLedger(): readonly Trouble[] {
    const store = ledger.filename;
    const name = basename(store);
    const unread = `${name} cannot be read, so trials are refused with 503`;
    const charges = `charges cannot be written to ${name}, so trials are refused with 503`;
    const all = [
      { what: unread, store, cause: ledgerReading.cause(), stops: true },
      { what: charges, store, cause: journal.failure(), stops: true },
      { what: `usage cannot be written to ${name}`, store, cause: usage.failure(), stops: false },
    ];
    return all.filter(({ cause: why }) => why !== undefined).map((each) => ({ ...each, clearMs: CLEAR_MS }));
  }

  function ofSharing(): Trouble | undefined {
    if (link?.isOut() !== true) return undefined;
    const store = config.storage.redisUrl === undefined ? ledger.filename : 'Redis';
    const { how, error } = link.failure() ?? { how: 'away', error: 'no reply' };
    const cause = `${basename(store)} is ${how}: ${error}`;
    return {
      what: 'the store of shared limits does not answer',
      store,
      cause,
      stops: false,
      clearMs: CLEAR_MS,
    };
  }

  /** Lists the troubles of now; to be called once a second. Idle connections are closed while descriptors are short. */
  return function check(closeIdle?: () => void): readonly Trouble[] {
    if (hasAccount) reading.get();
    else hasAccount = reading.get()?.some === 1;
    ledgerReading.get();
    const descriptors = descriptorTrouble(descriptorsAtMost);
    if (descriptors !== undefined) closeIdle?.();
    const changes = files.map((changeOf) => changeOf());
    return [
      ofAccounts(),
      ...changes.map((change) => change && { ...change, stops: true }),
      ...ofLedger(),
      ofSharing(),
      descriptors && { ...descriptors, clearMs: CLEAR_MS },
    ].filter((trouble) => trouble !== undefined);
  };
}
