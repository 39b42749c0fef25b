import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Accounts, createAccounts } from '../deploys/accounts/accounts.ts';
import { type Actor, createAudit } from '../deploys/accounts/audit.ts';
import { createKeys, type Keys } from '../deploys/accounts/keys.ts';
import { createUsers, type Users } from '../deploys/auth/users.ts';
import { DEPLOYS_MIGRATIONS } from '../deploys/schema.ts';
import { LEDGER_MIGRATIONS } from '../gateway/ledger.ts';
import { accountsSourceOf } from '../gateway/replica/hosts.ts';
import { createServed, SERVED_FILE, SERVED_MIGRATIONS } from '../gateway/replica/served.ts';
import type { Config } from '../shared/config/config.ts';
import { loadConfig } from '../shared/config/load.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../shared/keys/schema.ts';
import { LEDGER_FILE } from '../shared/ledger/schema.ts';
import { spentOf } from '../shared/ledger/spent.ts';
import { openStore, type Store } from '../shared/store/open.ts';
import { codeOf } from '../shared/store/private.ts';
import { failed, type Invocation, type Outcome, type World } from './command.ts';

/** The config's database, open: accounts, their keys, and what they spent and used. */
export type Books = Readonly<{
  config: Config;
  store: Store;
  ledger: Store;
  accounts: Accounts;
  keys: Keys;
  users: Users;
}>;

/** Who makes the changes of commands, in the audit log. */
export const COMMAND_LINE: Actor = { kind: 'command-line' };

type Opened =
  { readonly kind: 'open'; readonly books: Books & Disposable } | Extract<Outcome, { kind: 'failed' }>;

/** What a command does where there is no database: it makes one and says so, or it refuses. */
type Absent = 'make' | 'refuse';

/** Opens the database of the config, lets `act` work on it and closes it; the apps may run meanwhile. */
export function withBooks(
  { values, world }: Pick<Invocation, 'values' | 'world'>,
  act: (books: Books) => Outcome,
  absent: Absent = 'refuse',
): Outcome {
  const loaded = loadConfig(values.config, world.env, 'is-absent');
  if (loaded.kind === 'unusable') return failed(...loaded.lines);
  return withBooksOf(loaded.config, world, act, absent);
}

/** The same as `withBooks` for accounts and keys, which may be kept on another host. */
export function withAccounts(
  invocation: Pick<Invocation, 'values' | 'world'>,
  act: (books: Books) => Outcome,
  absent: Absent = 'refuse',
): Outcome {
  const here = (books: Books) => (isKeptElsewhere(books) ? failed(KEPT_ELSEWHERE) : act(books));
  return withBooks(invocation, here, absent);
}

const KEPT_ELSEWHERE = 'The accounts of this installation are kept on another host; run this command there.';

const GATHERED_ELSEWHERE =
  'The usage of this installation is gathered where its accounts are kept, on another host; run this command there.';

/** Whether the gateways of this data directory serve accounts that another host publishes. */
function isKeptElsewhere({ config: { storage }, store }: Books): boolean {
  const path = join(storage.dataDir, SERVED_FILE);
  if (storage.redisUrl === undefined || !existsSync(path)) return false;
  const opened = openStore(path, SERVED_MIGRATIONS, 'whole');
  if (opened.kind === 'unusable') return false;
  const source = accountsSourceOf(createServed(opened.store).state(), store);
  opened.store.close();
  return source === 'remote';
}

/** The same for a config already read. */
export function withBooksOf(
  config: Config,
  world: Pick<World, 'clock' | 'random' | 'err'>,
  act: (books: Books) => Outcome,
  absent: Absent,
): Outcome {
  const opened = openBooks(config, world, absent);
  if (opened.kind === 'failed') return opened;
  using books = opened.books;
  return act(books);
}

/** The same as `withAccounts` for what takes its time. */
export function withAccountsAwaited(
  invocation: Pick<Invocation, 'values' | 'world'>,
  act: (books: Books) => Promise<Outcome>,
  absent: Absent = 'refuse',
): Promise<Outcome> {
  return withBooksAwaited(invocation, KEPT_ELSEWHERE, act, absent);
}

/** The same for usage, which is gathered where the accounts are. */
export function withUsage(
  invocation: Pick<Invocation, 'values' | 'world'>,
  act: (books: Books) => Promise<Outcome>,
): Promise<Outcome> {
  return withBooksAwaited(invocation, GATHERED_ELSEWHERE, act, 'refuse');
}

async function withBooksAwaited(
  { values, world }: Pick<Invocation, 'values' | 'world'>,
  elsewhere: string,
  act: (books: Books) => Promise<Outcome>,
  absent: Absent,
): Promise<Outcome> {
  const loaded = loadConfig(values.config, world.env, 'is-absent');
  if (loaded.kind === 'unusable') return failed(...loaded.lines);
  const opened = openBooks(loaded.config, world, absent);
  if (opened.kind === 'failed') return opened;
  using books = opened.books;
  return isKeptElsewhere(books) ? failed(elsewhere) : await act(books);
}

function openBooks(
  config: Config,
  { clock, random, err }: Pick<World, 'clock' | 'random' | 'err'>,
  absent: Absent,
): Opened {
  const { dataDir } = config.storage;
  const isNew = isWithoutDatabase(dataDir);
  if (isNew && absent === 'refuse') return failed(noDatabase(dataDir));
  const isNewFolder = !existsSync(dataDir);
  const migrations = { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS };
  const opened = openStore(join(dataDir, ACCOUNTS_FILE), migrations, 'whole');
  if (opened.kind === 'unusable') return failed(opened.sentence);
  const { store } = opened;
  const ledgerOpened = openStore(join(dataDir, LEDGER_FILE), LEDGER_MIGRATIONS, 'whole');
  if (ledgerOpened.kind === 'unusable') {
    store.close();
    return failed(ledgerOpened.sentence);
  }
  const ledger = ledgerOpened.store;
  if (isNew) {
    const what = isNewFolder ? 'the new data directory' : 'a new database in the data directory';
    err(`Made ${what} ${resolve(dataDir)}.\n`);
  }
  const { note } = createAudit(store);
  const accounts = createAccounts({
    store,
    plans: config.plans,
    spentOf: (accountId) => spentOf(ledger, accountId),
    clock,
    note,
  });
  const keys = createKeys({ store, clock, random, note });
  const users = createUsers(store, { note, clock, random });
  const close = () => {
    ledger.close();
    store.close();
  };
  return { kind: 'open', books: { config, store, ledger, accounts, keys, users, [Symbol.dispose]: close } };
}

/** Whether there is none for sure; what keeps this command from looking is reported when it is opened. */
function isWithoutDatabase(dataDir: string): boolean {
  try {
    statSync(join(dataDir, ACCOUNTS_FILE));
    return false;
  } catch (error) {
    return codeOf(error) === 'ENOENT';
  }
}

function noDatabase(dataDir: string): string {
  return `There is no database in the data directory ${resolve(dataDir)}; "start" and "account create" make one. Is this the installation's folder, or does its config need --config?`;
}
