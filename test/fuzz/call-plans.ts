import { ECHOED_ID } from '../fakes/raw-backend.ts';
import { postText } from '../fakes/raw-caller.ts';
import type { Random } from './episodes.ts';
import { answerAt } from './listener-requests.ts';

/** What a faulty backend does with an answer. */
const FAULTS = ['none', 'late', 'foreign', 'twice', 'surplus', 'cut', 'short'] as const;

/** An answer of the backend; `text` has its id as `ECHOED_ID`, as null, or none. */
export type Reply = Readonly<{
  text: string;
  /** What its caller gets: the text with this id, or the lines of its accounts. */
  expected(id: string): string;
  lines: string | undefined;
  framing: 'length' | 'chunks' | 'close';
  fault: (typeof FAULTS)[number];
  /** Decides how it is split. */
  seed: number;
}>;

const ids = (random: Random) => Array.from({ length: 16 }, () => random.one([...'ABCXYZ234567'])).join('');

/** Values that look like ids, like answers, and like both in strings. */
function valueOf(random: Random, isLong = false): string {
  const id = ids(random);
  const answer = `{"jsonrpc":"2.0","result":1,"id":"${id}"}`;
  const small = random.one([
    'null',
    '0',
    '"id"',
    '""',
    `"${id}"`,
    '["id"]',
    `{"id":"${id}"}`,
    '{"id":"id","\\u0069d":null}',
    answer,
    JSON.stringify(answer),
    JSON.stringify(`","id":"${id}"}`),
    `{"error":{"code":-32005,"message":"a"},"id":"${id}"}`,
    '{"a":{"context":{"slot":999999999999}}}',
    '"\\\\\\"\\ud800é"',
  ]);
  const times = isLong && random.below(12) === 0 ? random.one([700, 1_700, 6_000, 20_000]) : 0;
  return times === 0 ? small : `[${Array(times).fill(small).join()},"${'x'.repeat(random.below(400))}"]`;
}

/** An answer to the call with that tag, with the members in any order that nodes may choose. */
function replyTo(random: Random, tag: string, isScan: boolean, isFaulty: boolean): Reply {
  const elements = [`"${tag}"`, ...Array.from({ length: random.below(4) }, () => valueOf(random, true))];
  // What a faulty backend answers must show whose it is.
  const result = isScan || isFaulty ? `[${elements.join()}]` : valueOf(random, true);
  const isError = random.below(6) === 0;
  const error = `{"code":-32602,"message":${random.one([`"${tag}"`, '"id"', `"\\"id\\":\\"${ids(random)}\\""`])},"data":${random.one(['null', '"id"', `{"id":"${ids(random)}"}`])}}`;
  const member = isError ? `"error":${error}` : `"result":${result}`;
  // An error without an id is taken for whatever call it comes to.
  const mayLackId = isError && !isFaulty;
  const [version, id] = [
    '"jsonrpc":"2.0"',
    `"id":${mayLackId && random.below(3) === 0 ? 'null' : ECHOED_ID}`,
  ];
  const isIdless = mayLackId && random.below(4) === 0;
  const members = isIdless
    ? random.one([
        [version, member],
        [member, version],
      ])
    : random.one([
        [version, member, id],
        [version, member, id],
        [version, member, id],
        [version, id, member],
        [id, version, member],
        [member, id, version],
        [id, member, version],
        [member, version, id],
        ...(isError ? [[member, id, version]] : []),
      ]);
  const gap = random.below(5) === 0 ? random.one([' ', '\n', '\t ']) : '';
  const object = `{${gap}${members.join(`${gap},${gap}`)}`;
  const end = `${isIdless ? '' : gap}}${random.one(['', '', '\n'])}`;
  return {
    text: object + end,
    expected: (own) =>
      isIdless ? `${object},"id":${own}${end}` : object.replace(id, () => `"id":${own}`) + end,
    lines:
      isScan && !isError
        ? `${elements.join('\n')}\n{"accounts":${elements.length},"slot":null}\n`
        : undefined,
    framing: random.one(['length', 'length', 'chunks', 'close'] as const),
    fault: isFaulty ? random.one(FAULTS) : 'none',
    seed: random.below(2 ** 31),
  };
}

