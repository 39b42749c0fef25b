import { expect, test } from 'bun:test';
import { createPost, createStopwatch } from '../../../deploys/delivery/post.ts';
import { systemClock } from '../../../shared/clock.ts';
import { CONTENT } from '../../fakes/receiver.ts';
import { AUTHORITY, BODY, startGood } from './sending.ts';

const never = new AbortController().signal;
const post = createPost(AUTHORITY.cert, systemClock);

test('a connection to an address that is no pin is closed before anything is sent', async () => {
  using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
  // An address in the URL is connected to as it stands, so it shows what a way around the pins would do.
  const posted = await post(
    { url: receiver.url('127.0.0.1'), headers: {}, body: BODY, pins: [{ address: '127.0.0.2', family: 4 }] },
    createStopwatch(systemClock),
    never,
  );
  expect(posted).toEqual({ kind: 'strayed', remoteAddress: '127.0.0.1' });
  expect(receiver.visits()).toEqual([]);
});

test('a request that cannot be made is an outcome too', async () => {
  using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
  const posted = await post(
    {
      url: receiver.url('127.0.0.1'),
      headers: { 'x-bad': 'a\nb' },
      body: BODY,
      pins: [{ address: '127.0.0.1', family: 4 }],
    },
    createStopwatch(systemClock),
    never,
  );
  expect(posted).toMatchObject({ kind: 'failed', code: 'internal_error' });
  expect(receiver.connections()).toBe(0);
});

test('headers of the connection cannot be overridden, in any spelling', async () => {
  using receiver = await startGood({ script: (visit) => visit.send(CONTENT) });
  await post(
    {
      url: receiver.url('127.0.0.1'),
      headers: {
        Host: 'evil.example.com',
        Connection: 'keep-alive',
        'Content-Length': '3',
        'Accept-Encoding': 'gzip',
        'User-Agent': 'own',
      },
      body: BODY,
      pins: [{ address: '127.0.0.1', family: 4 }],
    },
    createStopwatch(systemClock),
    never,
  );
  const head = receiver.visits()[0]?.text.toLowerCase().split('\r\n\r\n')[0] ?? '';
  expect(head.split('\r\n').slice(1).toSorted()).toEqual([
    'accept-encoding: identity',
    'connection: close',
    `content-length: ${BODY.length}`,
    'content-type: application/json',
    `host: 127.0.0.1:${receiver.port}`,
    'user-agent: own',
  ]);
});
