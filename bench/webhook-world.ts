import { upgradeProgram } from '../localnet/upgrade.ts';
import { systemClock } from '../shared/clock.ts';
import { cpuSecondsOf, memoryOf } from './proc.ts';
import { programsOf, startInternet, upgradeableOf } from './webhook-started.ts';

/** What came of one upgrade. Instants count from the reading that saw it, in milliseconds. */
export type Drained = Readonly<{
  delivered: number;
  posts: number;
  /** When each healthy receiver had its first POST. */
  firstMs: readonly number[];
  drainedMs: number;
  /** How long each request for the programs took while deliveries drained. */
  programsMs: readonly number[];
  cpuSeconds: number;
  residentBytes: number;
}>;

const POLL_SECONDS = 5;
/** Between two requests for the programs. */
const ASK_MS = 40;
const DRAIN_MS_MAX = 60_000;
const never = new AbortController().signal;

if (import.meta.main) {
  const [webhooks = 0, answerMs = 0, hanging = 0] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify(await drain(webhooks, answerMs, hanging)));
  process.exit(0);
}

/** One upgrade for `webhooks` receivers that take `answerMs`, the first `hanging` of which never answer. */
async function drain(webhooks: number, answerMs: number, hanging: number): Promise<Drained> {
  await using internet = await startInternet({ webhooks, answerMs, hanging, pollSeconds: POLL_SECONDS });
  await using app = await internet.start();
  const { keys } = internet;
  const programId = (await upgradeableOf(app.url, keys)).at(-1) ?? '';
  const cpuBefore = cpuSecondsOf(app.pid);
  const rpcUrl = internet.chainUrl.href;
  const upgraded = await upgradeProgram({ rpcUrl, programId, clock: systemClock, signal: never });
  if (upgraded.kind !== 'upgraded') throw new Error(JSON.stringify(upgraded));

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
    if (row && row.total === webhooks && row.done === webhooks - hanging) break;
  }
  const { detected = 0, at = Number.NaN, done = 0 } = row ?? {};
  const posts = await internet.posts();
  const firstOf = Map.groupBy(posts, ({ n }) => n);
  return {
    delivered: done,
    posts: posts.length,
    firstMs: [...firstOf].flatMap(([n, [first]]) => (n < hanging || !first ? [] : [first.atMs - detected])),
    drainedMs: at - detected,
    programsMs,
    cpuSeconds: cpuSecondsOf(app.pid) - cpuBefore,
    residentBytes: memoryOf(app.pid).residentBytes,
  };
}
