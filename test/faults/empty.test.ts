import { describe, expect, test } from 'bun:test';
import { CHUNKED, plain } from '../fakes/raw-backend.ts';
import { openCaller } from '../fakes/raw-caller.ts';
import { callText, errorText, lostText, rawPair, resultText } from './pair.ts';

const JSON_LINE = 'content-type: application/json\r\n';

const { backend, gateway } = await rawPair();
const key = gateway.key('scale');

describe('A14 requests without a body do not hang, and leave their connection as it was', () => {
  const last = 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n';
  test.each([
    ['HEAD', 'HEAD / HTTP/1.1\r\nhost: a\r\n\r\n', '405'],
    ['HEAD /health', 'HEAD /health HTTP/1.1\r\nhost: a\r\n\r\n', '200'],
    ['OPTIONS', 'OPTIONS / HTTP/1.1\r\nhost: a\r\n\r\n', '204'],
    ['GET', 'GET / HTTP/1.1\r\nhost: a\r\n\r\n', '405'],
    ['DELETE with a length of 0', 'DELETE / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n', '405'],
    ['POST with a length of 0', `POST / HTTP/1.1\r\nhost: a\r\n${JSON_LINE}content-length: 0\r\n\r\n`, '401'],
    ['POST with no length', `POST / HTTP/1.1\r\nhost: a\r\n${JSON_LINE}\r\n`, '401'],
    [
      'POST of no chunks',
      `POST / HTTP/1.1\r\nhost: a\r\n${JSON_LINE}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
      '401',
    ],
  ])('A14 %s', async (_name, request, status) => {
    using caller = await openCaller(gateway.url);
    caller.send(request);
    expect(await caller.until('\r\n\r\n')).toStartWith(`HTTP/1.1 ${status} `);
    caller.send(last);
    expect(await caller.until('HTTP/1.1 415 ')).toContain('HTTP/1.1 415 ');
  });

  test('A14 an empty body with a key is a parse error', async () => {
    const answer = await gateway.post('', key);
    expect([answer.status, await answer.text()]).toEqual([400, errorText(-32700, 'Parse error')]);
  });
});

test('A14 a backend that answers with nothing is one that did not answer, alone and in a batch', async () => {
  for (const reply of ['HTTP/1.1 204 No Content\r\n\r\n', plain(''), `${CHUNKED}0\r\n\r\n`]) {
    backend.script(({ send }) => send(reply));
    expect(await (await gateway.post(callText(1), key)).text()).toBe(lostText());
    expect(await (await gateway.post(`[${callText(1)}]`, key)).text()).toBe(`[${lostText()}]`);
  }
  backend.script(({ send }) => send(plain(resultText(7))));
  expect((await gateway.post(callText(1), key)).status).toBe(200);
});
