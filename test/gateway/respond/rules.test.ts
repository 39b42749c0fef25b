import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { CallReply } from '../../../gateway/upstream/failover.ts';
import type { Forward } from '../../../gateway/upstream/forward.ts';
import { withoutHistory, withRules } from '../../../gateway/respond/rules.ts';
import type { Pool } from '../../../gateway/upstream/selection.ts';
import {
  callOf,
  contextOf,
  forwardOf,
  routeTo,
  streamOf,
  textOf as replyText,
  wholeOf,
} from '../upstream/of.ts';
import { jsonText, objectText } from '../json/json-text.ts';
import { streamBodyOf } from '../stream-body.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const textOf = (bytes: Uint8Array | undefined) =>
  bytes === undefined ? undefined : new TextDecoder().decode(bytes);

function forwarded(params: string | undefined) {
  const { params: given, wantsHistory } = withoutHistory(params === undefined ? undefined : bytesOf(params));
  return [textOf(given), wantsHistory];
}

const FOUND =
  '{"slot":72,"confirmations":10,"err":null,"status":{"Ok":null},"confirmationStatus":"confirmed"}';
const answerOf = (value: string) =>
  `{"jsonrpc":"2.0","result":{"context":{"slot":82},"value":${value}},"id":7}\n`;

/** Replies in chunks of a few bytes, as a chunked backend does. */
function chunked(text: string, state = { cancelled: false }): CallReply {
  const chunks = bytesOf(text);
  let at = 0;
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (at >= chunks.length) return controller.close();
      controller.enqueue(chunks.slice(at, (at += 7)));
    },
    cancel: () => void (state.cancelled = true),
  });
  return streamOf(streamBodyOf(body));
}

/** Sends a call through the rule; gives the reply, and as text. */
async function ruled(params: string, reply: CallReply) {
  const method = 'getSignatureStatuses';
  const call = callOf(method, params, '18446744073709551615');
  const { clock } = createVirtualClock();
  const { pool } = forwardOf([], clock);
  const given = await withRules(async () => reply, pool, clock)(call, routeTo([], method), contextOf());
  return { given, text: given.kind === 'whole' ? textOf(given.bytes) : given.kind };
}

const ASKED = '[["s1","s2"],{"searchTransactionHistory":true}]';
const NOT_AVAILABLE =
  '{"jsonrpc":"2.0","error":{"code":-32011,"message":"Transaction history is not available from this node"},"id":18446744073709551615}';

const TRUES = ['"searchTransactionHistory":true', '"\\u0073earchTransactionHistory" : true'];

test('searchTransactionHistory reaches a backend as false wherever it is true, and every byte beside it as it came (§2.3.1)', () => {
  const name = fc.constantFrom('"a"', '"searchTransactionHistory"', '"\\u0073earchTransactionHistory"');
  const value = fc.oneof(jsonText, fc.constantFrom('true', 'false', 'null', '"true"', '[true]'));
  const members = fc.array(fc.record({ name, value }), { maxLength: 5 });
  const [gaps, ends] = [fc.constantFrom('', ' ', '\n'), fc.constantFrom('', ',1')];
  let replaced = 0;
  fc.assert(
    fc.property(jsonText, members, gaps, ends, (first, config, gap, more) => {
      const isFlag = (member: { name: string }) => JSON.parse(member.name) === 'searchTransactionHistory';
      const textWith = (list: typeof config) =>
        `[${gap}${first},${gap}${objectText(list, gap)}${gap}${more}]`;
      const expected = config.map((each) =>
        isFlag(each) && each.value === 'true' ? { ...each, value: 'false' } : each,
      );
      if (config.some((each, i) => each !== expected[i])) replaced++;
      const wantsHistory = config.findLast(isFlag)?.value === 'true';
      expect(forwarded(textWith(config))).toEqual([textWith(expected), wantsHistory]);
    }),
    { numRuns: 1_000 },
  );
  expect(replaced).toBeGreaterThan(100);
});

