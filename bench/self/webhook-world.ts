import { upgradeProgram } from '../../localnet/upgrade.ts';
import { systemClock } from '../../shared/clock.ts';
import { atMost, exactly, type Finding, said } from './finding.ts';
import { cpuSecondsOf, memoryOf } from './proc.ts';
import { percentile } from './statistics.ts';
import { printedInside, programsOf, startInternet, upgradeableOf } from './webhook-started.ts';

/** What came of upgrades. Instants count from the reading that saw an upgrade, in milliseconds. */
export type Drained = Readonly<{
  delivered: number;
  posts: number;
  /** When each healthy receiver had the first POST of each upgrade. */
  firstMs: readonly number[];
  drainedMs: number;
  /** How long each request for the programs took while deliveries drained. */
  programsMs: readonly number[];
  cpuSeconds: number;
  residentBytes: number;
}>;

/** Receivers that take `answerMs`, the first `hanging` of which never answer, and upgrades at once. */
export type Scene = Readonly<{ webhooks: number; answerMs: number; hanging: number; upgrades: number }>;

const POLL_SECONDS = 5;
/** Between two requests for the programs. */
const ASK_MS = 40;
const DRAIN_MS_MAX = 60_000;
const never = new AbortController().signal;

if (import.meta.main) {
  const [webhooks = 0, answerMs = 0, hanging = 0, upgrades = 0] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify(await drain({ webhooks, answerMs, hanging, upgrades })));
  process.exit(0);
}

/** Deliveries of upgrades, in a process of their own and a network namespace whose public addresses are this machine's. */
export function drained(
  { webhooks, answerMs, hanging, upgrades }: Scene,
  signal: AbortSignal,
): Promise<Drained> {
  return printedInside(import.meta.path, [webhooks, answerMs, hanging, upgrades].map(String), signal);
}

/** Four fifths of the receivers never answer while several programs are upgraded at once. */
export const HANGING: Scene = { webhooks: 100, answerMs: 200, hanging: 80, upgrades: 5 };

/** That those who answer wait for none who does not: their first attempts, from the reading that saw the upgrade. */
export function punctuality({ firstMs, delivered, drainedMs }: Drained): readonly Finding[] {
  const healthy = (HANGING.webhooks - HANGING.hanging) * HANGING.upgrades;
  const seconds = (ms: number) => (ms / 1_000).toFixed(2);
  return [
    exactly('first attempts at the others', firstMs.length, healthy),
    exactly('delivered', delivered, healthy),
    atMost('first attempt, ms at the median', percentile(firstMs, 0.5), 1_000),
    atMost('first attempt, ms at p99', percentile(firstMs, 0.99), 2_000),
    said('last first attempt, last delivery, s', `${seconds(percentile(firstMs, 1))}, ${seconds(drainedMs)}`),
  ];
}

async function drain({ webhooks, answerMs, hanging, upgrades }: Scene): Promise<Drained> {
  await using internet = await startInternet({ webhooks, answerMs, hanging, pollSeconds: POLL_SECONDS });
  await using app = await internet.start();
  const { keys } = internet;
  const programIds = (await upgradeableOf(app.url, keys)).slice(-upgrades);
  const cpuBefore = cpuSecondsOf(app.pid);
  const rpcUrl = internet.chainUrl.href;
  for (const programId of programIds) {
    const upgraded = await upgradeProgram({ rpcUrl, programId, clock: systemClock, signal: never });
    if (upgraded.kind !== 'upgraded') throw new Error(JSON.stringify(upgraded));
  }
  const wanted = (webhooks - hanging) * programIds.length;

  using store = internet.store();
  const open = store.prepare<{ total: number; done: number; at: number; detected: number }, []>(`
    SELECT count(*) AS total, sum(d.state = 'delivered') AS done, max(d.finished_at_ms) AS at,
      min(e.created_at_ms) AS detected FROM deliveries d JOIN events e ON e.id = d.event_id`);
  const programsMs: number[] = [];
  let row = open.get();
  const endMs = systemClock.monotonic() + DRAIN_MS_MAX;
  for (let i = 0; systemClock.monotonic() < endMs; i++) {
    const sentAtMs = systemClock.monotonic();
    await programsOf(app.url, keys[i % keys.length] ?? '');
    // Requests before the deploy was seen tell nothing about the drain.
    if ((row?.total ?? 0) > 0) programsMs.push(systemClock.monotonic() - sentAtMs);
    await systemClock.sleep(Math.max(0, sentAtMs + ASK_MS - systemClock.monotonic()), never);
    // Not at every turn: on a machine with two cores the looking would be part of what is looked at.
    if (i % 10 === 0) row = open.get();
    if (row && row.total === webhooks * programIds.length && row.done === wanted) break;
  }
  const { detected = 0, at = Number.NaN, done = 0 } = row ?? {};
  const posts = await internet.posts();
  const detectedAtMs = store.prepare<{ at: number }, [string]>(
    'SELECT e.created_at_ms AS at FROM deliveries d JOIN events e ON e.id = d.event_id WHERE d.id = ?',
  );
  const firstOf = Map.groupBy(posts, ({ id }) => id);
  return {
    delivered: done,
    posts: posts.length,
    firstMs: [...firstOf].flatMap(([id, [first]]) =>
      !first || first.n < hanging ? [] : [first.atMs - (detectedAtMs.get(id)?.at ?? Number.NaN)],
    ),
    drainedMs: at - detected,
    programsMs,
    cpuSeconds: cpuSecondsOf(app.pid) - cpuBefore,
    residentBytes: memoryOf(app.pid).residentBytes,
  };
}