/** An id as its caller writes it. */
function idOf(random: Random): string {
  if (random.below(80) === 0) {
    const unit = random.one(['\\u0069', 'id', '\\"id\\":', '\\\\', 'é']);
    return `"${unit.repeat(Math.floor(65_000 / Buffer.byteLength(unit)))}"`;
  }
  const escaped = () =>
    [...random.one(['id', 'result', 'error', 'jsonrpc', ids(random)])]
      .map((c) => (random.below(2) === 0 ? c : `\\u00${c.charCodeAt(0).toString(16)}`))
      .join('');
  return random.one([
    'null',
    '0',
    String(random.below(5)),
    '18446744073709551615',
    '""',
    '"id"',
    `"${ids(random)}"`,
    `"${escaped()}"`,
    `"\\",\\"id\\":\\"${ids(random)}\\"}"`,
    '"]}"',
    '"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":"',
    '"\\/\\b\\f\\n\\r\\t\\\\\\ud800é"',
  ]);
}

const BAD_IDS = ['-1', '1.5', '1e3', '{}', '[]', 'true', '18446744073709551616', `"${'x'.repeat(65_600)}"`];
const SCAN = 'getProgramAccounts';
const METHODS = ['getAccountInfo', 'getBalance', 'getBlock', 'getTransaction', 'sendTransaction', SCAN];

/** What stands where an answer to an element should: an answer of the backend, or an error of the gateway's own under an id. */
type Expected = Readonly<{ id: string; text: string | undefined; lines: string | undefined; tag: string }>;
type Element = Readonly<{ text: string; expected: Expected | undefined }>;
type Planned = Readonly<{ body: string; isBatch: boolean; isLines: boolean; expected: readonly Expected[] }>;

/** What a caller sends, how it is split, and what should come. */
type CallsPlan = Readonly<{
  wire: Buffer;
  splits: readonly number[];
  gap: number;
  reads: 'at once' | 'late';
  end: 'half-close' | 'reset';
  text: string;
  requests: readonly Planned[];
}>;

/** Callers whose calls have tags that begin so, and the answers by tag; some calls are alike but for their ids. */
export function callsOf(random: Random, key: string, name: string, isFaulty: boolean) {
  const replies = new Map<string, Reply>();
  const asked: (readonly [method: string, tag: string])[] = [];
  const used: string[] = [];
  function call(isScan: boolean): Element {
    const isKnown = !isScan && asked.length > 0 && random.below(4) === 0;
    const [method, tag] = isKnown
      ? random.one(asked)
      : ([isScan ? SCAN : random.one(METHODS), `t${name}.${replies.size}~`] as const);
    const reply = replies.get(tag) ?? replyTo(random, tag, method === SCAN, isFaulty);
    replies.set(tag, reply);
    asked.push([method, tag]);
    const kind = random.below(15);
    const id =
      kind === 0 ? random.one(BAD_IDS) : random.below(5) === 0 ? random.one([...used, '1']) : idOf(random);
    if (kind > 0 && id.length < 1_000) used.push(id);
    const members = [
      '"jsonrpc":"2.0"',
      `"method":"${method}"`,
      `"params":["${tag}"${random.one(['', '', `,{"id":${valueOf(random)}}`])}]`,
      ...(kind === 1 ? [] : [`${random.one(['"id"', '"id"', '"\\u0069d"'])}:${id}`]),
      ...(random.below(4) === 0 ? [`"x":{"id":${valueOf(random)}}`] : []),
    ];
    if (kind === 2) members.push(`"i\\u0064":${id}`);
    const text = `{${members.toSorted(() => random.below(3) - 1).join()}}`;
    if (kind === 1) return { text, expected: undefined };
    if (kind === 0 || kind === 2)
      return { text, expected: { id: 'null', text: undefined, lines: undefined, tag } };
    return { text, expected: { id, text: reply.expected(id), lines: reply.lines, tag } };
  }
  function request(): Planned {
    const isBatch = random.below(3) === 0;
    const isLines = !isBatch && random.below(6) === 0;
    const elements = Array.from({ length: isBatch ? 1 + random.below(20) : 1 }, () => call(isLines));
    const texts = elements.map(({ text }) => text).join();
    const expected = elements.flatMap((each) => each.expected ?? []);
    return { body: isBatch ? `[${texts}]` : texts, isBatch, isLines, expected };
  }
  function plan(): CallsPlan {
    const requests = Array.from({ length: random.one([1, 1, 2, 5]) }, request);
    const posts = requests.map(({ body, isLines }) =>
      postText(body, key, isLines ? 'accept: application/x-ndjson\r\n' : ''),
    );
    const wire = Buffer.from(posts.join(''));
    const splits = Array.from({ length: random.one([0, 0, 1, 5]) }, () => random.below(wire.length + 1));
    return {
      wire,
      splits: splits.toSorted((a, b) => a - b),
      gap: random.below(3),
      reads: random.one(['at once', 'at once', 'late'] as const),
      end: random.one(['half-close', 'half-close', 'half-close', 'half-close', 'reset'] as const),
      text: requests.map(({ body }) => body.slice(0, 400)).join('\n  '),
      requests,
    };
  }
  const plans = Array.from({ length: 1 + random.below(4) }, plan);
  return { plans, replies };
}

