import { expect, test } from 'bun:test';
import { answered, createScriptedSend, failedWith } from './scripted-send.ts';

const post = {
  url: new URL('https://hook.example.com/'),
  headers: { 'X-Service-Delivery': 'one' },
  body: Buffer.from('{}'),
};
const never = new AbortController().signal;

test('a scripted send ends a post as its script says, or leaves it open until the test ends it, once', async () => {
  const scripted = createScriptedSend(({ text }) => answered(200, text));
  const answer = { kind: 'answered', status: 200, body: Buffer.from('{}') };
  expect(await scripted.send(post, never)).toMatchObject(answer);
  expect(scripted.posts).toMatchObject([{ post, id: 'one', text: '{}' }]);
  const { send, posts, open, openMost } = createScriptedSend();
  const sending = [send(post, never), send(post, never)];
  expect([open(), openMost()]).toEqual([2, 2]);
  posts[0]?.end(failedWith('timeout'));
  expect(await sending[0]).toMatchObject({ kind: 'failed', code: 'timeout' });
  expect(() => posts[0]?.end(failedWith('blocked_address'))).toThrow('has ended');
  posts[1]?.end(failedWith('blocked_address'));
  expect(await sending[1]).toMatchObject({ kind: 'failed', code: 'blocked_address' });
  expect([open(), openMost()]).toEqual([0, 2]);
});

test('an aborted signal ends an open post as aborted, and a new one at once', async () => {
  const { send } = createScriptedSend();
  const over = new AbortController();
  const sending = send(post, over.signal);
  over.abort();
  expect(await sending).toMatchObject({ kind: 'failed', code: 'aborted' });
  expect(await send(post, over.signal)).toMatchObject({ kind: 'failed', code: 'aborted' });
});
