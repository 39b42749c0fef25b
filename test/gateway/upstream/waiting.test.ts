import { expect, test } from 'bun:test';
import { startBackend } from '../../fakes/backend.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { ACCOUNT_ABC, backendOf, forwardOf, routeTo } from './of.ts';

test('a call tells that it waits for a place, and that it waits no longer, before anything is sent for it', async () => {
  await using fake = startBackend();
  const backend = backendOf({ at: fake.url, connectionsMax: 1 });
  const told: string[] = [];
  const { forward } = forwardOf([backend], createVirtualClock().clock, {});
  const send = () =>
    forward(
      { kind: 'call', id: new TextEncoder().encode('7'), method: 'getSlot', params: undefined },
      routeTo([backend], 'getSlot'),
      {
        acceptEncoding: 'identity',
        signal: new AbortController().signal,
        accountId: ACCOUNT_ABC,
        onOver: () => void told.push('over'),
        onWait: () => {
          told.push('waits');
          return () => void told.push(`has its place, ${fake.seen.length} sent`);
        },
      },
    );
  await send();
  expect(told).toEqual(['over']);
  backend.enter();
  const waiting = send();
  expect(told).toEqual(['over', 'waits']);
  backend.leave();
  await waiting;
  expect(told).toEqual(['over', 'waits', 'has its place, 1 sent', 'over']);
});
