import type { Clock } from '../../shared/clock.ts';
import { CHANGED, HEAD, LEASE, rowsOf, USES } from '../../shared/publication/names.ts';
import { openRedisLink, type RedisClient, type RedisLink } from '../../shared/redis/link.ts';
import type { Portion } from './changes.ts';
import { PUBLISHER_SCRIPTS } from './scripts.ts';

/** What Redis says when it is asked for the right to publish. */
export type Claim =
  | Readonly<{ kind: 'claimed'; epoch: string; seq: number; config: number; termsId: string }>
  | Readonly<{ kind: 'other-origin'; origin: string }>
  | Readonly<{ kind: 'held' }>;

/** When a key was used last, in Unix milliseconds. */
export type KeyUse = Readonly<{ keyId: string; atMs: number }>;

/**
 * The publication in Redis, for the one deploys that publishes. Everything rejects while Redis does not answer. `false`
 * means that the right to publish is lost, and nothing was changed.
 */
export type RedisHead = Readonly<{
  /** Takes or renews the right, or only asks for it. */
  claim(take: boolean): Promise<Claim>;
  /** The highest revision among the rows of an epoch; 0 when there are none. */
  tip(epoch: string): Promise<number>;
  put(epoch: string, portion: Portion, building: boolean): Promise<boolean>;
  finish(epoch: string, upTo: number, before: string): Promise<boolean>;
  terms(config: number, termsId: string, text: string): Promise<boolean>;
  /** Tells which keys are revoked ahead of the rows that say so; `''`: none. */
  revoked(text: string): Promise<boolean>;
  uses(most: number): Promise<readonly KeyUse[]>;
  dropUses(uses: readonly KeyUse[]): Promise<void>;
  /** Gives the right up, if it can be said at once, and ends the connection. */
  close(): Promise<void>;
}>;

export type RedisHeadOptions = Readonly<{
  url: string;
  origin: string;
  /** This start of deploys: the token in `publishers`. */
  holder: string;
  clock: Clock;
  /** A number from 0 up to 1. */
  random(): number;
  onWarning(sentence: string): void;
}>;

/** How long the right lasts without being renewed: what a deploys that was killed costs its successor. */
export const LEASE_MS = 5_000;
/** Rows of a full publication that nobody goes on with are forgotten after this. */
const BUILDING_LIFE_MS = 3_600_000;
const DEADLINE_MS = 1_000;

type Script = (...words: readonly (string | number)[]) => Promise<unknown>;
type Scripted = RedisClient & Record<keyof typeof PUBLISHER_SCRIPTS, Script>;

/** Opens the way to Redis, whether it is there or not; `undefined` when `url` is no address of one. */
export function openRedisHead(options: RedisHeadOptions): RedisHead | undefined {
  const { clock, random, onWarning, origin, holder } = options;
  const link = openRedisLink({
    url: options.url,
    deadlineMs: DEADLINE_MS,
    scripts: PUBLISHER_SCRIPTS,
    clock,
    random,
    onWarning,
    // Every turn asks what is there, and so notices a Redis that knows less than before.
    onStranger: () => undefined,
  });
  return link && over(link, origin, holder);
}

function over(link: RedisLink, origin: string, holder: string): RedisHead {
  function client(): Scripted {
    const now = link.client();
    if (now === undefined) throw new Error('Redis does not answer');
    return now as Scripted; // the link was opened with these scripts
  }

  async function said(reply: Promise<unknown>): Promise<unknown> {
    try {
      return await reply;
    } catch (error) {
      link.refused(error);
      throw error;
    }
  }

  async function done(reply: Promise<unknown>): Promise<boolean> {
    return (await said(reply)) === 'put';
  }

  async function claim(take: boolean): Promise<Claim> {
    const words = [origin, holder, holder, LEASE_MS, take ? 1 : 0];
    const [kind, first = '', ...rest] = textsIn(await said(client().sluiceClaim(HEAD, LEASE, ...words)));
    if (kind === 'held') return { kind };
    if (kind === 'other-origin') return { kind, origin: first };
    const [seq, config, termsId = ''] = rest;
    return { kind: 'claimed', epoch: first, seq: Number(seq), config: Number(config), termsId };
  }

  async function put(epoch: string, { rows, upTo }: Portion, building: boolean): Promise<boolean> {
    const words = rows.flatMap(({ seq, published, text }) => [seq, published === seq ? 0 : published, text]);
    const head = [holder, epoch, upTo, building ? BUILDING_LIFE_MS : 0];
    const now = client();
    if (!(await done(now.sluicePut(HEAD, LEASE, rowsOf(epoch), ...head, ...words)))) return false;
    // Whoever does not hear it looks by itself.
    if (!building) now.publish(CHANGED, String(upTo)).catch(() => undefined);
    return true;
  }

  return {
    claim,
    put,
    async tip(epoch) {
      const [last] = await client().xrevrange(rowsOf(epoch), '+', '-', 'COUNT', 1);
      return last === undefined ? 0 : Number(last[0].split('-', 1)[0]);
    },
    async finish(epoch, upTo, before) {
      const [rows, old] = [rowsOf(epoch), rowsOf(before === '' ? epoch : before)];
      const now = client();
      const finished = await done(now.sluiceFinish(HEAD, LEASE, rows, old, holder, epoch, upTo));
      if (finished) now.publish(CHANGED, String(upTo)).catch(() => undefined);
      return finished;
    },
    async terms(config, termsId, text) {
      const now = client();
      const put = await done(now.sluiceTerms(HEAD, LEASE, holder, config, termsId, text));
      if (put) now.publish(CHANGED, 'terms').catch(() => undefined);
      return put;
    },
    async revoked(text) {
      const now = client();
      const put = await done(now.sluiceRevoked(HEAD, LEASE, holder, text));
      if (put) now.publish(CHANGED, 'revoked').catch(() => undefined);
      return put;
    },
    async uses(most) {
      const words = textsIn(await said(client().sluiceShowUses(USES, most)));
      return pairsIn(words).map(([keyId, atMs]) => ({ keyId, atMs: Number(atMs) }));
    },
    async dropUses(uses) {
      const words = uses.flatMap(({ keyId, atMs }) => [keyId, atMs]);
      await said(client().sluiceDropUses(USES, ...words));
    },
    async close() {
      await link
        .client()
        ?.eval(PUBLISHER_SCRIPTS.sluiceLeave.lua, 1, LEASE, holder)
        .catch(() => undefined);
      await link.close();
    },
  };
}

function textsIn(reply: unknown): readonly string[] {
  if (!Array.isArray(reply)) throw new Error('Redis gave no list');
  return reply.map(String);
}

function pairsIn(words: readonly string[]): readonly (readonly [string, string])[] {
  const pairs: (readonly [string, string])[] = [];
  for (let at = 0; at + 1 < words.length; at += 2) pairs.push([words[at] ?? '', words[at + 1] ?? '']);
  return pairs;
}