/** What came of each call of a caller, by name. Throws where an answer is another's, or none that is honest. */
export function checkCalls(
  { requests, text }: CallsPlan,
  bytes: Buffer,
  isFaulty: boolean,
): readonly string[] {
  const names: string[] = [];
  let at = 0;
  for (const request of requests) {
    const read = answerAt(bytes, at, false);
    const came = read?.body ?? bytes.toString('latin1', at);
    const strange = (came.match(/t\d+\.\d+~/g) ?? []).find((tag) => !request.body.includes(tag));
    // The id of a long answer may stand at its end: what has begun is cut there, and never looks whole.
    if (read === undefined && isFaulty) return [...names, strange === undefined ? 'cut' : 'cut, of another'];
    if (strange !== undefined)
      throw new Error(
        `${text}\n  ${request.body.slice(0, 400)} got an answer to ${strange}: ${came.slice(0, 400)} …${came.slice(Math.max(0, came.indexOf(strange) - 300), came.indexOf(strange) + 300)}`,
      );
    const seen = read && namesOf(request, read);
    if (seen === undefined || (!isFaulty && seen.includes('refused')))
      throw new Error(`${text}\n  ${request.body.slice(0, 400)} got ${read?.status} ${came.slice(0, 400)}`);
    names.push(...seen);
    at = read?.end ?? at;
  }
  if (at < bytes.length) throw new Error(`${text}\n  more came: ${bytes.toString('latin1', at, at + 300)}`);
  return names;
}

const REFUSAL = /\{"jsonrpc":"2\.0","error":\{"code":-\d+,"message":"[^"]*"(?:,"data":\{[^}]*\})?\},"id":/y;

/** `undefined`: it is not the answer. */
function namesOf(
  { isBatch, isLines, expected }: Planned,
  { status, body }: { status: number; body: string },
) {
  const [first] = expected;
  if (first === undefined) return body === '' ? ['notifications'] : undefined;
  if (isLines && first.lines !== undefined && status === 200)
    return body === latin1(first.lines) ? ['lines'] : undefined;
  const names: string[] = [];
  let at = isBatch ? 1 : 0;
  for (const [i, each] of expected.entries()) {
    const own = latin1(each.text?.trim() ?? '');
    while (' \n\t'.includes(body[at] ?? '-')) at++;
    if (own !== '' && body.startsWith(own, at) && (isBatch || status === 200)) {
      names.push('own');
      at += own.length;
    } else {
      REFUSAL.lastIndex = at;
      if (!REFUSAL.test(body) || !body.startsWith(`${latin1(each.id)}}`, REFUSAL.lastIndex)) return undefined;
      if (!isBatch && status === 200) return undefined;
      names.push(each.text === undefined ? 'invalid' : 'refused');
      at = REFUSAL.lastIndex + latin1(each.id).length + 1;
    }
    while (' \n\t'.includes(body[at] ?? '-')) at++;
    if (isBatch && body[at++] !== (i === expected.length - 1 ? ']' : ',')) return undefined;
  }
  return at === body.length ? names : undefined;
}

const latin1 = (text: string) => Buffer.from(text).toString('latin1');
