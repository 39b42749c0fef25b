import type { Clock } from '../../shared/clock.ts';
import { HEAD, LEASE } from '../../shared/publication.ts';
import { openRedisLink, type RedisClient, type RedisLink } from '../../shared/redis/link.ts';

/** How long an answer of Redis is waited for, in milliseconds: first for a connection, then for each command. */
const ANSWER_MS = 1_000;
const LOOK_MS = 20;

type Options = Readonly<{
  url: string;
  /** Whose accounts the change is of: the `origin` of their database. */
  origin: string;
  clock: Clock;
  /** A number from 0 up to 1. */
  random(): number;
}>;

/** Why gateways on other hosts do not hear of a change now, as a clause; `undefined` when a deploys publishes it. */
export async function whyUnpublished({ url, origin, clock, random }: Options): Promise<string | undefined> {
  const ignore = () => undefined;
  const handlers = { onWarning: ignore, onStranger: ignore };
  const link = openRedisLink({ url, deadlineMs: ANSWER_MS, scripts: {}, clock, random, ...handlers });
  if (link === undefined) return 'storage.redis is no address of a Redis';
  try {
    const client = await connected(link, clock);
    if (client === undefined) return 'Redis does not answer';
    const published = await client.hget(HEAD, 'origin');
    if (published !== null && published !== origin) return 'Redis has the accounts of another database';
    return (await client.get(LEASE)) === null ? 'no deploys publishes accounts' : undefined;
  } catch {
    return 'Redis does not answer';
  } finally {
    await link.close();
  }
}

async function connected(link: RedisLink, clock: Clock): Promise<RedisClient | undefined> {
  const never = new AbortController().signal;
  const endMs = clock.monotonic() + ANSWER_MS;
  while (link.client() === undefined && clock.monotonic() < endMs) await clock.sleep(LOOK_MS, never);
  return link.client();
}
