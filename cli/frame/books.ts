import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Accounts, createAccounts } from '../../deploys/accounts/accounts.ts';
import { type Actor, createAudit } from '../../deploys/accounts/audit.ts';
import { createChanges, originOf } from '../../deploys/accounts/changes.ts';
import { createKeys, type Keys } from '../../deploys/accounts/keys.ts';
import { createUsers, type Users } from '../../deploys/auth/users.ts';
import { DEPLOYS_MIGRATIONS } from '../../deploys/schema.ts';
import { LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { accountsSourceOf } from '../../gateway/cluster/hosts.ts';
import { createServed, SERVED_FILE, SERVED_MIGRATIONS } from '../../gateway/cluster/served.ts';
import type { Config } from '../../shared/config/config.ts';
import { loadConfig } from '../../shared/config/load.ts';
import type { Unset } from '../../shared/config/table.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { LEDGER_FILE, spentOf } from '../../shared/ledger/schema.ts';
import { openStore, type Store } from '../../shared/store/open.ts';
import { codeOf } from '../../shared/store/private.ts';
import {
  type Command,
  command,
  type Failed,
  failed,
  type Invocation,
  type Outcome,
  type World,
} from './command.ts';

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

/** How a command behaves where there is no database: it creates one and says so, or it refuses. */
type Absent = 'create' | 'refuse';

type ActOn<T> = (part: T, invocation: Invocation) => Outcome | Promise<Outcome>;

const OLDER =
  'This database is older than what deploys has published from a copy of it: changes here would be lost. Use the newer one; or, if this one is to count, run: bun run sluice deploys take-over';
const NOT_YET =
  'This database takes over from a newer copy of it as soon as its deploys runs and Redis answers. Run this command then.';
const ELSEWHERE =
  'The accounts and the usage of this installation are managed on another host. Run this command there.';

/** A command, by its usage, that reads the config. */
export function onConfig(usage: string, summary: string, act: ActOn<Config>, unset?: Unset): Command {
  return command(usage, summary, (invocation) => {
    const loaded = loadConfig(invocation.options.config, invocation.world.env, unset);
    return loaded.kind === 'unusable' ? failed(...loaded.lines) : act(loaded.config, invocation);
  });
}

/**
 * A command, by its usage, that opens the database of the config, lets `act` work on it and closes it; the apps may run
 * meanwhile. It refuses where accounts are managed on another host, or in a newer copy of the database.
 */
export function onBooks(usage: string, summary: string, act: ActOn<Books>, absent?: Absent): Command {
  const open = (config: Config, invocation: Invocation) =>
    withBooks<Outcome>(
      config,
      invocation.world,
      (books) => {
        const why = whyBehind(books);
        if (why !== undefined) return failed(why);
        return isRemote(books) ? failed(ELSEWHERE) : act(books, invocation);
      },
      absent,
    );
  return onConfig(usage, summary, open, 'is-absent');
}

/** Opens the database of the config for `act`, wherever accounts are managed. */
export async function withBooks<T>(
  config: Config,
  { clock, random, err }: Pick<World, 'clock' | 'random' | 'err'>,
  act: (books: Books) => T | Promise<T>,
  absent: Absent = 'refuse',
): Promise<T | Failed> {
  const { dataDir } = config.storage;
  const isNew = isWithoutDatabase(dataDir);
  if (isNew && absent === 'refuse') return failed(noDatabase(dataDir));
  const opened = openStore(
    join(dataDir, ACCOUNTS_FILE),
    { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS },
    'whole',
  );
  if (opened.kind === 'unusable') return failed(opened.sentence);
  using store = opened.store;
  const ledgerOpened = openStore(join(dataDir, LEDGER_FILE), LEDGER_MIGRATIONS, 'whole');
  if (ledgerOpened.kind === 'unusable') return failed(ledgerOpened.sentence);
  using ledger = ledgerOpened.store;
  if (isNew) err(`Created a database in the data directory ${resolve(dataDir)}.\n`);
  const { note } = createAudit(store);
  const spent = (accountId: number) => spentOf(ledger, accountId);
  return await act({
    config,
    store,
    ledger,
    accounts: createAccounts({ store, plans: config.plans, spentOf: spent, clock, note }),
    keys: createKeys({ store, clock, random, note }),
    users: createUsers(store, { note, clock, random }),
  });
}

/** Tells the operator what to do when deploys found a newer copy published; it may have taken over before this one, whatever an operator said. */
function whyBehind({ config: { storage }, store }: Books): string | undefined {
  if (storage.redisUrl === undefined) return undefined;
  const { behind, takeOver } = createChanges(store).last();
  if (behind === null) return undefined;
  return takeOver === 0 ? OLDER : NOT_YET;
}

/** How a command looks at what is published of these books; `undefined` without `storage.redis`. */
export function redisOf({ config, store }: Books, { clock, random }: Pick<World, 'clock' | 'random'>) {
  const url = config.storage.redisUrl?.reveal();
  const chance = () => Buffer.from(random(4)).readUInt32BE() / 2 ** 32;
  return url === undefined ? undefined : { url, origin: originOf(store), clock, random: chance };
}

/** Whether the gateways of this data directory serve accounts that another host publishes. */
function isRemote({ config: { storage }, store }: Books): boolean {
  const path = join(storage.dataDir, SERVED_FILE);
  if (storage.redisUrl === undefined || !existsSync(path)) return false;
  const opened = openStore(path, SERVED_MIGRATIONS, 'whole');
  if (opened.kind === 'unusable') return false;
  const source = accountsSourceOf(createServed(opened.store).state(), store);
  opened.store.close();
  return source === 'remote';
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
  return `No database in the data directory ${resolve(dataDir)}. "start" and "account create" create one. Check that this is the installation's folder, or pass --config.`;
}

/** The sentence for an account that is not there. */
export function unknownAccount(name: string): string {
  return `No account named "${name}". List accounts with: account list`;
}
