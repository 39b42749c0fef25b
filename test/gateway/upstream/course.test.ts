import { describe, expect, test } from 'bun:test';
import { createCourse } from '../../../gateway/upstream/failover.ts';
import { METHODS } from '../../../gateway/methods/table.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { backendOf, forwardOf } from './of.ts';

const NOT_REACHED =
  '{"jsonrpc":"2.0","error":{"code":-32016,"message":"Minimum context slot has not been reached"},"id":1}';

/** What -32016 of a backend at slot 100 means while another, with these slots, may be asked. */
function afterNotReached(processed: number, confirmed: number, finalized: number): string {
  const { clock } = createVirtualClock();
  const [asked, other] = [backendOf({ name: 'a' }), backendOf({ name: 'b' })];
  Object.assign(asked.view.tip, { processed: 100, confirmed: 99, finalized: 68 });
  Object.assign(other.view.tip, { processed, confirmed, finalized });
  const method = METHODS.get('getBalance');
  if (method === undefined) throw new Error('no such method');
  const { pool } = forwardOf([], clock);
  const course = createCourse(
    { clock, pool, onFailure: () => undefined },
    {
      name: 'getBalance',
      method,
      wish: { commitment: 'confirmed', slotMin: 500 },
      accountId: 1,
      slotMin: 500,
    },
  );
  const answer = {
    kind: 'whole',
    bytes: new Uint8Array(Buffer.from(NOT_REACHED)),
    encoding: undefined,
  } as const;
  return course.take(asked, answer, [other]).kind;
}

describe('a minContextSlot that a backend has not reached is asked of another', () => {
  test('that is ahead at any commitment, or of which nothing is known', () => {
    expect(afterNotReached(101, 99, 68)).toBe('next');
    expect(afterNotReached(100, 99, 69)).toBe('next');
    expect(afterNotReached(0, 0, 0)).toBe('next');
  });

  test('and not of one that is behind, also when it knows no processed slot', () => {
    expect(afterNotReached(100, 99, 68)).toBe('answer');
    expect(afterNotReached(0, 99, 68)).toBe('answer');
  });
});
