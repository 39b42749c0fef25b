import { expect, test } from 'bun:test';
import { followsTip, isLiveNode } from '../../../gateway/upstream/backend.ts';

test.each([
  ['agave', ['state', 'scan', 'archive', 'send'], true, true],
  ['agave', ['state'], true, true],
  ['agave', ['send'], true, false],
  ['agave', ['scan', 'archive'], true, false],
  ['agave', ['archive'], false, false],
  ['cloudbreak', ['state', 'scan'], true, true],
  ['old-faithful', ['archive'], false, false],
  ['old-faithful', ['state', 'archive'], false, false],
  ['superbank', ['archive', 'state'], false, false],
  ['das', ['assets', 'state', 'scan'], false, false],
] as const)(
  '%s with the lanes %p follows the tip: %p, is a live node: %p',
  (profile, lanes, follows, live) => {
    expect([followsTip({ profile, lanes }), isLiveNode({ profile, lanes })]).toEqual([follows, live]);
  },
);
