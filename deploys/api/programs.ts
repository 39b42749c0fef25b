import type { Slot } from '@solana/kit';
import type { Clock } from '../../shared/clock.ts';
import { extractApiKey } from '../../shared/keys/carrier.ts';
import type { Identify } from '../../shared/keys/identify.ts';
import type { WatchedProgram } from '../watch/watched.ts';
import type { Latest } from '../watch/watcher.ts';
import { programFilterFrom } from './program-filter.ts';
import { programsAnswer } from './record.ts';
import { refusalResponse } from './refusal.ts';
import type { Enter } from './request-log.ts';

/** Where the latest deploys are served (spec 4.1); `v1` is the version of the path (spec 9). */
export const PROGRAMS_PATH = '/api/v1/program-deploys/programs';

export type ProgramsDeps = Readonly<{
  identify: Identify;
  enter: Enter;
  /** The last reading of this run; `undefined` until the first one succeeded. */
  latest(): Latest | undefined;
  watched: readonly WatchedProgram[];
  timeOf(slot: Slot): number | undefined;
  clock: Clock;
}>;

/**
 * Answers a request for the programs. The order of checks is: key, rate, availability, parameters. The key comes
 * first so that a stranger learns nothing; the rate second so that also refused requests of a key are bounded; and a
 * service without data says so to every caller alike before it judges what they asked for.
 */
export function createProgramsAnswer(deps: ProgramsDeps): (request: Request) => Response {
  return function answerPrograms(request) {
    const identity = deps.identify(extractApiKey(request.headers, request.url));
    if (identity.kind !== 'known') return refusalResponse(identity);

    const entry = deps.enter(identity.caller.keyId, deps.clock.monotonic());
    if (entry.kind !== 'entered') return refusalResponse(entry);

    const latest = deps.latest();
    if (latest === undefined) return refusalResponse({ kind: 'not-available-yet' });

    const filter = programFilterFrom(request.url);
    if (filter.kind === 'malformed')
      return refusalResponse({ kind: 'malformed-program-id', value: filter.value });

    return Response.json(programsAnswer(latest, deps.watched, filter, deps.timeOf), {
      headers: { 'cache-control': 'no-store' },
    });
  };
}
