import { getAddressDecoder } from '@solana/kit';
import type { Reply } from './connection.ts';
import { type Request, RESULT, UNREAD } from './load.ts';
import { parsedJson } from './rpc.ts';

/** A call that a load may make; `weight`: how often, beside the others. */
export type WeightedCall = Readonly<{ weight: number; method: string; params: string; label?: string }>;

/** Gives request `n` of a load. */
export type RequestSource = (n: number) => Request;

/** Makes `count` random bytes. */
type Random = (count: number) => Uint8Array;

/** In the parameters of a call: another address in each. */
const ADDRESS = '"$address"';
/** Addresses to take turns: making one for each call would cost as much as the call. */
const ADDRESSES = 4_096;

/** Requests of one call each, chosen by weight. */
export function callsFrom(calls: readonly WeightedCall[], random: Random): RequestSource {
  const choose = chooser(calls, random);
  const fill = filler(random);
  return (n) => {
    const { method, params, label } = choose();
    const body = `{"jsonrpc":"2.0","id":${n},"method":"${method}","params":${fill(params)}}`;
    return { body, ids: [n], label };
  };
}

/** Requests of `size` calls each. */
export function batchesFrom(call: WeightedCall, size: number, random: Random): RequestSource {
  const fill = filler(random);
  return (n) => {
    const ids = Array.from({ length: size }, (_, i) => n * size + i);
    const items = ids.map(
      (id) => `{"jsonrpc":"2.0","id":${id},"method":"${call.method}","params":${fill(call.params)}}`,
    );
    return { body: `[${items.join(',')}]`, ids };
  };
}

/** Reads lines of `{"weight":1,"method":"getSlot","params":[]}`, or says which line is none. */
export function weightedCallsFrom(text: string): readonly WeightedCall[] | string {
  const lines = text.split('\n').map((line) => line.trim());
  const calls: WeightedCall[] = [];
  for (const [i, line] of lines.entries()) {
    if (line === '') continue;
    const { weight = 1, method, params = [], label = method } = Object(parsedJson(line));
    const isCall =
      typeof weight === 'number' && weight > 0 && weight < Infinity && /^\w+$/.test(String(method));
    if (!isCall || typeof params !== 'object' || params === null || typeof label !== 'string')
      return `line ${i + 1} is no {"weight":1,"method":"getSlot","params":[]}`;
    calls.push({ weight, method: String(method), params: JSON.stringify(params), label });
  }
  return calls.length === 0 ? 'it has no calls' : calls;
}

function chooser(calls: readonly WeightedCall[], random: Random): () => WeightedCall {
  const [first] = calls;
  if (first === undefined) throw new Error('a load without calls');
  if (calls.length === 1) return () => first;
  let sum = 0;
  const ends = calls.map(({ weight }) => (sum += weight));
  // 4,096 draws in the weights' shares, taken in turn: a draw for each call is not needed.
  const dice = new DataView(random(4 * 4_096).buffer);
  const drawn = Array.from({ length: 4_096 }, (_, i) => {
    const at = (dice.getUint32(4 * i) / 2 ** 32) * sum;
    return calls[ends.findIndex((end) => at < end)] ?? first;
  });
  let next = 0;
  return () => drawn[next++ % drawn.length] ?? first;
}

function filler(random: Random): (params: string) => string {
  let addresses: readonly string[] | undefined;
  let next = 0;
  return (params) => {
    if (!params.includes(ADDRESS)) return params;
    addresses ??= Array.from({ length: ADDRESSES }, () => `"${getAddressDecoder().decode(random(32))}"`);
    return params.replaceAll(ADDRESS, () => addresses?.[next++ % ADDRESSES] ?? ADDRESS);
  };
}

/** The outcome of each call of a request: `RESULT`, or the status and code or what else is wrong with the answer. */
export function outcomesOf(reply: Reply, { ids }: Pick<Request, 'ids'>): readonly string[] {
  if (reply.kind === 'failure') return ids.map(() => reply.reason);
  const { status, body, isWhole } = reply;
  if (!isWhole) {
    const outcome = longOutcome(status, body.toString('latin1'));
    return ids.map(() => (outcome === RESULT && ids.length > 1 ? UNREAD : outcome));
  }
  const answer = parsedJson(body.toString('utf8'));
  if (!Array.isArray(answer)) {
    const outcome = ids.length === 1 ? outcomeOf(status, answer, ids[0]) : refusalOf(status, answer);
    return ids.map(() => outcome);
  }
  if (ids.length === 1 || answer.length !== ids.length)
    return ids.map(() => `${status}, another number of answers`);
  // In any order (JSON-RPC 2.0, section 6); an error about a call that was not read has no id.
  const answers = new Map(answer.map((each: unknown) => [Object(each).id, each]));
  return ids.map((id) => {
    const own = answers.get(id) ?? answers.get(null);
    return own === undefined ? FOREIGN : outcomeOf(status, own, id);
  });
}

const FOREIGN = '200, the id of another call';

function outcomeOf(status: number, answer: unknown, id: number | undefined): string {
  if (typeof answer !== 'object' || answer === null)
    return status === 200 ? '200, no JSON-RPC' : `HTTP ${status}`;
  if ('error' in answer && answer.error !== null) return refusalOf(status, answer);
  if (status !== 200 || !('result' in answer)) return `HTTP ${status}, no JSON-RPC`;
  return 'id' in answer && answer.id === id ? RESULT : FOREIGN;
}

/** What a refusal says when the key's plan lets too few scans run at once. */
const SCAN_LIMIT = /at most ([\d,]{1,9}) scans at once/;

/** How many scans a plan lets run at once, by an outcome that it was refused for. */
export function scanLimitOf(outcome: string): string | undefined {
  return SCAN_LIMIT.exec(outcome)?.[1];
}

/** A refusal by its HTTP status and its code, and by the limit of scans where that is what refused. */
function refusalOf(status: number, answer: unknown): string {
  const { code, message } = Object(Object(answer).error);
  if (!Number.isInteger(code)) return `HTTP ${status}, no JSON-RPC`;
  const [limit] = SCAN_LIMIT.exec(String(message)) ?? [];
  return limit === undefined ? `${status} ${code}` : `${status} ${code}, ${limit}`;
}

/** The outcome of an answer that is too long to be kept, by how it begins. */
function longOutcome(status: number, begin: string): string {
  if (status !== 200) return `HTTP ${status}`;
  return /^\s*\[?\s*\{[^{}[\]]*"result"/.test(begin) ? RESULT : '200, no JSON-RPC';
}
