import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { recordedExchanges, RECORDED_ID } from '../agave/exchanges.ts';
import { startBackend } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';

const recorded = recordedExchanges();
const CALLER_ID = String.raw`"caller \u0022id\"\\"`;

/** What the gateway answers otherwise than the node behind it, by a section of docs/spec.md. */
const BY_RULE: Readonly<Record<string, string>> = {
  // 2.3: the health of the pool
  'getHealth 1': '"result":"ok"',
  // 2.3: what is asked for with its history and not found
  'getSignatureStatuses 4':
    '"error":{"code":-32011,"message":"Transaction history is not available from this node"}',
  // 2.5: no backend serves it
  'getNothing 1': '"error":{"code":-32601,"message":"Method not found"}',
  'getConfirmedBlock 1': '"error":{"code":-32601,"message":"Method not found"}',
};

let backend: ReturnType<typeof startBackend>;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let key: string;
beforeAll(async () => {
  // A recorded node, with the id of the moment in place of the recorded one. The gateway never asks it to search its history.
  const byCall = new Map(
    [...recorded.values()].map(({ request, answer, status }) => [
      callOf(request).replace('"searchTransactionHistory":true', '"searchTransactionHistory":false'),
      { answer, status },
    ]),
  );
  backend = startBackend(({ text, id }) => {
    const exchange = byCall.get(callOf(text));
    if (exchange === undefined) return new Response('not recorded', { status: 500 });
    const { answer, status } = exchange;
    const headers = { 'content-type': 'application/json; charset=utf-8' };
    return new Response(
      answer.replace(`"id":${RECORDED_ID}}`, () => `"id":${id}}`),
      { status, headers },
    );
  });
  gateway = await startGateway({
    backends: [{ name: 'agave', url: backend.url, methods: ['requestAirdrop'] }],
  });
  key = gateway.key();
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await backend[Symbol.asyncDispose]();
});

/** A call without its id: what is left of the request, member by member. */
function callOf(request: string): string {
  const { method } = JSON.parse(request);
  const at = request.indexOf(',"params":');
  return `${method} ${at === -1 ? '' : request.slice(at).replace(/\}\s*$/, '')}`;
}

describe('what Agave 3.1.8 answered passes the gateway to the byte, but for the id', () => {
  test.each([...recorded.values()])('$name', async ({ name, request, answer, status, contentType }) => {
    const response = await gateway.post(
      request.replace(RECORDED_ID, () => CALLER_ID),
      key,
    );
    const own = [response.status, response.headers.get('content-type'), await response.text()];
    const theirs = [status, contentType, answer.replace(`"id":${RECORDED_ID}}`, () => `"id":${CALLER_ID}}`)];
    const member = BY_RULE[name];
    if (member !== undefined) expect(own).not.toEqual(theirs);
    const ours = [200, contentType, `{"jsonrpc":"2.0",${member},"id":${CALLER_ID}}`];
    expect(own).toEqual(member === undefined ? theirs : ours);
  });
});
