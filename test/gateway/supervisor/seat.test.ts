import { expect, test } from 'bun:test';
import { type FromChild, seatOf } from '../../../gateway/workers.ts';

const status = { version: '1', processes: 1, recent_seconds: 300, backends: [] };

function channel() {
  const sent: FromChild[] = [];
  let deliver: (message: unknown) => void = () => undefined;
  const ends = {
    send: (message: FromChild) => void sent.push(message),
    on: (_: 'message', take: (message: unknown) => void) => void (deliver = take),
  };
  return { ends, sent, deliver: (message: unknown) => deliver(message) };
}

test('only a process with a slot and a channel has a seat', () => {
  const { ends } = channel();
  expect(seatOf(undefined, ends)).toBeUndefined();
  expect(seatOf('2', { on: ends.on })).toBeUndefined();
  expect(seatOf('2', ends)?.slot).toBe(2);
});

test('it says that it is prepared, and gets the port', async () => {
  const { ends, sent, deliver } = channel();
  const port = seatOf('1', ends)?.port();
  expect(sent).toEqual([{ kind: 'prepared' }]);
  deliver({ kind: 'something of another version' });
  deliver(null);
  deliver({ kind: 'listen', port: 8899 });
  expect(await port).toBe(8_899);
});

test('it answers what it has counted, under the number of the question', async () => {
  const { ends, sent, deliver } = channel();
  const seat = seatOf('1', ends);
  const metrics = [{ name: 'calls_total', type: 'counter', values: [] }];
  seat?.serve(
    () => Promise.resolve(metrics),
    () => status,
  );
  deliver({ kind: 'count', ask: 7 });
  await Promise.resolve();
  expect(sent).toEqual([{ kind: 'listening' }, { kind: 'counted', ask: 7, metrics }]);
});

test('it answers how its backends stand, once it listens', () => {
  const { ends, sent, deliver } = channel();
  const seat = seatOf('1', ends);
  deliver({ kind: 'tell', ask: 1 });
  seat?.serve(
    () => Promise.resolve([]),
    () => status,
  );
  deliver({ kind: 'tell', ask: 2 });
  expect(sent).toEqual([{ kind: 'listening' }, { kind: 'told', ask: 2, status }]);
});

test('a supervisor that is gone is no error', () => {
  const broken = () => {
    throw new Error('the channel is closed');
  };
  const seat = seatOf('1', { send: broken, on: () => undefined });
  expect(() =>
    seat?.serve(
      () => Promise.resolve([]),
      () => status,
    ),
  ).not.toThrow();
});
