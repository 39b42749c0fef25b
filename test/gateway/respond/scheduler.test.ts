import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { textOfBody } from '../stream-body.ts';
import { type OnWait, type BatchedCall, spliceBatch } from '../../../gateway/respond/batch.ts';

/** What a call holds one after the other: places at backends, each until it has answered; the last one while its answer is read. */
type CallPlan = Readonly<{ permit: boolean; backends: readonly number[]; turns: number; large: boolean }>;

/** As many places as `max`, given in the order of their calls. */
function createPlaces(max: number) {
  let free = max;
  const waiting: (() => void)[] = [];
  const leave = () => {
    free++;
    const next = waiting.shift();
    if (next === undefined) return;
    free--;
    next();
  };
  return async function enter(onWait: OnWait): Promise<() => void> {
    if (free > 0) free--;
    else {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push(resolve);
      const over = onWait();
      await promise;
      over();
    }
    return leave;
  };
}

const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
};
/** More turns of the event loop than any batch here can take. */
const TURNS_MAX = 3_000;

const call: fc.Arbitrary<CallPlan> = fc.record({
  permit: fc.boolean(),
  backends: fc.array(fc.nat(1), { minLength: 1, maxLength: 2 }),
  turns: fc.nat(4),
  large: fc.boolean(),
});

test('batches of any calls end, however few places and permits they share, and send no call more than twice', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(call, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 4 }),
      fc.tuple(
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 2 }),
      ),
      async (batches, [first, second, permits]) => {
        const enterPlace = [createPlaces(first), createPlaces(second)];
        const enterPermit = createPlaces(permits);
        let most = 0;

        const startOf = (plan: CallPlan, place: number): BatchedCall => {
          let asks = 0;
          const begin: BatchedCall['begin'] = async (onWait) => {
            most = Math.max(most, ++asks);
            const givePermit = plan.permit ? await enterPermit(onWait) : () => undefined;
            let leave = () => undefined as void;
            for (const backend of plan.backends) {
              leave();
              leave = (await enterPlace[backend]?.(onWait)) ?? leave;
              await turns(plan.turns);
            }
            const end = () => (leave(), givePermit());
            const bytes = new TextEncoder().encode(String(place));
            if (!plan.large) return (end(), { kind: 'bytes', bytes });
            return {
              kind: 'stream',
              mayRepeat: true,
              body: {
                cancel: end,
                async pipe(write) {
                  await turns(plan.turns);
                  await write(Buffer.from(bytes));
                  end();
                  return { kind: 'complete', bytes: bytes.length };
                },
              },
            };
          };
          return { isLight: place % 2 === 0, begin };
        };
        const never = (signal: AbortSignal) =>
          new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
        const answers = batches.map(async (plans) => {
          const starts = plans.map(startOf);
          const body = await spliceBatch(starts, new AbortController(), () => undefined, never, never);
          return body instanceof Uint8Array ? Buffer.from(body).toString() : textOfBody(body);
        });
        const ended = await Promise.race([Promise.all(answers), turns(TURNS_MAX).then(() => 'stuck')]);
        expect(ended).toEqual(batches.map((plans) => `[${[...plans.keys()].join()}]`));
        expect(most).toBeLessThanOrEqual(2);
      },
    ),
    { numRuns: 300 },
  );
});
