import { unreachable } from '../../shared/brand.ts';
import type { Chain } from '../chain/chain.ts';
import { printJson, printJsonPieces } from '../json/value.ts';
import { ACCOUNT_METHODS } from '../methods/account.ts';
import { CLUSTER_METHODS } from '../methods/cluster.ts';
import { HISTORY_METHODS } from '../methods/history.ts';
import type { Method } from '../methods/method.ts';
import { SEND_METHODS } from '../methods/send.ts';
import { TOKEN_METHODS } from '../methods/token.ts';
import { VALIDATOR_METHODS } from '../methods/validator.ts';
import type { Element } from '../request/envelope.ts';
import { positional, type RpcError, RpcFailure } from '../request/params.ts';

/** Logs what no call should cause. */
export type OnFault = (cause: unknown) => void;

/** Carries out one element of a body; its answer in pieces, in order of writing. */
export type Dispatch = (element: Element) => Iterable<string>;

export function createDispatch(chain: Chain, onFault: OnFault): Dispatch {
  return function dispatch(element) {
    const { kind, idText } = element;
    switch (kind) {
      case 'invalid':
        return [errorText({ code: -32600, message: 'Invalid request' }, idText)];
      case 'unversioned':
        return [errorText({ code: -32600, message: 'Unsupported JSON-RPC protocol version' }, idText, '')];
      case 'call':
        return call(element);
      default:
        return unreachable(kind);
    }
  };

  function call({ method, params, idText }: Extract<Element, { kind: 'call' }>): Iterable<string> {
    const entry = METHODS.get(method);
    if (entry === undefined) return [errorText({ code: -32601, message: 'Method not found' }, idText)];
    try {
      const result = entry.answer(chain, positional(params, entry.required, entry.optional));
      return printJsonPieces(result, '{"jsonrpc":"2.0","result":', `,"id":${idText}}`);
    } catch (cause) {
      if (cause instanceof RpcFailure) return [errorText(cause.error, idText)];
      onFault(cause);
      return [errorText({ code: -32603, message: 'Internal error' }, idText)];
    }
  }
}

/** The envelope around an error; `idText` is the id's JSON. Agave leaves the version out when the call did. */
export function errorText(error: RpcError, idText: string, version = '"jsonrpc":"2.0",'): string {
  const data = error.data === undefined ? '' : `,"data":${printJson(error.data)}`;
  return `{${version}"error":{"code":${error.code},"message":${JSON.stringify(error.message)}${data}},"id":${idText}}`;
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
