import { describe, expect, test } from 'bun:test';
import {
  createStderrTail,
  type FromWorker,
  type ReloadedConfig,
  supervisorLinkFrom,
} from '../../gateway/workers.ts';
import { createVirtualClock } from '../fakes/chain-clock.ts';

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

  const config = { name: 'sluice.toml', text: '' };
  const serving = (reloaded: ReloadedConfig[] = []) => ({
    report: () => Promise.resolve(report),
    setReloadedConfig: (given: ReloadedConfig) => void reloaded.push(given),
  });

  test('it gets its assignment, reports that it is prepared, and gets the port', async () => {
    const { ends, sent, deliver } = channel();
    const link = supervisorLinkFrom('1', ends);
    const [assignment, port] = [link?.assignment(), link?.port()];
    expect(sent).toEqual([{ kind: 'started' }, { kind: 'prepared' }]);
    deliver({ kind: 'something of another version' });
    deliver(null);
    deliver({ kind: 'assignment', assignment: { seat: 2, config } });
    deliver({ kind: 'listen', claim: { kind: 'free', port: 8899 } });
    expect(await assignment).toEqual({ seat: 2, config });
    expect(await port).toEqual({ kind: 'free', port: 8_899 });
  });

  test('it reports once it listens, beats every second, and tells when it drains', async () => {
    const { ends, sent, deliver } = channel();
    const clock = createVirtualClock();
    const stop = new AbortController();
    const link = supervisorLinkFrom('1', ends);
    deliver({ kind: 'report' });
    const served = link?.serve(serving(), clock, stop.signal);
    deliver({ kind: 'report' });
    await Promise.resolve();
    expect(sent.splice(0)).toEqual([{ kind: 'listening' }, { kind: 'report', report }]);
    await clock.advance(2_000);
    expect(sent.splice(0)).toEqual([{ kind: 'beat' }, { kind: 'beat' }]);
    stop.abort();
    await served;
    expect(sent).toEqual([{ kind: 'draining' }]);
  });

  test('a reloaded config that came while it started counts when it listens, and later ones at once', async () => {
    const { ends, deliver } = channel();
    const reloaded: ReloadedConfig[] = [];
    const [early, late] = ['early', 'late'].map((text) => ({
      config: { ...config, text },
      announces: false,
    }));
    deliver({ kind: 'reloaded', reloaded: early });
    const link = supervisorLinkFrom('1', ends);
    deliver({ kind: 'reloaded', reloaded: early });
    await link?.serve(serving(reloaded), createVirtualClock(), AbortSignal.abort());
    deliver({ kind: 'reloaded', reloaded: late });
    expect<unknown>(reloaded).toEqual([early, late]);
  });

  test('a supervisor that is gone is no error', () => {
    const broken = () => {
      throw new Error('the channel is closed');
    };
    const link = supervisorLinkFrom('1', { send: broken, on: () => undefined });
    expect(() => link?.serve(serving(), createVirtualClock(), AbortSignal.abort())).not.toThrow();
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
