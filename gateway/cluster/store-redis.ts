import { Redis } from 'ioredis';
import { openRedisLink } from '../../shared/redis/link.ts';
import { type Answer, answer } from './authority.ts';
import {
  type LeaseStore,
  type Message,
  type Reply,
  type Sender,
  STORE_DEADLINE_MS,
  type StoreOptions,
} from './messages.ts';

/**
 * Replaces blobs that are unchanged. KEYS: accounts. ARGV of each: the blob to be replaced (empty for none; one that is
 * never there only reads), its successor, and how long that is kept (0: for ever). The reply is the server's clock in
 * milliseconds and for each account the blob that was found instead, or nothing when it was replaced.
 */
const SWAP_SCRIPT = `
local t = redis.call('TIME')
local replies = {t[1] * 1000 + math.floor(t[2] / 1000)}
for i, key in ipairs(KEYS) do
  local found, new, life = redis.call('GET', key) or '', ARGV[3 * i - 1], ARGV[3 * i]
  replies[i + 1] = found
  if found == ARGV[3 * i - 2] then
    replies[i + 1] = false
    if life == '0' then redis.call('SET', key, new) else redis.call('SET', key, new, 'PX', life) end
  end
end
return replies`;

const READ = ['?', '', '0'] as const;

/** Accounts in one command: for so many the server does nothing else for about a millisecond. */
const KEYS_MAX = 256;

/** Accounts whose last answered message is remembered; the one that was silent longest is forgotten first. */
const ANSWERED_MAX = 50_000;

type RedisStoreOptions = StoreOptions & {
  /** As in `placesFrom` of shared/redis/options.ts; one address of a cluster is enough. */
  url: string;
  random: () => number;
  deadlineMs?: number;
  /** A setting of the server that an operator must change, in a sentence; each is reported once. */
  onWarning(sentence: string): void;
  /** Redis may have lost what was reported. Report the counters of every account of this node again, held or not. */
  onLoss(): void;
};

/** A message on its way: the blob that was found for it, and what is to replace that. */
type Draft = Readonly<{ at: number; message: Message; found: string; next: Answer | undefined }>;

/** The key of an account's leases. The braces keep all of an account's keys on one node of a cluster. */
export const leaseKey = (accountId: number) => `{sluice:${accountId}}:lease`;

/**
 * Leases in a Redis or a Redis Cluster. It opens at once, whether the server is there or not: until it is, calls fail
 * at once, and when it comes (back) they succeed without a restart. A call is two commands, one that reads and one that
 * replaces; in a cluster two for each account. `undefined`: the address is none of a Redis.
 */
export function openRedisStore(options: RedisStoreOptions): LeaseStore | undefined {
  const { url, clock, random, deadlineMs = STORE_DEADLINE_MS, onWarning, onLoss, onReleased } = options;
  /** The `seq` of the last answered message with credits by account, of this start of this node. */
  const answered = new Map<number, number>();
  let lossMs = Number.NEGATIVE_INFINITY;
  let lossNoted = false;

  const link = openRedisLink({
    url,
    deadlineMs,
    clock,
    random,
    onWarning,
    onStranger() {
      lossMs = clock.monotonic();
      noteLoss();
    },
    scripts: { sluiceSwap: { lua: SWAP_SCRIPT } },
  });
  if (link === undefined) return undefined;
  const server = link;

  /** Once for all the replies that came together. */
  function noteLoss(): void {
    if (lossNoted) return;
    lossNoted = true;
    queueMicrotask(() => {
      lossNoted = false;
      onLoss();
    });
  }

  function noteAnswered(accountId: number, seq: number): void {
    const latest = Math.max(seq, answered.get(accountId) ?? 0);
    answered.delete(accountId);
    answered.set(accountId, latest);
    const [oldest] = answered.size > ANSWERED_MAX ? answered.keys() : [];
    if (oldest !== undefined) answered.delete(oldest);
  }

  function answerOf(sender: Sender, message: Message, blob: string, nowMs: number): Answer | undefined {
    // Reports of dead nodes are below every fence, and of no process that could miss them.
    const answeredSeq = sender.fence === 0 ? 0 : (answered.get(message.accountId) ?? 0);
    const moment = { nowMs, sinceLossMs: clock.monotonic() - lossMs, answeredSeq };
    try {
      return answer(blob === '' ? undefined : blob, sender, message, moment);
    } catch (error) {
      return void server.refused(error);
    }
  }

  async function exchange(sender: Sender, messages: readonly Message[]): Promise<(Reply | undefined)[]> {
    const replies = messages.map((): Reply | undefined => undefined);
    const client = server.client();
    if (client === undefined) return replies;
    const losses = server.strangers();
    const done = new AbortController();

    function finish({ at, message }: Draft, { reply, isLost, released }: Answer): void {
      server.answered();
      const { accountId, credits, scans } = message;
      // Granted by a server that may not know of other nodes' grants; the next message returns it.
      if (server.strangers() !== losses && (credits !== undefined || scans !== undefined)) return;
      if (credits !== undefined && sender.fence > 0) noteAnswered(accountId, sender.seq);
      if (isLost) noteLoss();
      for (const each of released) onReleased(accountId, each);
      replies[at] = reply;
    }

    /** Reads, and replaces until no other process was faster: of several one always succeeds. */
    const settle = async (drafts: readonly Draft[]): Promise<void> => {
      for (let open = drafts; open.length > 0 && !done.signal.aborted;) {
        const keys = open.map(({ message }) => leaseKey(message.accountId));
        const words = open.flatMap(({ found, next }) =>
          next === undefined ? READ : [found, next.blob, String(next.lifeMs ?? 0)],
        );
        const swapped = await client.sluiceSwap(keys.length, ...keys, ...words);
        const [nowMs, ...blobs] = swapped as [number, ...(string | null)[]]; // as the script replies
        open = open.flatMap((draft, i) => {
          const found = blobs[i] ?? undefined;
          const next = found === undefined ? draft.next : answerOf(sender, draft.message, found, nowMs);
          if (next === undefined) return [];
          if (found !== undefined && found !== next.blob) return [{ ...draft, found, next }];
          finish(draft, next);
          return [];
        });
      }
    };

    const drafts = messages.map((message, at): Draft => ({ at, message, found: '', next: undefined }));
    // In a cluster every account may be on another node.
    const size = client instanceof Redis ? KEYS_MAX : 1;
    const parts = Array.from({ length: Math.ceil(drafts.length / size) }, (_, part) =>
      settle(drafts.slice(part * size, (part + 1) * size)).catch(server.refused),
    );
    await Promise.race([Promise.all(parts), clock.sleep(deadlineMs, done.signal)]);
    done.abort();
    return [...replies];
  }

  return { sync: exchange, failure: server.failure, close: server.close };
}
