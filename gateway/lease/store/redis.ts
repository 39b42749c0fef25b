import type { Clock } from '../../../shared/clock.ts';
import type { Released } from '../centre-credit.ts';
import type {
  Answered,
  CreditAsk,
  CreditGrant,
  LeaseStore,
  RateAsk,
  RateGrant,
  ScanAsk,
  ScanGrant,
  Speaker,
} from '../messages.ts';
import { createAnsweredMessages } from './answered-messages.ts';
import { openRedisLink } from '../../../shared/redis/link.ts';
import { overMany } from './script-over-many.ts';
import { callTogether, type CallScript, type ScriptName } from './redis-calls.ts';
import { creditReplyOf, creditWords, rateGrantOf, rateWords, scanGrantOf, scanWords } from './redis-words.ts';
import { SCAN_SCRIPT } from './scan-script.ts';
import { CREDIT_SCRIPT, LEARNING_MS, RATE_SCRIPT } from './scripts.ts';

/** How long a call waits for its answer when nothing else is said, in milliseconds. */
export const REDIS_DEADLINE_MS = 100;

/** Asks that may wait for an answer at once; above it they fail at once, so that a stuck server fills no memory. */
const WAITING_MAX = 8_192;

export type RedisStoreOptions = Readonly<{
  /** As in `placesFrom` of shared/redis/options.ts; one address of a cluster is enough. */
  url: string;
  clock: Clock;
  random: () => number;
  /** After it a call is `failed`, although Redis may still carry it out. */
  deadlineMs?: number;
  /** A setting of the server that an operator must change, in a sentence; each is said once. */
  onWarning(sentence: string): void;
  /** Redis may have lost what it was told. Say the counters of every account of this node again, held or not. */
  onLoss(): void;
  /** Credits that a node, silent for a day, held and that are the account's again: for the ledger. */
  onReleased(accountId: number, released: Released): void;
  /** The Lua; only tests give others. */
  scripts?: Readonly<Partial<Record<'rate' | 'credit' | 'scans', string>>>;
}>;

export type OpenedRedis =
  | { readonly kind: 'open'; readonly store: LeaseStore }
  /** `sentence` tells the operator what is wrong with the address. */
  | { readonly kind: 'unusable'; readonly sentence: string };

/**
 * The centre in a Redis or a Redis Cluster. It opens at once, whether the server is there or not: until it is, calls
 * fail at once, and when it comes (back) they succeed without a restart. Asks that come together are one EVALSHA, in a cluster one each.
 */
export function openRedisStore(options: RedisStoreOptions): OpenedRedis {
  const { clock, deadlineMs = REDIS_DEADLINE_MS, random, onWarning, onLoss, onReleased } = options;
  const answered = createAnsweredMessages();
  const closing = new AbortController();
  let strangeAtMs = Number.NEGATIVE_INFINITY;
  let waiting = 0;
  let lossNoted = false;
  const calls = new Set<Promise<unknown>>();

  /** Once for all the answers that came together. */
  function noteLoss(): void {
    if (lossNoted) return;
    lossNoted = true;
    queueMicrotask(() => {
      lossNoted = false;
      onLoss();
    });
  }

  const link = openRedisLink({
    url: options.url,
    deadlineMs,
    clock,
    random,
    onWarning,
    onStranger() {
      strangeAtMs = clock.monotonic();
      noteLoss();
    },
    scripts: {
      sluiceRate: { lua: overMany(options.scripts?.rate ?? RATE_SCRIPT) },
      sluiceCredit: { lua: overMany(options.scripts?.credit ?? CREDIT_SCRIPT) },
      sluiceScans: { lua: overMany(options.scripts?.scans ?? SCAN_SCRIPT) },
    },
  });
  if (link === undefined) return { kind: 'unusable', sentence: 'storage.redis is not an address of Redis.' };

  const sinceStrangeMs = () => clock.monotonic() - strangeAtMs;

  async function rate(call: CallScript, speaker: Speaker, ask: RateAsk): Promise<RateGrant> {
    // A bucket that is missing may have been lost until it would have filled up by itself.
    const strange = sinceStrangeMs() < (1_000 * ask.burst) / ask.rps;
    return rateGrantOf(await call(`{sluice:${ask.accountId}}:rate`, rateWords(speaker, ask, strange)));
  }

  async function credit(call: CallScript, speaker: Speaker, ask: CreditAsk): Promise<CreditGrant> {
    const learning = sinceStrangeMs() < LEARNING_MS;
    const words = creditWords(speaker, ask, learning, answered.last(speaker, ask.accountId));
    const before = link?.strangers();
    const reply = creditReplyOf(await call(`{sluice:${ask.accountId}}:credit`, words));
    // Given by one who may not know of others' grants; as it was not taken, the next message gives it back.
    if (link?.strangers() !== before) throw new Error('the lease was granted by a stranger');
    answered.note(speaker, ask.accountId);
    if (reply.lost) noteLoss();
    for (const released of reply.released) onReleased(ask.accountId, released);
    return reply.grant;
  }

  async function scans(call: CallScript, speaker: Speaker, ask: ScanAsk): Promise<ScanGrant> {
    const learning = sinceStrangeMs() < LEARNING_MS;
    const before = link?.strangers();
    const words = scanWords(speaker, ask, learning);
    const grant = scanGrantOf(await call(`{sluice:${ask.accountId}}:scans`, words));
    // Given by one who may not know who holds what.
    if (link?.strangers() !== before) throw new Error('the places were granted by a stranger');
    return grant;
  }

  async function all<Ask, Grant>(
    name: ScriptName,
    asks: readonly Ask[],
    one: (call: CallScript, ask: Ask) => Promise<Grant>,
  ): Promise<readonly Answered<Grant>[]> {
    const client = closing.signal.aborted ? undefined : link?.client();
    if (client === undefined || waiting + asks.length > WAITING_MAX)
      return asks.map(() => ({ kind: 'failed' }));
    const answers: Answered<Grant>[] = asks.map(() => ({ kind: 'failed' }));
    waiting += asks.length;
    const sent = callTogether(client, name, (call) =>
      asks.map(async (ask, index) => {
        try {
          answers[index] = { kind: 'granted', grant: await one(call, ask) };
        } catch (error) {
          // It stays `failed`: whether Redis took it is not known, and need not be.
          link?.refused(error);
        } finally {
          waiting--;
        }
      }),
    );
    await withinDeadline(Promise.all(sent));
    return [...answers];
  }

  /** Resolves when `work` has, or at the deadline. */
  async function withinDeadline(work: Promise<unknown>): Promise<void> {
    const done = new AbortController();
    await Promise.race([work, clock.sleep(deadlineMs, done.signal)]);
    done.abort();
  }

  function tracked<T>(call: Promise<T>): Promise<T> {
    calls.add(call);
    void call.finally(() => calls.delete(call));
    return call;
  }

  const store: LeaseStore = {
    rates: (speaker, asks) => tracked(all('sluiceRate', asks, (call, ask) => rate(call, speaker, ask))),
    credits: (speaker, asks) => tracked(all('sluiceCredit', asks, (call, ask) => credit(call, speaker, ask))),
    scans: (speaker, asks) => tracked(all('sluiceScans', asks, (call, ask) => scans(call, speaker, ask))),
    async close() {
      closing.abort();
      await Promise.all(calls);
      await link?.close();
    },
  };
  return { kind: 'open', store };
}
