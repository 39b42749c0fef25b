import { BACKSLASH, COLON, QUOTE } from './scan.ts';

/** The kind of the last byte in its place. */
type StructureState = (typeof STATES)[number];

/**
 * ```
 * before ──{──▶ within ──"──▶ opened ──i──▶ i ──d──▶ id ──"──▶ idEnded ──▶ within
 *                │  ▲ ▲          └────┬─────┴────┬────┘
 *   the last } ──┘  │ └──────"───── string ──\──▶ escaped ──▶ string
 *       ▼           │
 *     after         └── any value, name or sign; a byte that cannot stand there: broken
 * ```
 * A string ends at any of its states, and a space leaves each outside of strings as it is.
 */
const STATES = [
  'before',
  'within',
  'opened',
  'i',
  'id',
  'idEnded',
  'string',
  'escaped',
  'after',
  'broken',
] as const;

/** A state as it stands in a step: above the byte that comes next. */
const of = (state: StructureState) => STATES.indexOf(state) << 8;
const [BEFORE, WITHIN, STRING, AFTER, BROKEN] = [
  of('before'),
  of('within'),
  of('string'),
  of('after'),
  of('broken'),
];
const STATE_BITS = 0xf00;
/** The byte shows that the string `"id"` before it was a name. */
const NAMES_ID = 0x1000;
/** The bits of a step above it are the change of the depth. */
const DEPTH_BIT = 13;

/**
 * The step for each byte in each state: one load a byte, and no branch that data can make hard to foretell. A walk from
 * string to string took four times as long on short strings, and ten times on members `"id"`.
 */
const STEPS = new Int32Array(STATES.length << 8);
STATES.forEach((state) => {
  for (let byte = 0; byte < 256; byte++) STEPS[of(state) | byte] = stepOf(state, byte);
});

function stepOf(state: StructureState, byte: number): number {
  const char = String.fromCharCode(byte);
  const isSpace = ' \t\r\n'.includes(char);
  switch (state) {
    case 'before':
      return isSpace ? BEFORE : '{['.includes(char) ? WITHIN + (1 << DEPTH_BIT) : BROKEN;
    case 'after':
      return isSpace ? AFTER : BROKEN;
    case 'broken':
      return BROKEN;
    case 'escaped':
      return STRING;
    case 'idEnded':
      if (isSpace) return of('idEnded');
      return stepOf('within', byte) + (byte === COLON ? NAMES_ID : 0);
    case 'within':
      if ('{['.includes(char)) return WITHIN + (1 << DEPTH_BIT);
      if ('}]'.includes(char)) return WITHIN - (1 << DEPTH_BIT);
      if (byte === QUOTE) return of('opened');
      // Letters are those of the three literals and of exponents.
      return isSpace || ',:+-.0123456789eEtruefalsn'.includes(char) ? WITHIN : BROKEN;
    case 'opened':
    case 'i':
    case 'id':
    case 'string':
      if (byte === BACKSLASH) return of('escaped');
      if (byte === QUOTE) return state === 'id' ? of('idEnded') : WITHIN;
      return char === 'i' && state === 'opened' ? of('i') : char === 'd' && state === 'i' ? of('id') : STRING;
  }
}

/** After so many bytes the rest of a string is searched for its end, which takes a tenth of the time of steps. */
const STEPS_MAX = 16;

/** Follows the structure of one JSON value through its bytes, however they are cut; it does not parse (docs/decisions/json.md). */
export class Structure {
  /** Objects and arrays that are open. */
  depth: number;
  /** The least depth of a member `"id"`, and how many stand there. */
  idDepth = Infinity;
  ids = 0;
  #state: number;

  /** `depth`: so many are open before the first byte. */
  constructor(depth = 0) {
    this.depth = depth;
    this.#state = depth > 0 ? WITHIN : BEFORE;
  }

  /** There was a byte that cannot belong to one JSON value. */
  get isBroken(): boolean {
    return this.#state === BROKEN;
  }

  /** Whether the value has ended and nothing but white space followed. */
  get isComplete(): boolean {
    return this.#state === AFTER;
  }

  /** Takes the next bytes; gives false once it is broken. */
  push(bytes: Buffer): boolean {
    // Locals, because a field is written to memory at every step.
    let depth = this.depth;
    let state = this.#state;
    let i = 0;
    while (i < bytes.length && state !== BROKEN) {
      for (const end = Math.min(bytes.length, i + STEPS_MAX); i < end; i++) {
        const step = STEPS[state | (bytes[i] ?? 0)] ?? 0;
        state = step & STATE_BITS;
        depth += step >> DEPTH_BIT;
        if ((step & NAMES_ID) !== 0) this.#noteId(depth);
        else if (depth === 0 && state === WITHIN) state = AFTER;
      }
      if (state === STRING) i = beforeEnd(bytes, i);
    }
    this.depth = depth;
    this.#state = state;
    return state !== BROKEN;
  }

  #noteId(depth: number): void {
    if (depth < this.idDepth) [this.idDepth, this.ids] = [depth, 0];
    if (depth === this.idDepth) this.ids++;
  }
}

/** Where the quote that may end a string stands, or the backslash that escapes it; `i` is within the string, and not escaped. */
export function beforeEnd(bytes: Buffer, i: number): number {
  const quote = bytes.indexOf(QUOTE, i);
  const end = quote === -1 ? bytes.length : quote;
  let run = end;
  while (run > i && bytes[run - 1] === BACKSLASH) run--;
  // Pairs of backslashes are passed over: to step through a long run, and search behind each few, would be quadratic.
  return end - ((end - run) & 1);
}
