import { Database } from 'bun:sqlite';
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createAudit } from '../../deploys/accounts/audit.ts';
import { createChanges } from '../../deploys/accounts/changes.ts';
import { publishedGeneration } from '../../deploys/accounts/redis-head.ts';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { LEDGER_FILE } from '../../shared/ledger/schema.ts';
import type { Config } from '../../shared/config/config.ts';
import { isHeld } from '../../shared/store/identity.ts';
import { locksIn, takeLocks } from '../../shared/store/lock.ts';
import { fileReason } from '../../shared/store/private.ts';
import { type Books, COMMAND_LINE, onConfig, redisOf, withBooks } from '../frame/books.ts';
import { done, failed, type Invocation, type Outcome, type World } from '../frame/command.ts';

const DATABASES = [ACCOUNTS_FILE, LEDGER_FILE] as const;
const SECRET_FILE = 'secret';
const SUFFIXES = ['', '-wal', '-shm', '-id'];

/** Puts the databases of a deploys that was stopped, or of a backup, in the place of those of this host. */
export const restore = onConfig(
  'restore FOLDER --overwrite',
  'Restore the databases and the secret from FOLDER, a backup or the data of a stopped host; refuses while an app runs, and replaces what has data only with --overwrite.',
  (config, invocation): Outcome => {
    const [folder = ''] = invocation.operands;
    const missing = DATABASES.map((file) => join(folder, file)).find((path) => !existsSync(path));
    if (missing !== undefined) return notRestored(folder, `${missing} does not exist`);
    const { dataDir } = config.storage;
    const locking = takeLocks(dataDir, locksIn(dataDir));
    if (locking.kind === 'refused')
      return failed(`${locking.sentence}${locking.isHeld ? ' Stop it first; nothing was changed.' : ''}`);
    try {
      return restored(folder, config, invocation);
    } finally {
      for (const { release } of locking.locks) release();
    }
  },
  'is-absent',
);

function restored(folder: string, { storage }: Config, { options, world }: Invocation): Outcome {
  const { dataDir, redisUrl } = storage;
  if (resolve(folder) === resolve(dataDir)) return notRestored(folder, 'it is the data directory itself');
  const held = [dataDir, folder].flatMap((at) => DATABASES.map((file) => join(at, file))).filter(isHeld);
  if (held.length > 0)
    return failed(...held.map((path) => `${path} is open in another process; stop every app that uses it.`));
  const overwritten = valuesIn(dataDir);
  if (overwritten.length > 0 && options.overwrite === undefined)
    return failed(
      `This would replace in ${resolve(dataDir)}:`,
      ...overwritten.map((line) => `  ${line}`),
      'Nothing was changed. With --overwrite these files are moved to a new folder there, replaced-TIME, and replaced.',
    );
  const made = copiesOf(folder, dataDir);
  if (made.kind === 'failed') return made;
  const aside = overwritten.length === 0 ? undefined : asideIn(dataDir, world.clock.now());
  putAside(dataDir, aside);
  for (const file of made.files) renameSync(join(dataDir, `${file}.new`), join(dataDir, file));
  const lines = [
    `Restored ${made.files.join(', ')} into ${resolve(dataDir)}.`,
    ...(aside === undefined ? [] : [`What was there is in ${aside}.`]),
    ...(made.files.includes(SECRET_FILE) ? [] : [secretNote(folder, dataDir)]),
    ...(redisUrl === undefined ? [] : [TAKE_OVER_NOTE, USAGE_NOTE]),
  ];
  return done(lines.join('\n'), { restored: made.files, overwritten, aside: aside ?? null });
}

const secretNote = (folder: string, dataDir: string) =>
  `Note: ${resolve(folder)} has no file "${SECRET_FILE}". Webhooks and two-factor codes of this copy work only under the secret that they were encrypted with: storage.secret, or the file "${SECRET_FILE}" in ${resolve(dataDir)}.`;
const TAKE_OVER_NOTE =
  'Note: if deploys has published anything later than this copy, it refuses it until you run: bun run sluice deploys take-over';
const USAGE_NOTE =
  'Note: delete the Redis key {sluice:usage}:life before deploys starts, so that other hosts send their last 72 hours again.';

/** Lists the values that would be lost with the files of a data directory, a line each. */
function valuesIn(dataDir: string): readonly string[] {
  const counts: readonly (readonly [file: string, sql: string, what: string])[] = [
    [ACCOUNTS_FILE, 'SELECT count(*) AS count FROM accounts', 'accounts'],
    [ACCOUNTS_FILE, 'SELECT count(*) AS count FROM keys', 'keys'],
    [LEDGER_FILE, 'SELECT total(charged - refunded) AS count FROM spent', 'credits spent'],
    [
      LEDGER_FILE,
      'SELECT count(*) AS count FROM unsent',
      'counts of usage that were not yet sent to deploys',
    ],
  ];
  const rows = counts.flatMap(([file, sql, what]) => {
    const count = countIn(join(dataDir, file), sql);
    return count === 0 ? [] : `${file}: ${count ?? 'an unknown number of'} ${what}`;
  });
  const nodes = nodesIn(dataDir);
  if (rows.some((row) => row.startsWith(LEDGER_FILE)) && nodes.length > 0)
    rows.push(
      `${nodes.join(', ')}: these processes start as new nodes, and the credits that they hold return after a day`,
    );
  return rows;
}

