import { describe, expect, test } from 'bun:test';
import { createStderrTail, type FromWorker, supervisorLinkFrom } from '../../gateway/workers.ts';

describe('the link to the supervisor', () => {
  const report = {
    metrics: [],
    status: { version: '1', processes: 1, recent_seconds: 300, backends: [] },
  };

  function channel() {
    const sent: FromWorker[] = [];
    let deliver: (message: unknown) => void = () => undefined;
    const ends = {
      send: (message: FromWorker) => void sent.push(message),
      on: (_: 'message', take: (message: unknown) => void) => void (deliver = take),
    };
    return { ends, sent, deliver: (message: unknown) => deliver(message) };
  }

  test('only a process with a number and a channel has a link', () => {
    const { ends } = channel();
    expect(supervisorLinkFrom(undefined, ends)).toBeUndefined();
    expect(supervisorLinkFrom('2', { on: ends.on })).toBeUndefined();
    expect(supervisorLinkFrom('2', ends)?.worker).toBe(2);
  });

  test('it reports that it is prepared, and gets the port', async () => {
    const { ends, sent, deliver } = channel();
    const port = supervisorLinkFrom('1', ends)?.port();
    expect(sent).toEqual([{ kind: 'prepared' }]);
    deliver({ kind: 'something of another version' });
    deliver(null);
    deliver({ kind: 'listen', port: 8899 });
    expect(await port).toBe(8_899);
  });

  test('it reports once it listens', async () => {
    const { ends, sent, deliver } = channel();
    const link = supervisorLinkFrom('1', ends);
    deliver({ kind: 'report' });
    link?.serve(() => Promise.resolve(report));
    deliver({ kind: 'report' });
    await Promise.resolve();
    expect(sent).toEqual([{ kind: 'listening' }, { kind: 'report', report }]);
  });

  test('a supervisor that is gone is no error', () => {
    const broken = () => {
      throw new Error('the channel is closed');
    };
    const link = supervisorLinkFrom('1', { send: broken, on: () => undefined });
    expect(() => link?.serve(() => Promise.resolve(report))).not.toThrow();
  });
});

describe('the stderr of a worker', () => {
  function written() {
    const stream = new TransformStream<Uint8Array, Uint8Array>();
    const writer = stream.writable.getWriter();
    const out: string[] = [];
    const tail = createStderrTail(stream.readable, (bytes) => void out.push(Buffer.from(bytes).toString()));
    return {
      ...tail,
      out,
      write: (text: string) => writer.write(Buffer.from(text)),
      end: () => writer.close(),
    };
  }

  test('nothing is forwarded before the release, everything from it on', async () => {
    const tail = written();
    await tail.write('one\n');
    await tail.write('two\n');
    expect(tail.out).toEqual([]);
    tail.release();
    await tail.write('three\n');
    await tail.end();
    await tail.ended;
    expect(tail.out.join('')).toBe('one\ntwo\nthree\n');
    expect(tail.text()).toBe('one\ntwo\nthree');
  });

  test('the tail is bounded, however much is written', async () => {
    const tail = written();
    for (let i = 0; i < 1_000; i++) await tail.write(`line ${i}\n`);
    await tail.end();
    await tail.ended;
    expect(tail.text().length).toBeLessThanOrEqual(4_096);
    expect(tail.text()).toEndWith('line 998\nline 999');
    expect(tail.out).toEqual([]);
  });
});
