import type { Clock } from '../../../shared/clock.ts';
import type { Released } from '../centre-credit.ts';
import type { Answered, CreditAsk, LeaseStore, RateAsk, ScanAsk, Speaker } from '../messages.ts';
import { createAnsweredMessages } from './answered-messages.ts';
import { openRedisLink } from '../../../shared/redis/link.ts';
import { overMany } from './script-over-many.ts';
import { type Asked, callTogether, type ScriptCall, type ScriptName } from './redis-calls.ts';
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

/** How an ask is written, and its reply read; `grant` throws when it is none. `isStranger`: the server may have lost something meanwhile. */
type Ways<Ask, Grant> = Readonly<{
  asked(ask: Ask): Asked;
  grant(ask: Ask, reply: string, isStranger: boolean): Grant;
}>;

const FAILED = { kind: 'failed' } as const;

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

  // Asked when the words are written, after the link has looked who serves now.
  const sinceStrangeMs = () => clock.monotonic() - strangeAtMs;
  const isLearning = () => sinceStrangeMs() < LEARNING_MS;

  function rates(speaker: Speaker, asks: readonly RateAsk[]) {
    return all('sluiceRate', asks, {
      asked: (ask) => ({
        key: `{sluice:${ask.accountId}}:rate`,
        // A bucket that is missing may have been lost until it would have filled up by itself.
        words: rateWords(speaker, ask, sinceStrangeMs() < (1_000 * ask.burst) / ask.rps),
      }),
      grant: (_, reply) => rateGrantOf(reply),
    });
  }

  function credits(speaker: Speaker, asks: readonly CreditAsk[]) {
    return all('sluiceCredit', asks, {
      asked: (ask) => ({
        key: `{sluice:${ask.accountId}}:credit`,
        words: creditWords(speaker, ask, isLearning(), answered.last(speaker, ask.accountId)),
      }),
      grant({ accountId }, text, isStranger) {
        const reply = creditReplyOf(text);
        // Given by one who may not know of others' grants; as it was not taken, the next message gives it back.
        if (isStranger) throw new Error('the lease was granted by a stranger');
        answered.note(speaker, accountId);
        if (reply.lost) noteLoss();
        for (const released of reply.released) onReleased(accountId, released);
        return reply.grant;
      },
    });
  }

  function scans(speaker: Speaker, asks: readonly ScanAsk[]) {
    return all('sluiceScans', asks, {
      asked: (ask) => ({
        key: `{sluice:${ask.accountId}}:scans`,
        words: scanWords(speaker, ask, isLearning()),
      }),
      grant(_, reply, isStranger) {
        const grant = scanGrantOf(reply);
        // Given by one who may not know who holds what.
        if (isStranger) throw new Error('the places were granted by a stranger');
        return grant;
      },
    });
  }

  async function all<Ask, Grant>(
    name: ScriptName,
    asks: readonly Ask[],
    ways: Ways<Ask, Grant>,
  ): Promise<readonly Answered<Grant>[]> {
    const client = closing.signal.aborted ? undefined : link?.client();
    if (client === undefined || waiting + asks.length > WAITING_MAX) return asks.map(() => FAILED);
    const answers: Answered<Grant>[] = asks.map(() => FAILED);
    const before = link?.strangers();
    const calls = callTogether(client, name, asks.map(ways.asked));
    waiting += asks.length;

    async function take({ from, count, replies }: ScriptCall): Promise<void> {
      try {
        const texts: unknown = await replies;
        const isStranger = link?.strangers() !== before;
        for (const [at, ask] of asks.slice(from, from + count).entries())
          answers[from + at] = answerTo(ask, Array.isArray(texts) ? texts[at] : undefined, isStranger);
      } catch (error) {
        // They stay `failed`: whether Redis took them is not known, and need not be.
        link?.refused(error);
      } finally {
        waiting -= count;
      }
    }

    function answerTo(ask: Ask, reply: unknown, isStranger: boolean): Answered<Grant> {
      try {
        // A grant begins with a number; what begins otherwise is the script's refusal of this one account.
        if (typeof reply !== 'string' || !/^[-\d]/.test(reply)) throw new Error(String(reply));
        return { kind: 'granted', grant: ways.grant(ask, reply, isStranger) };
      } catch (error) {
        link?.refused(error);
        return FAILED;
      }
    }

    await withinDeadline(Promise.all(calls.map(take)));
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
    rates: (speaker, asks) => tracked(rates(speaker, asks)),
    credits: (speaker, asks) => tracked(credits(speaker, asks)),
    scans: (speaker, asks) => tracked(scans(speaker, asks)),
    async close() {
      closing.abort();
      await Promise.all(calls);
      await link?.close();
    },
  };
  return { kind: 'open', store };
}
