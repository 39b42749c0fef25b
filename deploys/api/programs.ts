import { type Address, isAddress, type Slot } from '@solana/kit';
import type { Clock } from '../../shared/clock.ts';
import { extractApiKey } from '../../shared/keys/carrier.ts';
import type { Identify } from '../../shared/keys/identify.ts';
import { secondsIso } from '../outbox/enqueue.ts';
import { deploySlotOf, type ProgramState } from '../watch/change.ts';
import type { WatchedProgram } from '../../shared/watched.ts';
import type { Latest } from '../watch/watcher.ts';
import { shortened } from '../webhooks/settings.ts';
import { refusalResponse } from './refusal.ts';
import type { Enter } from './request-log.ts';
import type { ProgramRecord, ProgramsAnswer } from './schema.ts';

/** Where the latest deploys are served (docs/spec.md 3); `v1` is the version of the path (docs/spec.md 8). */
export const PROGRAMS_PATH = '/api/v1/program-deploys/programs';

type ProgramsDeps = Readonly<{
  identify: Identify;
  enter: Enter;
  /** The last reading of this run; `undefined` until the first one succeeded. */
  latest(): Latest | undefined;
  watched: readonly WatchedProgram[];
  timeOf(slot: Slot): number | undefined;
  clock: Clock;
}>;

/**
 * Answers a request for the programs. The order of checks is key, rate, availability, parameters: a caller without a key
 * learns nothing, refused requests of a key count too, and a service without data gives every caller the same answer.
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
    if (filter.kind !== 'programs') return refusalResponse(filter);

    return Response.json(programsAnswer(latest, deps.watched, filter.addresses, deps.timeOf), {
      headers: { 'cache-control': 'no-store' },
    });
  };
}

type ProgramFilter =
  /** Of no addresses: all programs. */
  | { readonly kind: 'programs'; readonly addresses: ReadonlySet<Address> }
  /** `value` is the first item that is no address, shortened for an error text. */
  | { readonly kind: 'malformed-program-id'; readonly value: string };

const PARAMETER = 'program_id';

/**
 * The filter in a request's URL: every `program_id`, each a comma-separated list. Spaces around an item and empty
 * items are passed over, so a trailing comma or an empty parameter is as if it were not there. The length is bounded
 * by what the server takes as a request line.
 */
function programFilterFrom(url: string): ProgramFilter {
  const addresses = new Set<Address>();
  const [, query = ''] = /\?(.*)/s.exec(url) ?? [];
  for (const item of new URLSearchParams(query).getAll(PARAMETER).flatMap((list) => list.split(','))) {
    const text = item.trim();
    if (text === '') continue;
    if (!isAddress(text)) return { kind: 'malformed-program-id', value: shortened(text) };
    addresses.add(text);
  }
  return { kind: 'programs', addresses };
}

/** The answer of docs/spec.md 3: newest deploy first, programs without a deploy slot last, equals by label, then address. */
export function programsAnswer(
  latest: Latest,
  watched: readonly WatchedProgram[],
  only: ReadonlySet<Address>,
  timeOf: (slot: Slot) => number | undefined,
): ProgramsAnswer {
  const rows = watched
    .filter(({ address }) => only.size === 0 || only.has(address))
    .map((program) => ({ ...program, state: latest.reading.programs.get(program.address) }))
    .sort((a, b) => newestFirst(deploySlotOf(a.state), deploySlotOf(b.state)) || byName(a, b));
  return {
    checked_at: new Date(latest.checkedAtMs).toISOString(),
    programs: rows.map(({ address, label, state }) => recordFrom(address, label, state, timeOf)),
  };
}

function recordFrom(
  program_id: string,
  label: string,
  state: ProgramState | undefined,
  timeOf: (slot: Slot) => number | undefined,
): ProgramRecord {
  const slot = deploySlotOf(state);
  const unixSeconds = slot === undefined ? undefined : timeOf(slot);
  return {
    program_id,
    label,
    status: state?.status ?? 'missing',
    upgrade_authority: state?.status === 'upgradeable' ? state.upgradeAuthority : null,
    // A reading with a slot above its context is refused, and contexts are safe integers: nothing is rounded.
    deploy_slot: slot === undefined ? null : Number(slot),
    deployed_at: unixSeconds === undefined ? null : secondsIso(unixSeconds),
  };
}

function newestFirst(a: Slot | undefined, b: Slot | undefined): number {
  if (a === b) return 0;
  return (b ?? -1n) > (a ?? -1n) ? 1 : -1;
}

/** By code units: the same order everywhere, whatever the locale. */
function byName(a: WatchedProgram, b: WatchedProgram): number {
  if (a.label !== b.label) return a.label < b.label ? -1 : 1;
  return a.address < b.address ? -1 : 1;
}
