import { expect, test } from 'bun:test';
import { storm } from './storm.ts';

test('twenty kills with SIGKILL at random points lose no delivery and send none under a second id (E19, E20, E21)', async () => {
  const { kills, upgrades, posts, lost, doubled, unrecorded } = await storm(20);
  expect({ kills, lost, doubled, unrecorded }).toEqual({ kills: 20, lost: [], doubled: [], unrecorded: [] });
  expect(upgrades).toBeGreaterThanOrEqual(20);
  expect(posts).toBeGreaterThanOrEqual(20);
}, 60_000);
