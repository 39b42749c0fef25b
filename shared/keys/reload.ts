import { blankComplaint, type Loaded, type LoadedConfig, parseConfig, readConfig } from '../config/load.ts';
import type { Environment } from '../config/table.ts';
import type { Store } from '../store/open.ts';
import { fileReason } from '../store/private.ts';

/** Asks every running app on the accounts database to read its config again; gives the request's number, which only grows. */
export function requestReload(accounts: Store): number {
  const bump = accounts.query<{ config: number }, []>(
    'UPDATE revision SET config = config + 1 RETURNING config',
  );
  const row = bump.get();
  if (row === null) throw new Error('the revision row is missing');
  return row.config;
}

/** The plans that accounts are on, each with the number of its accounts. */
export function plansInUse(accounts: Store): ReadonlyMap<string, number> {
  const rows = accounts.query<{ plan: string; accounts: number }, []>(
    'SELECT plan, count(*) AS accounts FROM accounts WHERE plan IS NOT NULL GROUP BY plan ORDER BY plan',
  );
  return new Map(rows.all().map(({ plan, accounts: count }) => [plan, count]));
}

/**
 * Reads the config of a running app again. Refused is one that is unusable, says nothing, or has lost a plan that accounts
 * are on: a file that is just being written looks like that. `used` gives the plans in use, or throws.
 */
export function createConfigReader(
  started: LoadedConfig,
  env: Environment,
  used: () => ReadonlyMap<string, number>,
) {
  let last = started;
  const file = started.read.text === undefined ? undefined : started.read.name;

  function readAgain(): Loaded {
    const reading = readConfig(file);
    if (reading.kind === 'unusable') return reading;
    const loaded = parseConfig(reading.read, env);
    if (loaded.kind === 'unusable') return loaded;
    const gone = [...last.config.plans.keys()].filter((plan) => !loaded.config.plans.has(plan));
    const blank = blankComplaint(reading.read);
    const lines = blank === undefined ? lostPlans(gone, used) : [blank];
    if (lines.length > 0) return { kind: 'unusable', lines };
    last = loaded;
    return loaded;
  }

  function hasChanged(): boolean {
    const reading = readConfig(file);
    return reading.kind === 'unusable' || reading.read.text !== last.read.text;
  }

  return { readAgain, hasChanged };
}

/** Those of the plans that accounts are on, a sentence each. */
function lostPlans(gone: readonly string[], used: () => ReadonlyMap<string, number>): readonly string[] {
  if (gone.length === 0) return [];
  try {
    const accounts = used();
    return gone
      .filter((plan) => accounts.has(plan))
      .map((plan) => `The plan ${plan} is gone, and accounts are on it: ${accounts.get(plan)}.`);
  } catch (error) {
    return [`Plans are gone, and accounts may be on them (${fileReason(error)}): ${gone.join(', ')}.`];
  }
}
