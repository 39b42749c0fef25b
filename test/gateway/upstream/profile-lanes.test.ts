import { expect, test } from 'bun:test';
import { METHODS } from '../../../gateway/methods/table.ts';
import { createRouter } from '../../../gateway/upstream/selection.ts';
import { LANES, PROFILES } from '../../../shared/config/profiles.ts';
import { backendOf } from './of.ts';

test.each(['agave', 'old-faithful', 'superbank', 'cloudbreak'] as const)(
  '%s may be given the lanes of which it serves a method, and no other',
  (profile) => {
    const served = LANES.filter((lane) => {
      const routeOf = createRouter([backendOf({ profile, lanes: [lane] })]);
      return [...METHODS.keys()].some((name) => routeOf(name).kind === 'forward');
    });
    expect(served.toSorted()).toEqual(PROFILES[profile].mayServe.toSorted());
  },
);
