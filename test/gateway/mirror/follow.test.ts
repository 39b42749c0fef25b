import { expect, test } from 'bun:test';
import { createFollowing } from '../../../gateway/replica/accounts.ts';
import { createMirror, type Head, MIRROR_MIGRATIONS } from '../../../gateway/replica/mirror.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { opened } from '../../started/gateway.ts';

/** How often a host asks Redis what is published; a revocation whose hint was lost has a second. */
const HEAD: Head = {
  origin: 'there',
  holder: 't1',
  epoch: undefined,
  seq: 0,
  termsId: undefined,
  revoked: undefined,
};

async function looksIn(
  seconds: number,
  head: Head | undefined,
  own: { token?: string; hasAccounts: boolean },
) {
  const mirror = createMirror(opened(':memory:', MIRROR_MIGRATIONS));
  const clock = createVirtualClock();
  let looks = 0;
  const following = createFollowing({
    mirror,
    rows: {
      head() {
        looks++;
        return Promise.resolve(head);
      },
      terms: () => Promise.resolve(undefined),
      after: () => Promise.resolve(undefined),
      noteUses: () => Promise.resolve(),
      close: () => Promise.resolve(),
    },
    own: {
      origin: 'here',
      hasPublisher: (token) => token === own.token,
      wasPublished: () => own.token !== undefined,
      hasAccounts: () => own.hasAccounts,
    },
    clock,
    onRevoked: () => undefined,
    onLook: () => undefined,
  });
  const over = new AbortController();
  const running = following.run(over.signal);
  await clock.advance(seconds * 1_000);
  over.abort();
  await running;
  mirror.store.close();
  return looks;
}

test('a host whose deploys is elsewhere looks twice a second', async () => {
  expect(await looksIn(10, HEAD, { hasAccounts: true })).toBe(21);
});

test('a host that waits for accounts looks twice a second', async () => {
  expect(await looksIn(10, undefined, { hasAccounts: false })).toBe(21);
});

test('a host whose own database counts looks every two seconds', async () => {
  expect(await looksIn(10, HEAD, { token: 't1', hasAccounts: true })).toBe(6);
  expect(await looksIn(10, undefined, { hasAccounts: true })).toBe(6);
});
