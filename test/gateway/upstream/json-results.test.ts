import { isUtf8 } from 'node:buffer';
import { expect, test } from 'bun:test';
import type { Framing } from '../../../gateway/http/body-decoder.ts';
import { judge } from '../../../gateway/upstream/response-reader.ts';
import { NEVER, OPEN, TAKEN } from '../json/json-cases.ts';
import { reply } from './replies.ts';

const SENT = Buffer.from('"7AJQ2MZXW4KBTNVC"');
const OWN = Buffer.from('7');
const [BEFORE, BEHIND] = ['{"jsonrpc":"2.0","result":', ',"id":'];
const answerOf = (json: Buffer, id: Buffer) =>
  Buffer.concat([Buffer.from(BEFORE), json, Buffer.from(BEHIND), id, Buffer.from('}\n')]);

/** What the caller of a small answer gets, in each framing and however it is cut; `undefined`: it is refused, or cut. */
async function given(
  json: Buffer,
  isTrusted: boolean,
  answerIn = answerOf,
): Promise<readonly (Buffer | undefined)[]> {
  const whole = answerIn(json, SENT);
  const cuts = [1, BEFORE.length + 1, BEFORE.length + json.length, whole.length - 9];
  const ways = [[whole], ...cuts.map((at) => [whole.subarray(0, at), whole.subarray(at)])];
  const framings: readonly Framing[] = [whole.length, 'chunked', 'until-close'];
  return Promise.all(
    framings.flatMap((framing) =>
      ways.map(async (pieces) => {
        const { made } = reply(pieces, { framing, ended: pieces.length === 1 });
        const ids = { slotIn: 'context' as const, sentId: SENT, callerId: OWN };
        const judged = await judge(made, ids, isTrusted, new AbortController().signal);
        if (judged.kind === 'whole') return Buffer.from(judged.bytes);
        if (judged.kind !== 'stream') return undefined;
        const passed: Buffer[] = [];
        const end = await judged.body.pipe((piece) => void passed.push(Buffer.from(piece)));
        return end.kind === 'complete' ? Buffer.concat(passed) : undefined;
      }),
    ),
  );
}

const named = (cases: readonly (readonly [string, Buffer, ...unknown[]])[]) =>
  cases.map(([what, json]) => [what, json] as const);

test.each(named([...TAKEN, ...OPEN.filter(([, , isTaken]) => isTaken)]))(
  'F3 a result is passed on byte for byte, however it comes: %s',
  async (_what, json) => {
    for (const isTrusted of [false, true])
      for (const bytes of await given(json, isTrusted)) expect(bytes).toEqual(answerOf(json, OWN));
  },
);

test.each(named(NEVER).filter(([, json]) => isUtf8(json)))(
  'F3 a result that is no JSON is not passed on as a whole answer, however it comes: %s (§2.2.3)',
  async (_what, json) => {
    for (const isTrusted of [false, true])
      for (const bytes of await given(json, isTrusted)) expect(bytes).toBeUndefined();
  },
);

/** Where results and requests differ: a request goes to nodes, which refuse such bytes; a result is its node's word. */
test('F3 bytes that are no UTF-8 are passed on in the texts of results, and nowhere else', async () => {
  const texts = OPEN.filter(([what]) => what.startsWith('bytes that are no UTF-8'));
  expect(texts.length).toBeGreaterThan(5);
  for (const [, json] of texts)
    for (const bytes of await given(json, false)) expect(bytes).toEqual(answerOf(json, OWN));
  for (const [, json] of NEVER.filter(([, bytes]) => !isUtf8(bytes)))
    for (const bytes of await given(json, false)) expect(bytes).toBeUndefined();
});

/**
 * Of more than 64 KB nothing is parsed, for that would cost as much as to relay it. What begins as nodes write results ends in
 * an id that no node can know before: that is its end. Of any other form the structure is followed.
 */
test.each(['[1', '{"a":', '["x', '[[]', '{"a":{}', '"', ']', '}', '[}}'])(
  'F3 a long result with %s in it is cut, unless it begins as nodes write results',
  async (text) => {
    const json = Buffer.from(`[{"data":"${'x'.repeat(70_000)}"},${text}]`);
    const [atOnce] = await given(json, false);
    expect(atOnce).toEqual(answerOf(json, OWN));
    const idFirst = (result: Buffer, id: Buffer) =>
      Buffer.concat([Buffer.from('{"id":'), id, Buffer.from(',"result":'), result, Buffer.from('}')]);
    for (const bytes of await given(json, false, idFirst)) expect(bytes).toBeUndefined();
  },
);
