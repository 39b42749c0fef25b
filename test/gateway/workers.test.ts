import { describe, expect, test } from 'bun:test';
import { type FromWorker, supervisorLinkFrom } from '../../gateway/workers.ts';

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
