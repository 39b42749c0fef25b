import { expect, test } from 'bun:test';
import { storm } from './storm.ts';

/** `STORM_KILLS=100 bun test --timeout 600000 …` for more. */
const KILLS = Number(process.env['STORM_KILLS'] ?? 20);

test(
  'twenty kills with SIGKILL at random points lose no delivery and send none under a second id (E19, E20, E21)',
  async () => {
    const { kills, upgrades, posts, lost, doubled, unrecorded } = await storm(KILLS);
    expect({ kills, lost, doubled, unrecorded }).toEqual({
      kills: KILLS,
      lost: [],
      doubled: [],
      unrecorded: [],
    });
    expect(upgrades).toBeGreaterThanOrEqual(KILLS);
    expect(posts).toBeGreaterThanOrEqual(KILLS);
  },
  3_000 * KILLS,
);
