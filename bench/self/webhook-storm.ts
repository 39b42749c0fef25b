import { upgradeProgram } from '../../localnet/upgrade.ts';
import { systemClock } from '../../shared/clock.ts';
import { random } from '../../test/started/gateway.ts';
import { exactly, type Finding, said, tableOfFindings } from './finding.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';
import type { SeenPost } from './webhook-receivers.ts';
import { printedInside, startInternet, upgradeableOf } from './webhook-started.ts';

const LIMIT_MS = 600_000;
const [WEBHOOKS, ANSWER_MS, POLL_SECONDS] = [6, 60, 1];
/**
 * How long a process lives after it is ready: its second reading, the first that makes events, comes after a second, and
 * what follows takes some hundred milliseconds.
 */
const [LIFE_MS_MIN, LIFE_MS_MAX] = [800, 1_900];
/** Leases are over by then, and retries that are due at once are made. */
const SETTLE_MS_MAX = 90_000;
const never = new AbortController().signal;
/** What a child of this script is started with in the network namespace, before the number of kills. */
const INSIDE = 'inside';

const BENCH: OwnBench = {
  path: import.meta.path,
  about: `A storm of SIGKILL of deploys, which delivers upgrades over HTTPS: nothing may be lost or doubled.
About four minutes; needs root or unprivileged user namespaces.`,
  options: { kills: { value: 'N', help: 'in the storm', least: 1, most: 1_000, preset: 100 } },
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) {
  const [first, kills] = process.argv.slice(2);
  if (first === INSIDE) console.log(JSON.stringify(await storm(Number(kills))));
  process.exit(first === INSIDE ? 0 : await runOwn(BENCH, process.argv.slice(2)));
}

async function measure({ signal, number, table }: OwnRun): Promise<boolean> {
  const kills = String(number('kills'));
  const findings: readonly Finding[] = await printedInside(import.meta.path, [INSIDE, kills], signal);
  table(tableOfFindings('', findings));
  return findings.every(({ holds }) => holds);
}

/** Kills the app, which delivers upgrades of a localnet over HTTPS, `kills` times at random points; then lets it live. */
async function storm(kills: number): Promise<readonly Finding[]> {
  await using internet = await startInternet({
    webhooks: WEBHOOKS,
    answerMs: ANSWER_MS,
    hanging: 0,
    pollSeconds: POLL_SECONDS,
  });
  const over = new AbortController();
  let upgrading: Promise<number> | undefined;
  for (let i = 0; i < kills; i++) {
    await using app = await internet.start();
    upgrading ??= upgradeAll(internet.chainUrl, await upgradeableOf(app.url, internet.keys), over.signal);
    await systemClock.sleep(lifeMs(), never);
    app.kill('SIGKILL');
    await app.exited;
  }
  over.abort();
  const upgrades = (await upgrading) ?? 0;
  await using _last = await internet.start();
  using store = internet.store();
  const count = (sql: string) => Number(store.query(sql).values()[0]?.[0]);
  const endMs = systemClock.monotonic() + SETTLE_MS_MAX;
  const isOpen = () => count("SELECT count(*) FROM deliveries WHERE state != 'delivered'") > 0;
  while (isOpen() && systemClock.monotonic() < endMs) await systemClock.sleep(250, never);
  const posts = await internet.posts();
  const rows = store
    .query<Row, []>(
      `SELECT d.id, CAST(substr(w.host, 2) AS INTEGER) AS n, d.state FROM deliveries d
       JOIN webhooks w ON w.id = d.webhook_id`,
    )
    .all();
  const events = count('SELECT count(*) FROM events');
  const lost = lostOf(rows, posts, events);
  const doubled = doubledOf(rows, posts);
  const interrupted = count("SELECT count(*) FROM attempts WHERE state = 'interrupted'");
  return [
    ...Object.entries({
      kills,
      upgrades,
      events,
      deliveries: rows.length,
      POSTs: posts.length,
      interrupted,
    }).map(([what, seen]) => said(what, String(seen))),
    exactly('lost', lost.length, 0),
    exactly('doubled', doubled.length, 0),
    ...[...lost, ...doubled].map((what) => said(what, '')),
  ];
}

/** Redeploys one program after the other until `over` aborts; gives how often. */
async function upgradeAll(chain: URL, programs: readonly string[], over: AbortSignal): Promise<number> {
  let upgrades = 0;
  for (let i = 0; !over.aborted; i++) {
    const programId = programs[i % programs.length] ?? '';
    const at = { rpcUrl: chain.href, programId, clock: systemClock, signal: never };
    if ((await upgradeProgram(at)).kind === 'upgraded') upgrades++;
  }
  return upgrades;
}

type Row = Readonly<{ id: string; n: number; state: string }>;

function lostOf(rows: readonly Row[], posts: readonly SeenPost[], events: number): string[] {
  const told = new Set(posts.map(({ n, id }) => `${n} ${id}`));
  const lost = rows.filter(({ id, n, state }) => state !== 'delivered' || !told.has(`${n} ${id}`));
  const short = rows.length === events * WEBHOOKS ? [] : [`${rows.length} deliveries of ${events} events`];
  return [...short, ...lost.map(({ id, state }) => `${id} ${state}`)];
}

function doubledOf(rows: readonly Row[], posts: readonly SeenPost[]): string[] {
  const known = new Set(rows.map(({ id, n }) => `${n} ${id}`));
  const idOf = new Map<string, string>();
  return posts.flatMap(({ n, id, about }) => {
    const event = `${n} ${about}`;
    const isOther = (idOf.get(event) ?? id) !== id || !known.has(`${n} ${id}`);
    idOf.set(event, id);
    return isOther ? [`${event} ${id}`] : [];
  });
}

function lifeMs(): number {
  return LIFE_MS_MIN + ((random(1)[0] ?? 0) / 256) * (LIFE_MS_MAX - LIFE_MS_MIN);
}
