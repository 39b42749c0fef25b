import { Redis } from 'ioredis';
import type { RedisClient } from '../../../shared/redis/link.ts';

export type ScriptName = 'sluiceRate' | 'sluiceCredit' | 'sluiceScans';

/** Calls the script for one account's key; rejects with the server's refusal. */
export type CallScript = (key: string, words: readonly string[]) => Promise<unknown>;

type Waiting = Readonly<{ key: string; words: readonly string[] }> & PromiseWithResolvers<unknown>;

/** What a link's scripts add to its client: the number of keys, the keys, and the words of each. */
type Scripted = RedisClient &
  Record<ScriptName, (keys: number, ...rest: readonly string[]) => Promise<unknown>>;

/** Accounts in one command: for so many the server does nothing else for a few milliseconds. */
const KEYS_MAX = 256;

/**
 * Calls a script for all accounts that `start` calls it for before it returns. A single server gets as few commands as
 * can be; in a cluster, where every account may be elsewhere, each has its own. What goes to one server goes in one write.
 */
export function callTogether<T>(client: RedisClient, name: ScriptName, start: (call: CallScript) => T): T {
  const calls: Waiting[] = [];
  const started = start((key, words) => {
    const call = { key, words, ...Promise.withResolvers<unknown>() };
    calls.push(call);
    return call.promise;
  });
  const isSingle = client instanceof Redis;
  const size = isSingle ? KEYS_MAX : 1;
  const servers = isSingle ? [client] : client.nodes('master');
  for (const { stream } of servers) stream?.cork();
  for (let from = 0; from < calls.length; from += size)
    // The commands are defined by the scripts that the link was opened with.
    void send(client as Scripted, name, calls.slice(from, from + size));
  for (const { stream } of servers) stream?.uncork();
  return started;
}

async function send(client: Scripted, name: ScriptName, calls: readonly Waiting[]): Promise<void> {
  try {
    const keys = calls.map(({ key }) => key);
    const replies = await client[name](calls.length, ...keys, ...calls.flatMap(({ words }) => words));
    for (const [at, call] of calls.entries()) {
      const reply: unknown = Array.isArray(replies) ? replies[at] : undefined;
      // A grant begins with a number; what begins otherwise is the script's refusal of this one account.
      if (typeof reply === 'string' && /^[-\d]/.test(reply)) call.resolve(reply);
      else call.reject(new Error(String(reply)));
    }
  } catch (error) {
    for (const call of calls) call.reject(error);
  }
}
