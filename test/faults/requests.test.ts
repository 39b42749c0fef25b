import { describe, expect, test } from 'bun:test';
import { result } from '../fakes/backend.ts';
import { callText, errorText as error, pair, resultText } from './pair.ts';

const twice = (name: string, id = '1') => error(-32600, `Invalid request: two members named ${name}`, id);
const PARSE = error(-32700, 'Parse error');
const CALL = callText(1, 'getSlot');

const { backend, gateway } = await pair({}, undefined, (seen) => result(seen, '7'));
const key = gateway.key();

/** Status and body of a request, and what reached the backend of it. */
async function ask(body: string | Uint8Array<ArrayBuffer>) {
  const before = backend.seen.length;
  const answer = await fetch(gateway.url, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', 'x-token': key },
  });
  const text = (await answer.text()).replace(/\n$/, '');
  const sent = backend.seen.slice(before).map((seen) => seen.text.replace(seen.id, 'ID'));
  return { status: answer.status, text, sent };
}

const refused = (text: string, status = 400) => ({ status, text, sent: [] });
const answered = (id: string, sent: string) => ({
  status: 200,
  text: resultText(7, id),
  sent: [sent.replace(`"id":${id}`, '"id":ID')],
});
const unknown = { status: 200, text: error(-32601, 'Method not found', '1'), sent: [] };

describe('F1 a member that stands twice is refused, however it is written, so that no two readers can differ', () => {
  const call = (more: string) => `{"jsonrpc":"2.0","id":1,"method":"getSlot",${more}}`;
  test.each([
    ['method, escaped', call('"\\u006dethod":"sendTransaction"'), twice('method')],
    ['id', call('"id":2'), twice('id', 'null')],
  ])('F1 %s (§2.1.3)', async (_name, body, text) => {
    expect(await ask(body)).toEqual(refused(text));
    expect(await ask(`[${body}]`)).toEqual({ status: 200, text: `[${text}]`, sent: [] });
  });
});

test.each<[string, string | Uint8Array<ArrayBuffer>, string]>([
  ['two documents', `${CALL}${CALL}`, PARSE],
  ['UTF-16', new Uint8Array(Buffer.from(`\uFEFF${CALL}`, 'utf16le')), PARSE],
  ['ten thousand levels', '['.repeat(10_000), error(-32600, 'Invalid request: nested too deeply')],
])(
  'F2 what is not one JSON text is refused, as is one too deep: %s (§2.5 400)',
  async (_name, body, text) => {
    expect(await ask(body)).toEqual(refused(text));
  },
);

describe('F2 what is one JSON text but odd', () => {
  test.each(['Method', 'METHOD', 'ｍethod'])('F2 the member %s is not method', async (name) => {
    const both = `{"jsonrpc":"2.0","id":1,"method":"getSlot","${name}":"sendTransaction"}`;
    expect(await ask(both)).toEqual(answered('1', CALL));
    const alone = `{"jsonrpc":"2.0","id":1,"${name}":"getSlot"}`;
    expect(await ask(alone)).toEqual(refused(error(-32600, 'Invalid request: method must be a string', '1')));
  });

  test.each(['getslot', 'GETSLOT', ' getSlot', 'getSlot\\u0000', 'ǵetSlot', '\\ud800', ''])(
    'F2 the method %j is not getSlot',
    async (method) => {
      expect(await ask(callText(1, method))).toEqual(unknown);
    },
  );

  test('F2 a method name of a megabyte is an unknown method, and nothing of it comes back', async () => {
    expect(await ask(callText(1, 'm'.repeat(1_000_000)))).toEqual(unknown);
  });

  test('F2 a method written with escapes is the method, and reaches the backend without them', async () => {
    expect(await ask('{"jsonrpc":"2.0","id":1,"method":"\\u0067etSlot"}')).toEqual(answered('1', CALL));
  });

  test('F2 lone surrogates as escapes pass as they are, in ids and in params', async () => {
    const body = '{"jsonrpc":"2.0","id":"\\uD800","method":"getSlot","params":["\\udfff"]}';
    expect(await ask(body)).toEqual(answered('"\\uD800"', body));
  });
});

describe('F3 numbers survive', () => {
  test('F3 in params and ids, byte for byte (§2.1.2)', async () => {
    const body =
      '{"jsonrpc":"2.0","id":9007199254740993,"method":"getSlot","params":[1e400,-0,1.0,1E+2,18446744073709551615,0.1e-7]}';
    expect(await ask(body)).toEqual(answered('9007199254740993', body));
  });

  test('F3 in results, rentEpoch and floats among them (§2.1.2)', async () => {
    const json =
      '{"context":{"slot":1},"value":{"lamports":18446744073709551615,"rentEpoch":18446744073709551615,"uiAmount":0.10,"x":1e400,"y":-0,"z":1.0}}';
    backend.script((seen) => result(seen, json));
    const { text } = await ask('{"jsonrpc":"2.0","id":18446744073709551615,"method":"getAccountInfo"}');
    expect(text).toBe(resultText(json, '18446744073709551615'));
    backend.script((seen) => result(seen, '7'));
  });

  test.each(['1e400', '-0', '1.0', '1.5', '-1', '18446744073709551616'])(
    'F3 the id %s is refused, never rounded',
    async (id) => {
      const text = error(-32600, 'Invalid request: id must be a string, an unsigned integer or null');
      expect(await ask(callText(id, 'getSlot'))).toEqual(refused(text));
    },
  );
});
