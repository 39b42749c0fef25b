import { Redis } from 'ioredis';
import type { RedisClient } from '../../../shared/redis/link.ts';

export type ScriptName = 'sluiceRate' | 'sluiceCredit' | 'sluiceScans';

/** One account's key, and what the script is told of it. */
export type Asked = Readonly<{ key: string; words: readonly string[] }>;

/** The call of a script for `count` accounts, the first of which has the place `from` among all. */
export type ScriptCall = Readonly<{
  from: number;
  count: number;
  /** A reply for each; rejects with the server's refusal. */
  replies: Promise<unknown>;
}>;

/** What a link's scripts add to its client: the number of keys, the keys, and the words of each. */
type Scripted = RedisClient &
  Record<ScriptName, (keys: number, ...rest: readonly string[]) => Promise<unknown>>;

/** Accounts in one command: for so many the server does nothing else for a few milliseconds. */
const KEYS_MAX = 256;

/**
 * Calls a script for all accounts. A single server gets as few commands as can be; in a cluster, where every account may
 * be elsewhere, each has its own. What goes to one server goes in one write. On a single server
 * nothing is made for an account by itself but its words: of many that are asked for once each, whatever is made stays
 * until the next collection.
 */
export function callTogether(
  client: RedisClient,
  name: ScriptName,
  asked: readonly Asked[],
): readonly ScriptCall[] {
  const isSingle = client instanceof Redis;
  const size = isSingle ? KEYS_MAX : 1;
  const servers = isSingle ? [client] : client.nodes('master');
  const calls: ScriptCall[] = [];
  for (const { stream } of servers) stream?.cork();
  try {
    for (let from = 0; from < asked.length; from += size) {
      const some = asked.slice(from, from + size);
      const words = some.map(({ key }) => key);
      for (const each of some) words.push(...each.words);
      // The commands are defined by the scripts that the link was opened with.
      const replies = (client as Scripted)[name](some.length, ...words);
      calls.push({ from, count: some.length, replies });
    }
  } finally {
    for (const { stream } of servers) stream?.uncork();
  }
  return calls;
}
