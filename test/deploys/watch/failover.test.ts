import { expect, test } from 'bun:test';
import { createRead, type Floor } from '../../../deploys/watch/failover.ts';
import { createRpcBackend } from '../../../deploys/watch/rpc.ts';
import { systemClock } from '../../../shared/clock.ts';
import { addressOf, startChain } from '../../fakes/chain.ts';

const program = addressOf('program');
const authority = addressOf('authority');
const { signal } = new AbortController();

type Chain = ReturnType<typeof startChain>;
const readOver = (chains: readonly Chain[], floor?: Floor, over = signal) =>
  createRead(
    chains.map(({ url }, i) =>
      createRpcBackend({ name: `rpc ${i}`, url, key: undefined }, { fetch, clock: systemClock }),
    ),
    [program],
  )(floor, over);
const bad = () => new Response('<html>', { status: 502 });
const floor: Floor = { contextSlot: 1_000n, deploySlots: new Map([[program, 900n]]) };

async function withTwo(test: (first: Chain, second: Chain) => Promise<void>): Promise<void> {
  await using first = startChain();
  await using second = startChain();
  first.deploy(program, 900, authority);
  second.deploy(program, 900, authority);
  await test(first, second);
}

test('the first backend is asked alone while it answers', () =>
  withTwo(async (first, second) => {
    expect(await readOver([first, second])).toMatchObject({ kind: 'read', reasons: [] });
    expect(second.calls).toEqual([]);
  }));

test('the next backend gives the whole reading when the first fails in the middle', () =>
  withTwo(async (first, second) => {
    first.fault = () => (first.calls.length === 2 ? bad() : undefined);
    const outcome = await readOver([first, second]);
    expect(outcome).toMatchObject({ kind: 'read', reasons: ['rpc 0 answered HTTP 502'] });
    expect(second.calls).toHaveLength(2);
  }));

test('the first backend is preferred again as soon as it is back', () =>
  withTwo(async (first, second) => {
    first.fault = bad;
    await readOver([first, second]);
    first.fault = undefined;
    second.calls.length = 0;
    await readOver([first, second]);
    expect(second.calls).toEqual([]);
  }));

test('when every backend fails each one’s reason is told', () =>
  withTwo(async (first, second) => {
    first.fault = second.fault = bad;
    expect(await readOver([first, second])).toEqual({
      kind: 'failed',
      reasons: ['rpc 0 answered HTTP 502', 'rpc 1 answered HTTP 502'],
    });
  }));

test('a lagging backend is passed over for one that is not', () =>
  withTwo(async (first, second) => {
    first.slot = 999;
    expect(await readOver([first, second], floor)).toMatchObject({
      kind: 'read',
      reading: { contextSlot: 1_000n },
      reasons: ['rpc 0 is behind the reading before'],
    });
  }));

test('a backend that shows an older deploy at a newer slot is not believed', () =>
  withTwo(async (first, second) => {
    first.slot = 2_000;
    first.deploy(program, 899, authority);
    expect(await readOver([first, second], floor)).toMatchObject({
      kind: 'read',
      reasons: [`rpc 0 shows an older deploy of ${program} than the reading before`],
    });
  }));

test('all lagging is told apart from all failing', () =>
  withTwo(async (first, second) => {
    first.slot = second.slot = 999;
    expect((await readOver([first, second], floor)).kind).toBe('behind');
    second.fault = bad;
    expect((await readOver([first, second], floor)).kind).toBe('failed');
  }));

test('an aborted reading asks nobody', () =>
  withTwo(async (first, second) => {
    expect(await readOver([first, second], undefined, AbortSignal.abort())).toEqual({
      kind: 'failed',
      reasons: [],
    });
    expect([...first.calls, ...second.calls]).toEqual([]);
  }));
