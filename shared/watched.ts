import { type Address, isAddress } from '@solana/kit';
import { readFileSync } from 'node:fs';
import { shown } from './config/table.ts';
import builtIn from './programs.json';
import { codeOf, fileReason } from './store/private.ts';

export type WatchedProgram = Readonly<{ address: Address; label: string }>;

type Item = Readonly<Record<string, unknown>>;

type Watched =
  | { readonly kind: 'watched'; readonly programs: readonly WatchedProgram[] }
  /** Every problem at once, each a sentence for the operator. */
  | { readonly kind: 'problems'; readonly lines: readonly string[] };

/** Programs one watcher reads; ten calls of a hundred accounts each, twice a reading. */
export const PROGRAMS_MAX = 1_000;
/** Characters of a label: it stands in tables, logs and webhooks. */
const LABEL_LENGTH_MAX = 100;

/** Programs from parsed JSON: an array of `{"program_id": address, "label": text}`, no address twice; other members are ignored. */
export function watchedFrom(json: unknown): Watched {
  if (!Array.isArray(json)) return problems('the list of programs must be a JSON array');
  if (json.length === 0) return problems('the list of programs is empty; nothing would be watched');
  if (json.length > PROGRAMS_MAX)
    return problems(`the list has ${json.length} programs; at most ${PROGRAMS_MAX} can be watched`);
  const lines: string[] = [];
  const firstIndexes = new Map<Address, number>();
  const programs: WatchedProgram[] = [];
  for (const [i, item] of json.entries()) {
    const members: Item = Object(item);
    const address = addressOf(members, i, lines);
    const label = labelOf(members, i, lines);
    if (address === undefined) continue;
    const twin = firstIndexes.get(address);
    if (twin !== undefined) lines.push(`[${i}].program_id: ${address} is in the list already, at [${twin}]`);
    else firstIndexes.set(address, i);
    if (label !== undefined) programs.push({ address, label });
  }
  return lines.length > 0 ? { kind: 'problems', lines } : { kind: 'watched', programs };
}

function problems(line: string): Watched {
  return { kind: 'problems', lines: [line] };
}

function addressOf({ program_id: text }: Item, i: number, lines: string[]): Address | undefined {
  if (typeof text === 'string' && isAddress(text)) return text;
  lines.push(`[${i}].program_id: found ${shown(text)}, expected a base58 address of 32 bytes`);
  return undefined;
}

function labelOf({ label: text }: Item, i: number, lines: string[]): string | undefined {
  const isName = typeof text === 'string' && text.trim() === text && /^\P{Cc}+$/u.test(text);
  if (!isName)
    lines.push(`[${i}].label: found ${shown(text)}, expected a name without leading or trailing spaces`);
  else if (text.length <= LABEL_LENGTH_MAX) return text;
  else lines.push(`[${i}].label: has ${text.length} characters, expected at most ${LABEL_LENGTH_MAX}`);
  return undefined;
}

/** The programs that are watched: those of the JSON file at `path`, else the built-in list. Never throws for a bad file. */
export function readWatched(path: string | undefined): Watched {
  if (path === undefined) return watchedFrom(builtIn);
  try {
    const watched = watchedFrom(JSON.parse(readFileSync(path, 'utf8')));
    if (watched.kind === 'watched') return watched;
    return { kind: 'problems', lines: watched.lines.map((line) => `${path}: ${line}`) };
  } catch (error) {
    const isRead = error instanceof SyntaxError;
    const why = isRead ? `is not valid JSON: ${fileReason(error)}` : `cannot be read (${codeOf(error)}).`;
    return problems(`The list of programs ${path} ${why}`);
  }
}
