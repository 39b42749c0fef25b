import { COMMITMENTS, type Commitment } from '../backend/view.ts';
import type { Call } from '../request/call.ts';
import type { MethodClass } from '../route/methods.ts';

/** What a call asks of the chain that its backend has. */
export type Wish = Readonly<{
  /** At which commitment it reads; `undefined`: it does not read the chain's present state, so no slot is compared. */
  commitment: Commitment | undefined;
  /** `minContextSlot`; 0 without one. */
  slotMin: number;
}>;

const NONE: Wish = { commitment: undefined, slotMin: 0 };
const FINALIZED: Wish = { commitment: 'finalized', slotMin: 0 };
const PROCESSED: Wish = { commitment: 'processed', slotMin: 0 };

/** Classes of methods that read the chain as it is now. */
const READS_NOW: ReadonlySet<MethodClass> = new Set(['light', 'scan']);

/**
 * The wish of a call, found by its words and not by parsing: it only chooses among backends, each of which reads the
 * parameters itself. Without a commitment it is `finalized`, except that `getSignatureStatuses` reads the newest bank.
 */
export function wishOf({ method, params }: Call, kind: MethodClass): Wish {
  if (method === 'getSignatureStatuses') return PROCESSED;
  const readsNow = READS_NOW.has(kind);
  if (params === undefined || params.length > CONFIG_BYTES_MAX) return readsNow ? FINALIZED : NONE;
  const bytes = Buffer.from(params.buffer, params.byteOffset, params.length);
  const atSlot = bytes.indexOf('"minContextSlot"');
  const slotMin =
    atSlot === -1 ? 0 : Number(SLOT.exec(bytes.toString('latin1', atSlot, atSlot + 64))?.[1] ?? 0);
  if (!readsNow) return slotMin === 0 ? NONE : { commitment: undefined, slotMin };
  // Names that are escaped or stand twice are for the node to read: a slot must not be noted at the wrong commitment.
  const at = bytes.indexOf('"commitment"');
  if (bytes.includes(BACKSLASH) || bytes.indexOf('"commitment"', at + 1) > at)
    return { commitment: undefined, slotMin };
  if (at === -1) return slotMin === 0 ? FINALIZED : { commitment: 'finalized', slotMin };
  const named = NAME.exec(bytes.toString('latin1', at, at + 64))?.[1];
  return { commitment: COMMITMENTS.find((commitment) => commitment === named), slotMin };
}

const BACKSLASH = 0x5c;

/** Longer parameters are lists and transactions; nobody looks through megabytes for a hint. */
const CONFIG_BYTES_MAX = 65_536;
const SLOT = /^"minContextSlot"\s*:\s*(\d{1,15})/;
const NAME = /^"commitment"\s*:\s*"(\w+)"/;
