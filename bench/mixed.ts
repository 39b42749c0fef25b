import { getAddressDecoder } from '@solana/kit';
import type { WeightedCall } from './requests.ts';
import type { Scanned } from './result.ts';

/**
 * What production asks of getProgramAccounts: the sizes of 175,559 answers that the Cloudbreak project replayed
 * (`docs/benchmarks` of solana-rpc/cloudbreak, case 2), by their share of calls. `bytes` is the middle of the range.
 */
const SIZES = [
  { name: 'up to 1 KB', bytes: 300, share: 0.347 },
  { name: '1-10 KB', bytes: 3_000, share: 0.353 },
  { name: '10-100 KB', bytes: 30_000, share: 0.119 },
  { name: '0.1-1 MB', bytes: 300_000, share: 0.135 },
  { name: '1-10 MB', bytes: 3_000_000, share: 0.026 },
  { name: '10-50 MB', bytes: 22_000_000, share: 0.0055 },
  { name: '50-200 MB', bytes: 100_000_000, share: 0.0005 },
  { name: '200-500 MB', bytes: 316_000_000, share: 0.0145 },
  { name: 'above 500 MB', bytes: 700_000_000, share: 0.00007 },
] as const;

/** Ranges are tenfold: an answer this many times as long or as short as the middle of one is near enough. */
const NEAR = 4;
const METHOD = 'getProgramAccounts';

/** What a scan that asked for no data tells of a program. */
type ProgramSize = Pick<Scanned, 'program' | 'accounts' | 'bytes' | 'dataBytes'>;

/**
 * The mix out of what an endpoint has: for each size a program and a slice of its accounts' data whose answer comes nearest to
 * it. The share of a size that is out of reach goes to the nearest one that is not, and `notes` says so.
 */
export function mixFrom(
  programs: readonly ProgramSize[],
  random: (count: number) => Uint8Array,
): Readonly<{ calls: readonly WeightedCall[]; notes: readonly string[] }> {
  const made = SIZES.flatMap(({ name, bytes, share }, i) => {
    const found = i === 0 ? { params: nothingOf(programs, random), bytes } : nearest(programs, bytes);
    const isNear = found !== undefined && Math.abs(Math.log(found.bytes / bytes)) <= Math.log(NEAR);
    return isNear ? [{ bytes, weight: share, method: METHOD, params: found.params, label: name }] : [];
  });
  const notes: string[] = [];
  for (const { name, bytes, share } of SIZES) {
    const own = made.find(({ label }) => label === name);
    const other = closest(made, bytes);
    if (own !== undefined || other === undefined) continue;
    other.weight += share;
    notes.push(
      `No answer of ${name} can be had of these programs: ${percent(share)} of calls ask for ${other.label} instead.`,
    );
  }
  return { calls: made, notes };
}

/** The scan of a part of its accounts' data whose answer is nearest to `bytes`. */
function nearest(programs: readonly ProgramSize[], bytes: number) {
  const options = programs
    .filter(({ accounts }) => accounts > 0)
    .map(({ program, accounts, bytes: emptyBytes, dataBytes }) => {
      // Three bytes are four characters of base64. Accounts that are shorter than the slice give less.
      const length = Math.round(Math.max(0, ((bytes - emptyBytes) / accounts) * 0.75));
      const sliced = Math.min(accounts * length, dataBytes);
      const params = [program, { encoding: 'base64', dataSlice: { offset: 0, length } }];
      return { params: JSON.stringify(params), bytes: emptyBytes + (sliced * 4) / 3 };
    });
  return closest(options, bytes);
}

/** A scan that finds nothing: what no account begins with. */
function nothingOf(programs: readonly ProgramSize[], random: (count: number) => Uint8Array): string {
  const bytes = getAddressDecoder().decode(random(32));
  const filters = [{ memcmp: { offset: 0, bytes } }];
  return JSON.stringify([programs[0]?.program ?? '', { encoding: 'base64', filters }]);
}

function closest<T extends Readonly<{ bytes: number }>>(options: readonly T[], bytes: number): T | undefined {
  const distance = (option: T) => Math.abs(Math.log(option.bytes / bytes));
  return options.toSorted((a, b) => distance(a) - distance(b))[0];
}

function percent(share: number): string {
  return `${Number((100 * share).toPrecision(3))} %`;
}
