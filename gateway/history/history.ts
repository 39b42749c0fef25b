import type { Clock } from '../../shared/clock.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import type { Call } from '../request/envelope.ts';
import type { Forward, Reply } from '../upstream/forward.ts';
import { forwardBlocks, forwardBlocksWithLimit } from './blocks.ts';
import { forwardBlock, forwardTransaction } from './lookup.ts';
import { type ForwardRoute, pass, type Passage, type Tiers } from './request.ts';
import { forwardPage } from './signatures.ts';
import { tiersOf } from './tiers.ts';

type Rule = (passage: Passage, clock: Clock) => Promise<Reply>;

const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['getBlock', forwardBlock],
  ['getBlockTime', forwardBlock],
  ['getBlocks', forwardBlocks],
  ['getBlocksWithLimit', forwardBlocksWithLimit],
  ['getTransaction', forwardTransaction],
  ['getSignaturesForAddress', forwardPage],
]);

/**
 * Adds history across tiers (DESIGN 5): live nodes hold some days, archives the rest, and a caller sees one chain.
 * With one tier alone a call goes to `forward` as it is, unless the archive's pages need mending.
 */
export function withHistory(forward: Forward, clock: Clock): Forward {
  return async function forwardByTier(call, route, asking) {
    const rule = RULES.get(route.name);
    if (rule === undefined) return forward(call, route, asking);
    const tiers = tiersOf(route.backends);
    // Real parameters are below a kilobyte; looking through megabytes of them would hold up everybody else.
    if (isOverlong(call)) return forward(call, livesOf(route, tiers), asking);
    if (!needsRule(route.name, tiers)) return forward(call, route, asking);
    return pass((passage) => rule(passage, clock), forward, call, route, asking, tiers);
  };
}

/** The parameters of history methods that are looked into, in bytes; what is longer is for a node to refuse. */
const PARAMS_BYTES_MAX = 65_536;

function isOverlong({ params }: Call): boolean {
  return params !== undefined && params.length > PARAMS_BYTES_MAX;
}

/** The route to live nodes, whose own words about odd parameters are the better ones; to archives where there is none. */
function livesOf(route: ForwardRoute, { live }: Tiers): ForwardRoute {
  return live.length === 0 ? route : { ...route, backends: live };
}

function needsRule(name: string, { live, archive }: Tiers): boolean {
  if (archive.length === 0) return false;
  if (live.length > 0) return true;
  return name === 'getSignaturesForAddress' && archive.some(({ config }) => isOdd(PROFILES[config.profile]));
}

/** Whether its pages are not those of an Agave node. */
function isOdd({ pages: { untilInclusive, ordered } }: (typeof PROFILES)['agave']): boolean {
  return untilInclusive || !ordered;
}
