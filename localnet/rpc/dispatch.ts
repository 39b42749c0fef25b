import type { Chain } from '../chain/chain.ts';
import type { Json } from '../json/value.ts';
import { METHODS } from '../methods/table.ts';
import { errorAnswer, resultAnswer, type Answer } from './answer.ts';
import type { Element } from './envelope.ts';
import { RpcFailure } from './failure.ts';
import { positional } from './params.ts';
import { unreachable } from '../../shared/brand.ts';

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
