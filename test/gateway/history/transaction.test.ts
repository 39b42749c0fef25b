import { describe, expect, test } from 'bun:test';
import { failure, result, type Script, startBackend } from '../../fakes/backend.ts';
import { refusedUrl } from '../../fakes/raw-backend.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { textOf } from '../upstream/of.ts';
import { caller, closed, probed } from './world.ts';

const hot = closed(startBackend());
const archive = closed(startBackend());

const node = probed(hot.url, 'agave', 50, 90);
const store = probed(archive.url, 'superbank', 0, 80);
const params = ['signature', { encoding: 'json' }];

const nothing: Script = (call) => result(call, 'null');
const found =
  (by: string): Script =>
  (call) =>
    result(call, `{"slot":1,"by":"${by}"}`);
const refused =
  (code: number): Script =>
  (call) =>
    failure(call, code, 'no');

/** Asks both tiers; each does as its script says. */
async function asked(hotScript: Script, archiveScript: Script, backends = [node, store]) {
  hot.script(hotScript);
  archive.script(archiveScript);
  return caller().ask(backends, 'getTransaction', params);
}

describe('the live node is asked first, without its long-term storage', () => {
  test('and alone when it has the transaction', async () => {
    expect(await asked(found('hot'), found('archive'))).toEqual({ slot: 1, by: 'hot' });
    expect(hot.seen[0]?.request.headers.get('x-bigtable')).toBe('disabled');
    expect(archive.seen).toEqual([]);
  });

  test('and alone when it refuses', async () => {
    expect(await asked(refused(-32015), found('archive'))).toBe(-32015);
    expect(archive.seen).toEqual([]);
  });

  test.each([
    ['does not have it', nothing],
    ['keeps no history', refused(-32011)],
    ['is not well', refused(-32005)],
    ['cannot answer', () => new Response('no', { status: 500 })],
  ] as const)('and the archive when it %s', async (_, script) => {
    expect(await asked(script, found('archive'))).toEqual({ slot: 1, by: 'archive' });
  });
});

test('when neither has it, without an archive or a live node nobody says null, which would read as "never" (§2.3.2)', async () => {
  const away = probed(refusedUrl(), 'superbank', 0, 80);
  expect(await asked(nothing, nothing, [node, away])).toBe(-32019);
  expect(await asked(nothing, nothing, [probed(refusedUrl(), 'agave', 50, 90), store])).toBe('no-backend');
});

describe('of archives that hold a part each', () => {
  const older = closed(startBackend());
  const parts = [node, probed(archive.url, 'old-faithful', 40, 80), probed(older.url, 'old-faithful', 0, 39)];

  test('the next is asked while one does not have it', async () => {
    older.script(found('older'));
    expect(await asked(nothing, nothing, parts)).toEqual({ slot: 1, by: 'older' });
    expect(await asked(nothing, found('archive'), parts)).toEqual({ slot: 1, by: 'archive' });
  });

  test('all must say that they do not have it', async () => {
    older.script(nothing);
    expect(await asked(nothing, nothing, parts)).toBeNull();
    older.script(() => new Response('no', { status: 500 }));
    expect(await asked(nothing, nothing, parts)).toBe(-32019);
    expect(await asked(nothing, refused(-32004), parts)).toBe(-32004);
  });
});

/** Both tiers asked, the live node not answering before it is told to; the head start is over. */
function raced(archiveScript: Script, signal = new AbortController().signal) {
  const { clock, advance, sleeping } = createVirtualClock();
  const held = Promise.withResolvers<Script>();
  const arrived = Promise.withResolvers<void>();
  const archived = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  hot.script(async (call) => {
    call.request.signal.addEventListener('abort', () => left.resolve(), { once: true });
    arrived.resolve();
    return (await held.promise)(call) ?? result(call, '0');
  });
  archive.script(async (call) => {
    const answer = await archiveScript(call);
    archived.resolve();
    return answer ?? result(call, '0');
  });
  const { overs, send } = caller(clock);
  const reply = send([node, store], 'getTransaction', params, { signal });
  return {
    overs,
    reply: async () => textOf(await reply),
    arrived: arrived.promise,
    /** The archive has sent its answer. */
    archived: archived.promise,
    /** The live node was let go of. */
    left: left.promise,
    answer: (script: Script) => held.resolve(script),
    advance,
    sleeping,
  };
}

describe('a live node that has not begun after 150 ms', () => {
  test('is raced by the archive, not sooner, and let go of when the archive has it', async () => {
    const race = raced(found('archive'));
    await race.arrived;
    race.advance(149);
    expect([race.sleeping(), archive.seen.length]).toEqual([1, 0]);
    race.advance(1);
    expect(await race.reply()).toContain('"by":"archive"');
    await race.left;
    race.answer(nothing);
  });

  test("is waited for when the archive's null or error came first (G5)", async () => {
    for (const script of [nothing, refused(-32602), refused(-32004)]) {
      const race = raced(script);
      await race.arrived;
      race.advance(150);
      await race.archived;
      race.answer(found('hot'));
      expect(await race.reply()).toContain('"by":"hot"');
    }
  });
});

test('a caller who leaves leaves both tiers', async () => {
  const abort = new AbortController();
  const context = Promise.withResolvers<void>();
  const race = raced(() => {
    context.resolve();
    return new Promise<Response>(() => undefined);
  }, abort.signal);
  await race.arrived;
  race.advance(150);
  await context.promise;
  abort.abort();
  expect(await race.reply()).toBe('caller-left');
  await race.left;
  expect(race.overs).toEqual(['getTransaction']);
  expect(race.sleeping()).toBe(0);
});
