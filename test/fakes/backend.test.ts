import { expect, test } from 'bun:test';
import { failure, startBackend, streamed } from './backend.ts';

const call = (id: string) => ({
  method: 'POST',
  body: `{"jsonrpc":"2.0","id":${id},"method":"getSlot","params":[7]}`,
});

test('the scripted backend answers with the id verbatim and remembers the call', async () => {
  await using backend = startBackend();
  const answer = await fetch(backend.url, call('18446744073709551615'));
  expect(await answer.text()).toBe(
    '{"jsonrpc":"2.0","result":"answer to getSlot","id":18446744073709551615}\n',
  );
  expect(backend.seen[0]?.params).toEqual([7]);
});

test('the scripted backend does what its script says, and another thing after a change of script', async () => {
  await using backend = startBackend((seen) => failure(seen, -32005, 'Node is behind'));
  expect(await (await fetch(backend.url, call('"a\\"b"'))).text()).toContain('"id":"a\\"b"');
  backend.script(() => new Response('no', { status: 502 }));
  expect((await fetch(backend.url, call('1'))).status).toBe(502);
});

test('a streamed answer is valid JSON of the length asked for, without a Content-Length', async () => {
  await using backend = startBackend((seen) => streamed(seen, 2));
  const answer = await fetch(backend.url, call('1'));
  expect(answer.headers.get('content-length')).toBeNull();
  const { result } = JSON.parse(await answer.text());
  expect(result.length).toBe(2 << 20);
});
