import { join } from 'node:path';
import { type Accounts, createAccounts } from '../deploys/accounts/accounts.ts';
import { createKeys, type Keys } from '../deploys/accounts/keys.ts';
import { LEDGER_MIGRATIONS, spentOf } from '../gateway/limits/ledger.ts';
import type { Config } from '../shared/config/config.ts';
import { loadConfig } from '../shared/config/load.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../shared/keys/schema.ts';
import { LEDGER_FILE } from '../shared/ledger/schema.ts';
import { openStore, type Store } from '../shared/store/open.ts';
import { failed, type Invocation, type Outcome, type World } from './command.ts';

/** The config's database, open: accounts, their keys and what they spent. */
export type Books = Readonly<{ config: Config; store: Store; accounts: Accounts; keys: Keys }>;

/** Opens the database of the config, lets `act` work on it and closes it; the apps may run meanwhile. */
export function withBooks(
  { values, world }: Pick<Invocation, 'values' | 'world'>,
  act: (books: Books) => Outcome,
): Outcome {
  const loaded = loadConfig(values.config, world.env, 'is-absent');
  if (loaded.kind === 'unusable') return failed(...loaded.lines);
  return withBooksOf(loaded.config, world, act);
}

/** The same for a config already read. */
export function withBooksOf(
  config: Config,
  { clock, random }: Pick<World, 'clock' | 'random'>,
  act: (books: Books) => Outcome,
): Outcome {
  const { dataDir } = config.storage;
  const opened = openStore(join(dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  if (opened.kind === 'unusable') return failed(opened.sentence);
  using store = opened.store;
  const ledgerOpened = openStore(join(dataDir, LEDGER_FILE), LEDGER_MIGRATIONS);
  if (ledgerOpened.kind === 'unusable') return failed(ledgerOpened.sentence);
  using ledger = ledgerOpened.store;
  const accounts = createAccounts({
    store,
    plans: config.plans,
    spentOf: (accountId) => spentOf(ledger, accountId),
    clock,
  });
  return act({ config, store, accounts, keys: createKeys({ store, clock, random }) });
}
