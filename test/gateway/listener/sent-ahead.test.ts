import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { BodyDecoder } from '../../../gateway/http/body-decoder.ts';
import { Exchange } from '../../../gateway/listener/exchange.ts';
import { TURN_BYTES } from '../../../gateway/listener/intake.ts';
import { TURN_COST } from '../../../gateway/listener/turn-work.ts';
import { openCaller } from '../../fakes/raw-caller.ts';
import { atRest } from '../../faults/gateway-process.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { get, open, post, statusesIn, text, turns } from './open-listener.ts';

test('M12 a worker that answers says that it lives, also where its timers have no turn', async () => {
  const { clock, advance } = createVirtualClock();
  let beats = 0;
  // No timer runs while a listener answers one request behind the other.
  const { url } = open(
    () => {
      advance(0.3);
      return text('');
    },
    clock,
    {},
    () => void beats++,
  );
  using caller = await openCaller(url);
  caller.send(get('/').repeat(10_000));
  await caller.until('HTTP/1.1 200', 10_000);
  expect(beats).toBe(3);
});

describe('F18 a long body', () => {
  test('F18 in chunks of a byte is walked in turns of the loop, a part in each, and comes whole', async () => {
    const { push } = BodyDecoder.prototype;
    let [inThisTurn, most] = [0, 0];
    BodyDecoder.prototype.push = function (bytes) {
      inThisTurn += bytes.length;
      most = Math.max(most, inThisTurn);
      return push.call(this, bytes);
    };
    let isOver = false;
    const turn = () => {
      inThisTurn = 0;
      if (!isOver) setImmediate(turn);
    };
    turn();
    const { url } = open(async (request) => {
      const body = await request.readBody(1 << 20, 1);
      return text(body.kind === 'body' ? `${body.bytes.length} bytes` : body.kind);
    });
    using caller = await openCaller(url);
    const wire = `${'1\r\na\r\n'.repeat(500_000)}0\r\n\r\n`;
    caller.send(`POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${wire}`);
    expect(await caller.until(' bytes')).toEndWith('\r\n\r\n500000 bytes');
    isOver = true;
    BodyDecoder.prototype.push = push;
    // A part that begins in a turn ends in it; a turn of ours may lie between two of the queue's.
    expect(most).toBeLessThan(2 * 1_024 * (TURN_COST + 17));
  });
});

describe('F18 long bodies of many callers', () => {
  const BYTES = 1_000_000;
  const sized = `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${BYTES}\r\n\r\n`;
  const opened = () =>
    open(async (request) => {
      const body = await request.readBody(1 << 20, 1);
      return text(body.kind === 'body' ? `${body.bytes.length} bytes` : body.kind);
    });

  test('F18 are read in turns of the loop, some in each, and come whole', async () => {
    const { receive } = Exchange.prototype;
    let [inThisTurn, most] = [0, 0];
    Exchange.prototype.receive = function (bytes) {
      inThisTurn += bytes.length;
      most = Math.max(most, inThisTurn);
      return receive.call(this, bytes);
    };
    let isOver = false;
    const turn = () => {
      inThisTurn = 0;
      if (!isOver) setImmediate(turn);
    };
    turn();
    const { url } = opened();
    const callers = await Promise.all(Array.from({ length: 60 }, () => openCaller(url)));
    for (const caller of callers) caller.send(sized + 'x'.repeat(BYTES));
    for (const caller of callers) expect(await caller.until(' bytes')).toEndWith(`\r\n\r\n${BYTES} bytes`);
    isOver = true;
    Exchange.prototype.receive = receive;
    for (const caller of callers) caller[Symbol.dispose]();
    // A turn ends with the read that makes it enough; the runtime reads half a megabyte at once.
    expect(most).toBeLessThan(TURN_BYTES + 524_288);
  });

  test('F18 let a caller between them who sends a short one', async () => {
    const { url } = opened();
    const callers = await Promise.all(Array.from({ length: 60 }, () => openCaller(url)));
    using short = await openCaller(url);
    let whole = 0;
    for (const caller of callers) {
      caller.send(sized + 'x'.repeat(BYTES));
      void caller.until(' bytes').then(() => whole++);
    }
    short.send(post('short'));
    expect(await short.until(' bytes')).toEndWith('\r\n\r\n5 bytes');
    expect(whole).toBeLessThan(30);
    for (const caller of callers) caller[Symbol.dispose]();
  });
});

