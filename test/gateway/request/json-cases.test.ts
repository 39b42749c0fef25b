import { expect, test } from 'bun:test';
import { DEPTH_MAX } from '../../../gateway/json/scan.ts';
import { readEnvelope } from '../../../gateway/request/envelope.ts';
import { NEVER, OPEN, TAKEN } from '../json/json-cases.ts';
import { readAtOnce } from './body.ts';

/** As a body, and as the only value of the parameters of a call. */
const CALL = [Buffer.from('{"jsonrpc":"2.0","id":1,"method":"m","params":['), Buffer.from(']}')] as const;
const asParams = (json: Buffer) => Buffer.concat([CALL[0], json, CALL[1]]);

const isJson = (body: Buffer) => {
  const read = readAtOnce(body);
  return read.kind !== 'malformed' || read.code !== -32700;
};

/** The bytes of the parameters; `undefined`: it is no call. */
function paramsOf(body: Buffer): Buffer | undefined {
  const read = readAtOnce(body);
  const one = read.kind === 'single' ? read.elements[0] : undefined;
  return one?.kind === 'call' && one.params !== undefined ? Buffer.from(one.params) : undefined;
}

const taken = [...TAKEN, ...OPEN.filter(([, , isTaken]) => isTaken)];
const refused = [...NEVER, ...OPEN.filter(([, , isTaken]) => !isTaken)];

test.each(taken.map(([what, json]) => [what, json] as const))(
  'F2 JSON is taken, byte for byte: %s',
  (_what, json) => {
    // An array that is empty is an empty batch.
    expect(isJson(json)).toBe(true);
    const bytes = Buffer.concat([Buffer.from('['), json, Buffer.from(']')]);
    expect(paramsOf(asParams(json))).toEqual(bytes);
  },
);

test.each(refused.map(([what, json]) => [what, json] as const))(
  'F2 what is no JSON is not taken: %s',
  (_what, json) => {
    expect(isJson(json)).toBe(false);
    // Nothing between brackets is an empty array.
    if (json.toString().trim() !== '') expect(isJson(asParams(json))).toBe(false);
  },
);

test('F2 and JSON.parse agrees but for what the table gives a reason for', () => {
  const parses = (json: Buffer) => {
    try {
      JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(json));
      return true;
    } catch {
      return false;
    }
  };
  for (const [what, json] of taken) expect([what, parses(json)]).toEqual([what, true]);
  for (const [what, json] of refused) expect([what, parses(json)]).toEqual([what, false]);
});

test('F2 in slices they are the same', async () => {
  for (const [, json] of [...taken, ...refused])
    for (const body of [json, asParams(json)])
      expect(await readEnvelope(body, 100, 1)).toEqual(readAtOnce(body));
});

test.each([
  ['arrays that end', (levels: number) => '['.repeat(levels) + ']'.repeat(levels)],
  ['arrays that do not end', (levels: number) => '['.repeat(levels)],
  ['objects that do not end', (levels: number) => '[{"":'.repeat(levels / 2)],
])('F2 JSON that is nested deeper than %s may be refused for that, before anything else', (_what, text) => {
  for (const levels of [DEPTH_MAX + 2, 500, 100_000])
    expect(readAtOnce(text(levels))).toEqual({
      kind: 'malformed',
      code: -32600,
      reason: 'Invalid request: nested too deeply',
    });
});
