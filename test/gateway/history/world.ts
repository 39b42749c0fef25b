import { beforeEach } from 'bun:test';
import type { Backend } from '../../../gateway/upstream/backend.ts';
import type { CallReply } from '../../../gateway/upstream/failover.ts';
import type { CallContext, Forward } from '../../../gateway/upstream/forward.ts';
import { withHistory } from '../../../gateway/history/history.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { PROFILES, type ProfileName } from '../../../shared/config/profiles.ts';
import { createHistory, type History } from '../../fakes/history.ts';
import { startHotNode } from '../../fakes/hot-node.ts';
import { startOldFaithful } from '../../fakes/old-faithful.ts';
import { startSuperbank } from '../../fakes/superbank.ts';
import { backendOf, callOf, contextOf, forwardOf, routeTo, textOf } from '../upstream/of.ts';
import { shared } from '../../started/shared.ts';

/** A backend of a profile at a fake's address, with what a probe would have learnt. */
export function probed(at: string, profile: ProfileName, floor?: number, top?: number): Backend {
  return learnt(namedBackend(profile, at, profile), floor, top);
}

/** One of several backends of a profile, of which nothing is known. */
export function namedBackend(name: string, at: string, profile: ProfileName): Backend {
  const { bodyBytesMax, lanes } = PROFILES[profile];
  return backendOf({ name, at, profile, lanes, bodyBytesMax });
}

/** An Agave node with BigTable that serves nothing but history. */
export function probedBigtable(at: string, floor?: number, top?: number): Backend {
  return learnt(backendOf({ name: 'bigtable', at, lanes: ['archive'] }), floor, top);
}

/** The backend with what a probe would learn of it. */
export function learnt(backend: Backend, floor: number | undefined, top = 0): Backend {
  backend.slots.firstLocalBlock = floor;
  backend.slots.tip.finalized = top;
  return backend;
}

/** The chain of the tests: 4 epochs of 20 slots and a bit of the fifth. */
export const ADDRESS = 'Addr1111111111111111111111111111111111111111';
export const OTHER = 'Addr2222222222222222222222222222222222222222';
export const chainOf = (seed: number) =>
  createHistory({ seed, slots: 90, epochSlots: 20, addresses: [ADDRESS, OTHER] });

/** The transactions of the address, newest first. */
export const rowsOf = ({ transactions }: History) =>
  transactions.filter(({ addresses }) => addresses.includes(ADDRESS));

export const signaturesOf = (rows: readonly { signature: string }[]) =>
  rows.map(({ signature }) => signature);

/** The slots of a chain with a block, both ends included. */
export const slotsOf = ({ slots }: History, start: number, end: number) =>
  slots.filter((slot) => slot >= start && slot <= end);

/** Closes fakes after the tests of the file, and empties what they have seen before each. */
export function closed<T extends { seen: unknown[] } & AsyncDisposable>(fake: T): T {
  beforeEach(() => void (fake.seen.length = 0));
  return shared(fake);
}

/** Backends over one chain that hold slots from a first to a last one, or epochs. */
export function fakesOf(history: History) {
  return {
    node: (floor: number, top: number) =>
      closed(startHotNode({ history, held: { floor, top }, bigtable: undefined, strictCursors: true })),
    bigtable: (floor: number, top: number) =>
      closed(startHotNode({ history, held: { floor, top }, bigtable: { floor, top }, strictCursors: true })),
    faithful: (first: number, last: number) =>
      closed(startOldFaithful({ history, epochs: [first, last], addressIndex: true })),
    superbank: (floor: number, top: number, emitHttpErrors = false) =>
      closed(startSuperbank({ history, held: { floor, top }, timesOut: false, emitHttpErrors })),
  };
}

/** Calls through `withHistory` over real sockets to fakes. */
export function caller(clock: Clock = systemClock, given?: Forward) {
  const overs: string[] = [];

  function send(
    backends: readonly Backend[],
    method: string,
    params: unknown,
    context: Partial<CallContext> = {},
  ): Promise<CallReply> {
    const call = callOf(method, typeof params === 'string' ? params : JSON.stringify(params));
    const forward = given ?? forwardOf(backends, clock).forward;
    const onSettled = () => void overs.push(method);
    const timed = contextOf({ startedMs: clock.monotonic(), onSettled, ...context });
    return withHistory(forward, clock)(call, routeTo(backends, method), timed);
  }

  /** The result or the error's code. */
  async function ask(
    backends: readonly Backend[],
    method: string,
    params: unknown,
    context: Partial<CallContext> = {},
  ): Promise<unknown> {
    const text = await textOf(await send(backends, method, params, context));
    if (!text.startsWith('{')) return text;
    const { result, error }: { result?: unknown; error?: { code: number } } = JSON.parse(text);
    return error === undefined ? result : error.code;
  }

  return {
    ask,
    /** The signatures of a page of the address, or what stands for it. */
    async page(
      backends: readonly Backend[],
      config: object = {},
      context: Partial<CallContext> = {},
    ): Promise<unknown> {
      const result = await ask(backends, 'getSignaturesForAddress', [ADDRESS, config], context);
      return Array.isArray(result) ? signaturesOf(result) : result;
    },
    /** The calls that no backend works on any more. */
    overs,
    send,
    text: async (backends: readonly Backend[], method: string, params: unknown) =>
      textOf(await send(backends, method, params)),
  };
}
