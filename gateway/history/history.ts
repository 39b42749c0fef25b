import type { Clock } from '../../shared/clock.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import { METHODS } from '../methods/table.ts';
import type { Backend } from '../upstream/backend.ts';
import type { CallContext, Forward, Reply } from '../upstream/forward.ts';
import { readAll } from '../upstream/probe.ts';
import { answerBlocks } from './blocks.ts';
import { answerSignatures } from './signatures.ts';
import { type Changes, type HistoryRequest, sendUnparsed, type Tiers, tiersOf } from './tiers.ts';
import { answerBlock, answerTransaction } from './transaction.ts';

type Rule = (request: HistoryRequest, clock: Clock) => Promise<Reply>;

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['getBlock', answerBlock],
  ['getBlockTime', answerBlock],
  ['getBlocks', answerBlocks],
  ['getBlocksWithLimit', answerBlocks],
  ['getTransaction', answerTransaction],
  ['getSignaturesForAddress', answerSignatures],
]);

/** The parameters of history methods that are parsed, in bytes; real ones are below a kilobyte. */
const PARAMS_BYTES_MAX = 65_536;

/** No page of 1,000 signatures and no list of 500,000 slots is longer. */
const READ_BYTES_MAX = 8_388_608;

/**
 * Adds history across tiers: live nodes hold some days, archives the rest, and a caller sees one chain.
 * With one tier alone a call goes to `forward` as it is, unless the archive's pages differ from Agave's.
 * However many backends work on a call, `onSettled` is called once, when it has its reply and none works any more.
 */
export function withHistory(forward: Forward, clock: Clock): Forward {
  return async function forwardByTier(call, route, context) {
    const rule = RULES.get(route.name);
    if (rule === undefined) return forward(call, route, context);
    const tiers = tiersOf(route.backends);
    if (!needsRule(route.name, tiers)) return forward(call, route, context);
    let open = 1;
    let sent = 0;
    const close = () => void (--open === 0 && context.onSettled());

    async function send(
      backends: readonly Backend[],
      { method = route.name, params = call.params, ...changes }: Changes & Partial<CallContext> = {},
    ): Promise<Reply> {
      open++;
      sent++;
      const to = { ...route, name: method, method: METHODS.get(method) ?? route.method, backends };
      const own = { ...context, ...changes, onSettled: close };
      const reply = await forward({ ...call, params, method }, to, own);
      if (reply.kind === 'caller-left' && reply.unsent === true) sent--;
      return reply;
    }

    const read: HistoryRequest['read'] = async (backends, changes) => {
      const reply = await send(backends, { ...changes, acceptEncoding: 'identity' });
      if (reply.kind !== 'stream') return reply;
      const body = await readAll(reply.body, READ_BYTES_MAX);
      if (body.kind !== 'all') return { kind: 'no-backend' };
      return { kind: 'whole', bytes: body.bytes, encoding: undefined };
    };

    const request = { call, method: route.name, tiers, signal: context.signal, send, read };
    const isOverlong = (call.params?.length ?? 0) > PARAMS_BYTES_MAX;
    try {
      const reply = await (isOverlong ? sendUnparsed(request) : rule(request, clock));
      // A stream ends by itself when its caller leaves.
      const hasLeft = reply.kind === 'caller-left' || (context.signal.aborted && reply.kind !== 'stream');
      if (!hasLeft) return reply;
      return sent > 0 ? { kind: 'caller-left' } : { kind: 'caller-left', unsent: true };
    } finally {
      close();
    }
  };
}

function needsRule(name: string, { live, archive }: Tiers): boolean {
  if (archive.length === 0) return false;
  if (live.length > 0) return true;
  const profiles = archive.map(({ config }) => PROFILES[config.profile].pages);
  return (
    name === 'getSignaturesForAddress' && profiles.some((pages) => pages.untilInclusive || !pages.ordered)
  );
}
