import type { Clock } from '../../shared/clock.ts';
import type { Method } from '../../shared/config/methods.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import type { CallReply } from '../upstream/failover.ts';
import type { Forward } from '../upstream/forward.ts';
import { answerBlocks } from './blocks.ts';
import { answerSignatures } from './signatures.ts';
import { HistoryRequest } from './tiers.ts';
import { answerBlock, answerTransaction } from './transaction.ts';

type Rule = (request: HistoryRequest, clock: Clock) => Promise<CallReply>;

const RULES: Partial<Record<Method['answering'], Rule>> = {
  block: answerBlock,
  blocks: answerBlocks,
  transaction: answerTransaction,
  signatures: answerSignatures,
};

/** The parameters of history methods that are parsed, in bytes; real ones are below a kilobyte. */
const PARAMS_BYTES_MAX = 8_192;

/** Adds history across tiers, so that a caller sees one chain; with one tier alone a call goes to `forward` as it is. */
export function withHistory(forward: Forward, clock: Clock): Forward {
  return async function forwardByTier(call, route, context) {
    const { answering } = route.method;
    const rule = RULES[answering];
    if (rule === undefined) return forward(call, route, context);
    const request = new HistoryRequest(forward, clock, call, route, context);
    if (!needsRule(request, answering)) return forward(call, route, context);
    const isOverlong = (call.params?.length ?? 0) > PARAMS_BYTES_MAX;
    return request.settle(isOverlong ? request.sendUnparsed() : rule(request, clock));
  };
}

function needsRule({ tiers: { live, archive } }: HistoryRequest, answering: Method['answering']): boolean {
  if (archive.length === 0) return false;
  if (live.length > 0) return true;
  const profiles = archive.map(({ config }) => PROFILES[config.profile].pages);
  return answering === 'signatures' && profiles.some((pages) => pages.untilInclusive || !pages.ordered);
}