test.each([
  undefined,
  '[["s"]]',
  '[["s"],null]',
  '[["s"],{}]',
  '[["s"], { "a" : 18446744073709551615 }]',
  '[["s"],{"searchTransactionHistory":false,"b":1}]',
  // A node refuses what is no boolean, and so it comes to it as it is.
  '[["s"],{"searchTransactionHistory":"true"}]',
  '[["s"],{"searchTransactionHistory":null}]',
  '[["s"],{"searchTransactionHistory":1}]',
  '[{"searchTransactionHistory":true}]',
  '[["s"],{"a":{"searchTransactionHistory":true}}]',
  '{"signatures":["s"],"searchTransactionHistory":true}',
  '[["s"],"searchTransactionHistory"]',
])("params that ask for no history are the caller's own bytes: %p", (params) => {
  expect(forwarded(params)).toEqual([params, false]);
});

test('of two flags the last one counts, and neither reaches a backend as true', () => {
  const [plain, escaped] = TRUES;
  const off = '"searchTransactionHistory":false';
  expect(forwarded(`[["s"],{${plain},"b":1,${escaped}}]`)).toEqual([
    `[["s"],{${off},"b":1,"\\u0073earchTransactionHistory" : false}]`,
    true,
  ]);
  expect(forwarded(`[["s"],{${plain},${off}}]`)).toEqual([`[["s"],{${off},${off}}]`, false]);
});

test("a null entry is answered -32011 under the caller's id when history was requested, else passed on (§2.3.1)", async () => {
  for (const reply of [wholeOf, chunked]) {
    expect((await ruled(ASKED, reply(answerOf(`[${FOUND},null]`)))).text).toBe(NOT_AVAILABLE);
    const given = reply(answerOf('[null]'));
    expect((await ruled('[["s1"],{"searchTransactionHistory":false}]', given)).given).toBe(given);
  }
});

describe('when history was requested', () => {
  test.each([
    ['every entry found', answerOf(`[${FOUND},${FOUND}]`)],
    ["an error of the method's own", '{"jsonrpc":"2.0","error":{"code":-32602,"message":"x"},"id":7}\n'],
    ['something that is not JSON', '{"jsonrpc":'],
  ])('%s is passed on byte for byte', async (_, text) => {
    expect((await ruled(ASKED, wholeOf(text))).text).toBe(text);
    expect((await ruled(ASKED, chunked(text))).text).toBe(text);
  });

  test('an answer longer than any real one is no answer, and is not read to its end', async () => {
    const state = { cancelled: false };
    const { given } = await ruled(ASKED, chunked(`{"a":"${'x'.repeat(1 << 20)}"}`, state));
    expect(given).toEqual({ kind: 'no-backend', replied: true });
    expect(state.cancelled).toBe(true);
  });
});

/** The answer to a call by the rules, with some of the pool's own replaced, and how often it was settled. */
async function answered(method: string, rows: Partial<Pool>): Promise<readonly [string, number]> {
  const { clock } = createVirtualClock();
  const { pool } = forwardOf([], clock);
  const forward: Forward = async (_call, _route, { onSettled }) => {
    onSettled?.();
    return { kind: 'no-backend' };
  };
  let overs = 0;
  const context = contextOf({ onSettled: () => void overs++ });
  const rules = withRules(forward, { ...pool, ...rows }, clock);
  return [await replyText(await rules(callOf(method, null, '"7"'), routeTo([], method), context)), overs];
}

test("getHealth is the pool's (§2.3.4)", async () => {
  expect(await answered('getHealth', { isHealthy: () => true })).toEqual([
    '{"jsonrpc":"2.0","result":"ok","id":"7"}',
    1,
  ]);
  expect(await answered('getHealth', { isHealthy: () => false })).toEqual([
    '{"jsonrpc":"2.0","error":{"code":-32005,"message":"Node is unhealthy"},"id":"7"}',
    1,
  ]);
});

test.each(['getFirstAvailableBlock', 'minimumLedgerSlot'])(
  "%s is the pool's floor (§2.3.4)",
  async (method) => {
    expect(await answered(method, { floor: () => 17 })).toEqual([
      '{"jsonrpc":"2.0","result":17,"id":"7"}',
      1,
    ]);
  },
);

test('while the floor is not known a node is asked for its own, as for every other method', async () => {
  expect(await answered('getFirstAvailableBlock', { floor: () => undefined })).toEqual(['no-backend', 1]);
  expect(await answered('getSlot', { floor: () => 17 })).toEqual(['no-backend', 1]);
});
