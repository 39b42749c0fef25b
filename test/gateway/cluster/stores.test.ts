import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { LeaseStore, Message, Reply } from '../../../gateway/cluster/messages.ts';
import { creditMessage, joined, type Place, PLACES, rateMessage, scanMessage, senderOf } from './stores.ts';

/** What every store promises: processes meet there, and whatever they do at once is done one after the other. */
describe.each(Object.entries(PLACES))('%s', (_, start) => {
  let place: Place;
  let [a, b]: LeaseStore[] = [];
  let seq = 0;
  let account = 10;
  beforeAll(async () => {
    place = await start();
    [a, b] = [await joined(place.at), await joined(place.at)];
  }, 30_000);
  afterAll(async () => {
    await Promise.all([a?.close(), b?.close()]);
    await place[Symbol.asyncDispose]();
  });

  async function send(name: 'a' | 'b', message: Message, by = senderOf(name, ++seq)): Promise<Reply> {
    const [reply] = (await (name === 'a' ? a : b)?.sync(by, [message])) ?? [];
    if (reply === undefined) throw new Error('the store gave no reply');
    return reply;
  }

  test('what one process holds the other cannot have, of every part of a message', async () => {
    const id = ++account;
    const [rate, credits] = [rateMessage({ wanted: 60 }, id), creditMessage({ needed: 1_000 }, id)];
    expect(await send('a', { ...rate, ...credits, ...scanMessage({ wanted: 3 }, id) })).toMatchObject({
      rate: { granted: 60, remaining: 40 },
      credits: { allowance: 1_000, available: 0 },
      scans: { held: 3 },
    });
    await Bun.sleep(2);
    const others = { ...scanMessage({ wanted: 4 }, id), ...creditMessage({ needed: 1 }, id) };
    expect(await send('b', others)).toMatchObject({
      credits: { allowance: 0, heldByOthers: 1_000 },
      scans: { held: 1, fair: 2 },
    });
    expect((await send('b', rateMessage({ wanted: 100 }, id))).rate?.granted).toBeLessThan(60);
  });

  test('many messages of one call have replies in their order, each for its own account', async () => {
    const wanted = Array.from({ length: 300 }, (__, at) => 1 + (at % 50));
    const messages = wanted.map((tokens, at) => rateMessage({ wanted: tokens }, 1_000 + at));
    const replies = await a?.sync(senderOf('a', ++seq), messages);
    expect(replies?.map((reply) => reply?.rate?.granted)).toEqual(wanted);
  });

  test('a message that comes twice or late changes nothing, whichever process sends it', async () => {
    const id = ++account;
    const first = senderOf('a', ++seq);
    const once = await send('a', creditMessage({ wanted: 100 }, id), first);
    expect(await send('a', creditMessage({ wanted: 100 }, id), first)).toEqual(once);
    await send('a', creditMessage({ wanted: 50, charged: 20 }, id));
    expect(await send('b', creditMessage({ wanted: 100 }, id), first)).toMatchObject({
      credits: { allowance: 50, available: 930 },
    });
  });

  test('messages about one account at the same instant are granted no token twice', async () => {
    const id = ++account;
    const messages = Array.from({ length: 6 }, (__, at) =>
      (at % 2 === 0 ? a : b)?.sync(senderOf(`n${at}`, 1), [rateMessage({ rps: 0.001, wanted: 30 }, id)]),
    );
    const grants = (await Promise.all(messages)).map((replies) => replies?.[0]?.rate?.granted ?? 0);
    const sum = grants.reduce((all, granted) => all + granted, 0);
    expect(sum).toBeWithin(90, 101);
  });
});