/** A count in a database; `undefined` when it cannot be read, and 0 when there is none. */
function countIn(path: string, sql: string): number | undefined {
  if (!existsSync(path)) return 0;
  try {
    using database = new Database(path, { readwrite: true });
    return database.query<{ count: number }, []>(sql).get()?.count ?? 0;
  } catch {
    return undefined;
  }
}

const nodesIn = (dataDir: string) =>
  existsSync(dataDir) ? readdirSync(dataDir).filter((name) => name.endsWith('.node')) : [];

/** Copies each database whole, log included, beside its place; nothing is left when one is missing or damaged. */
function copiesOf(folder: string, dataDir: string) {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const files: string[] = [];
  try {
    for (const file of DATABASES) {
      copyDatabase(join(folder, file), join(dataDir, `${file}.new`));
      files.push(file);
    }
    if (existsSync(join(folder, SECRET_FILE))) {
      copyFileSync(join(folder, SECRET_FILE), join(dataDir, `${SECRET_FILE}.new`));
      files.push(SECRET_FILE);
    }
    return { kind: 'copied', files } as const;
  } catch (error) {
    for (const file of [...DATABASES, SECRET_FILE]) rmSync(join(dataDir, `${file}.new`), { force: true });
    return notRestored(folder, fileReason(error));
  }
}

const notRestored = (folder: string, reason: string) =>
  failed(`${resolve(folder)} cannot be restored (${reason}); nothing was changed.`);

function copyDatabase(from: string, to: string): void {
  rmSync(to, { force: true });
  using database = new Database(from, { readwrite: true });
  const check = database.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').get()?.quick_check;
  if (check !== 'ok') throw new Error(`${from} is damaged: ${check}`);
  database.run('VACUUM INTO ?', [to]);
}

/** Puts away what stood there; without a folder, which nothing of value needs, it goes. Node files belong to the ledger. */
function putAside(dataDir: string, aside: string | undefined): void {
  const databases = DATABASES.flatMap((file) => SUFFIXES.map((suffix) => `${file}${suffix}`));
  const isNew = existsSync(join(dataDir, `${SECRET_FILE}.new`));
  const files = [...databases, ...nodesIn(dataDir), ...(isNew ? [SECRET_FILE] : [])];
  for (const file of files.filter((name) => existsSync(join(dataDir, name)))) {
    if (aside === undefined && file !== SECRET_FILE) rmSync(join(dataDir, file));
    else if (aside !== undefined) renameSync(join(dataDir, file), join(aside, file));
  }
}

function asideIn(dataDir: string, nowMs: number): string {
  const aside = join(resolve(dataDir), `replaced-${new Date(nowMs).toISOString().replaceAll(/[:.]/g, '-')}`);
  mkdirSync(aside, { mode: 0o700 });
  return aside;
}

const NO_REDIS = 'The config has no storage.redis: nothing is published, so there is nothing to take over.';

/** An operator's word for which of several copies of the accounts database counts; without a further question. */
export const takeOver = onConfig(
  'deploys take-over',
  'Declare this database the current one although deploys has published a newer copy of it; that copy is then refused.',
  (config, { world }) => {
    if (config.storage.redisUrl === undefined) return failed(NO_REDIS);
    return withBooks<Outcome>(config, world, (books) => requested(books, world));
  },
  'is-absent',
);

async function requested(books: Books, world: World): Promise<Outcome> {
  const { store } = books;
  const changes = createChanges(store);
  const { note } = createAudit(store);
  const { generation, behind } = changes.last();
  const redis = redisOf(books, world);
  const found = redis && (await publishedGeneration(redis));
  const published = found ?? behind;
  const request = store.transaction(() => {
    const as = changes.requestTakeOver(published ?? 0);
    const action = 'deploys.take-over';
    const detail = { generation, published_generation: published, as_generation: as };
    note({ atMs: world.clock.now(), actor: COMMAND_LINE, action, subject: changes.origin, detail });
    return as;
  });
  const as = request.immediate();
  if (found === undefined)
    world.err(`Redis does not answer. If it has generation ${as} already, run this again then.\n`);
  const text = `deploys publishes this database as generation ${as} and sends its webhooks as soon as it runs and Redis answers. Changes that only another copy has are lost; keys that were revoked there stay revoked.`;
  const record = { take_over: 'requested', generation, published_generation: published, as_generation: as };
  return done(text, record);
}
