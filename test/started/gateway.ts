import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGateway } from '../../gateway/compose.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { listen } from '../../gateway/server.ts';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { type Config, configFrom } from '../../shared/config/config.ts';
import { type ApiKey, hashOf, keyIdOf, makeApiKey, shownOf } from '../../shared/keys/api-key.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import type { Log } from '../../shared/log.ts';
import { spentOf } from '../../shared/ledger/schema.ts';
import { openStore, type Store } from '../../shared/store/open.ts';

export const JSON_HEADERS = { 'content-type': 'application/json' };

/** A config for tests: any free ports, the given TOML-shaped rows over it. */
export function testConfig(rows: Record<string, unknown>): Config {
  const gateway = { listen: '127.0.0.1:0', metrics: '127.0.0.1:0', ...table(rows['gateway']) };
  const result = configFrom({ ...rows, gateway }, {});
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems));
  return result.config;
}

function table(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}

/** A store in a temporary folder that goes with it. */
export function temporaryFolder(): { path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'sluice-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

export function opened(path: string, migrations: Readonly<Record<string, string>>): Store {
  const result = openStore(path, migrations);
  if (result.kind === 'unusable') throw new Error(result.sentence);
  return result.store;
}

/** So many random bytes. */
export const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));

/** Writes an account and a key of it; gives the key. */
export function addKey(accounts: Store, plan: string | null, credits = 0): string {
  const key = makeApiKey(random);
  const hash = hashOf(key);
  const { prefix, last4 } = shownOf(key);
  const made = accounts
    .prepare<{ id: number }, [string, string | null, number]>(
      'INSERT INTO accounts (name, plan, credits_granted, created_at_ms) VALUES (?, ?, ?, 0) RETURNING id',
    )
    .get(`account of ${last4}${prefix}`, plan, credits);
  accounts.run(
    "INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?, ?, 'test', ?, ?, ?, 0)",
    [keyIdOf(hash), made?.id ?? 0, hash, prefix, last4],
  );
  return key;
}

/** Counts what would be logged instead of printing it. */
export function silentLog(lines: unknown[] = []): Log {
  const note = (...args: unknown[]) => void lines.push(args);
  const log = { info: note, warn: note, error: note, debug: note };
  return log as unknown as Log; // the four methods are all that the code under test calls
}

/**
 * A gateway in this process on real sockets, with its stores in a temporary folder; `through` may put something between
 * it and its accounts, to watch what it asks of them.
 */
export async function startGateway(
  rows: Record<string, unknown>,
  clock: Clock = systemClock,
  through: (accounts: Store) => Store = (accounts) => accounts,
) {
  const folder = temporaryFolder();
  const config = testConfig(rows);
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const ledger = opened(join(folder.path, LEDGER_FILE), LEDGER_MIGRATIONS);
  const lines: unknown[] = [];
  const gateway = createGateway({
    node: 'gateway',
    config,
    accounts: through(accounts),
    ledger,
    clock,
    log: silentLog(lines),
    random: () => 0.5,
    fillRandom: (bytes) => crypto.getRandomValues(bytes),
  });
  const listening = listen(config.gateway, gateway, { clock: systemClock, shared: false });
  if (listening.kind === 'refused') throw new Error(listening.sentence);
  const { url, app } = listening;
  const over = new AbortController();

  /** Posts `body` (a text, or a value to print) with `key` in `x-token`. */
  function post(
    body: unknown,
    key?: string,
    init: BunFetchRequestInit & { path?: string } = {},
  ): Promise<Response> {
    const headers = {
      ...JSON_HEADERS,
      ...(key === undefined ? {} : { 'x-token': key }),
      ...table(init.headers),
    };
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return fetch(new URL(init.path ?? '/', url), { method: 'POST', body: text, ...init, headers });
  }

  return {
    url,
    app,
    accounts,
    ledger,
    gateway,
    config,
    lines,
    post,
    key: (plan: string | null = 'scale', credits = 0) => addKey(accounts, plan, credits),
    /** The value of a metric by its name and labels, without the prefix; 0 when it is not there. */
    async metric(name: string): Promise<number> {
      const lines = (await gateway.metrics.text()).split('\n');
      return Number(
        lines
          .find((line) => line.startsWith(`sluice_gateway_${name} `))
          ?.split(' ')
          .at(-1) ?? 0,
      );
    },
    /** Runs what a process does beside its requests, until the end. */
    maintain: () => void gateway.runMaintenance(() => undefined, over.signal),
    /** Credits that the key's account has spent, by the ledger. */
    spent(key: string): number {
      const owner = accounts.query<{ account_id: number }, [Uint8Array]>(
        'SELECT account_id FROM keys WHERE hash = ?',
      );
      return spentOf(ledger, owner.get(hashOf(key as ApiKey))?.account_id ?? 0); // `key` made it
    },
    async [Symbol.asyncDispose]() {
      over.abort();
      await listening.close(100, 0);
      await gateway.close();
      accounts.close();
      ledger.close();
      folder[Symbol.dispose]();
    },
  };
}
