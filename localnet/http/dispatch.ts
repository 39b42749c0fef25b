import { unreachable } from '../../shared/brand.ts';
import type { Chain } from '../chain/chain.ts';
import { type Json, printJson, printJsonPieces } from '../json/value.ts';
import { ACCOUNT_METHODS } from '../methods/account.ts';
import { CLUSTER_METHODS } from '../methods/cluster.ts';
import { HISTORY_METHODS } from '../methods/history.ts';
import type { Method, MethodResult, ScanResult } from '../methods/method.ts';
import { SEND_METHODS } from '../methods/send.ts';
import { TOKEN_METHODS } from '../methods/token.ts';
import { VALIDATOR_METHODS } from '../methods/validator.ts';
import type { Element } from '../request/envelope.ts';
import { positional, type RpcError, RpcFailure } from '../request/params.ts';

/** Logs what no call should cause. */
export type OnFault = (cause: unknown) => void;

/** Makes `dispatch`, which answers one element of a body; notifications are neither carried out nor answered. */
export function createDispatch(chain: Chain, onFault: OnFault) {
  return function dispatch(element: Exclude<Element, { kind: 'notification' }>): Answer {
    switch (element.kind) {
      case 'invalid':
        return errorAnswer({ code: -32600, message: 'Invalid request' }, element.idText);
      case 'unversioned':
        return errorAnswer(
          { code: -32600, message: 'Unsupported JSON-RPC protocol version' },
          element.idText,
          false,
        );
      case 'call':
        return call(element.method, element.params, element.idText);
      default:
        return unreachable(element);
    }
  };

  function call(method: string, params: Json, idText: string): Answer {
    const entry = METHODS.get(method);
    if (entry === undefined) return errorAnswer({ code: -32601, message: 'Method not found' }, idText);
    try {
      return resultAnswer(entry.answer(chain, positional(params, entry.required, entry.optional)), idText);
    } catch (cause) {
      if (cause instanceof RpcFailure) return errorAnswer(cause.error, idText);
      onFault(cause);
      return errorAnswer({ code: -32603, message: 'Internal error' }, idText);
    }
  }
}

/** The answer to one call, in order of writing. */
export type Answer = Readonly<{ head: string; result: Omit<ScanResult, 'kind'>; tail: string }>;

const NOTHING_HELD = (): void => {};

/** The envelope around a result: jsonrpc, result, id, in this order. `idText` is the id's JSON. */
function resultAnswer(result: MethodResult, idText: string): Answer {
  const head = '{"jsonrpc":"2.0","result":';
  const tail = `,"id":${idText}}`;
  if (result.kind === 'pieces') return { head, result, tail };
  return { head, result: { pieces: printJsonPieces(result.value), release: NOTHING_HELD }, tail };
}

/** The envelope around an error. Agave leaves `jsonrpc` out when the call did (`isVersioned` false). */
export function errorAnswer(error: RpcError, idText: string, isVersioned = true): Answer {
  const data = error.data === undefined ? '' : `,"data":${printJson(error.data)}`;
  const text = `{${isVersioned ? '"jsonrpc":"2.0",' : ''}"error":{"code":${error.code},"message":${JSON.stringify(error.message)}${data}},"id":${idText}}`;
  return { head: text, result: { pieces: [], release: NOTHING_HELD }, tail: '' };
}

/** Every method by name. What is not here is -32601. */
const METHODS: ReadonlyMap<string, Method> = new Map(
  Object.entries({
    ...CLUSTER_METHODS,
    ...ACCOUNT_METHODS,
    ...TOKEN_METHODS,
    ...VALIDATOR_METHODS,
    ...SEND_METHODS,
    ...HISTORY_METHODS,
  }),
);