/** The most requests that one turn of the loop has answered. */
let mostInTurn = 0;
let inTurn = 0;
let isWatching = false;
const answering = (status = 200) => {
  inTurn++;
  mostInTurn = Math.max(mostInTurn, inTurn);
  return text('', status);
};
beforeEach(() => {
  [mostInTurn, inTurn, isWatching] = [0, 0, true];
  const turn = () => {
    inTurn = 0;
    if (isWatching) setImmediate(turn);
  };
  turn();
});
afterEach(() => void (isWatching = false));

describe('F14 requests that are sent ahead', () => {
  test('F14 of many callers are answered in turns of the loop, a share in each, also where nothing is read', async () => {
    let answered = 0;
    const { url } = open(() => {
      answered++;
      return answering();
    });
    using callers = new DisposableStack();
    const all = await Promise.all(Array.from({ length: 30 }, () => openCaller(url)));
    for (const caller of all) {
      callers.use(caller).pause();
      caller.send(get('/').repeat(2_000));
    }
    await atRest(() => answered, 50);
    // All of them, or as many as the system holds answers for.
    expect(answered).toBeGreaterThan(20_000);
    // The first request of a read is answered with the read; a turn of ours may lie between two of the queue.
    expect(mostInTurn).toBeLessThanOrEqual(2 * TURN_COST + 2 * all.length);
  });

  test('F14 of as many callers as a turn has requests for are taken up together', async () => {
    let asked = 0;
    let gate = Promise.withResolvers<void>();
    const { url } = open(async () => {
      asked++;
      const answer = answering();
      await gate.promise;
      return answer;
    });
    const callers = await Promise.all(Array.from({ length: 60 }, () => openCaller(url)));
    for (const caller of callers) caller.send(get('/').repeat(2));
    while (asked < 60) await Bun.sleep(0); // awaits the first of each
    await turns(2);
    mostInTurn = 0;
    const first = gate;
    gate = Promise.withResolvers();
    first.resolve();
    while (asked < 120) await Bun.sleep(0); // awaits the second of each
    expect(mostInTurn).toBe(60);
    gate.resolve();
    for (const caller of callers) await caller.until('HTTP/1.1 200', 2);
    for (const caller of callers) caller[Symbol.dispose]();
  });

  test('F14 let a caller between them who sends one', async () => {
    const order: string[] = [];
    const { url } = open(({ url: target }) => {
      order.push(target);
      return text('');
    });
    using flood = await openCaller(url);
    using one = await openCaller(url);
    flood.send(get('/').repeat(20_000));
    while (order.length === 0) await Bun.sleep(0); // awaits the first answer
    const before = order.length;
    one.send(get('/?one'));
    await one.until('\r\n\r\n');
    // It waits for a few turns of the loop, and not for the flood.
    expect(order.findIndex((target) => target.endsWith('/?one')) - before).toBeLessThan(20 * TURN_COST);
    await flood.until('\r\n\r\n', 20_000);
    expect(order.length).toBe(20_001);
  });

  test('F14 after two hundred refused ones in a row the connection ends; a good one between them begins the count anew', async () => {
    const { url } = open(({ url: target }) => text('', Number(target.slice(target.indexOf('?') + 1))));
    using caller = await openCaller(url);
    caller.send(get('/?401').repeat(199) + get('/?200') + get('/?404').repeat(1_000));
    await caller.ended;
    const codes = statusesIn(caller.text());
    expect(codes).toEqual([...Array<number>(199).fill(401), 200, ...Array<number>(200).fill(404)]);
    expect(caller.text().match(/connection: close/g)?.length).toBe(1);
  });

  test('F14 what a valid key is refused does not end its connection', async () => {
    const { url } = open(async (request) => {
      await request.readBody(100, 1);
      return text('', 429);
    });
    using caller = await openCaller(url);
    caller.send(post('{}').repeat(300));
    const answers = await caller.until('HTTP/1.1 429', 300);
    expect(statusesIn(answers)).toEqual(Array<number>(300).fill(429));
    expect(answers).not.toContain('connection: close');
  });
});
