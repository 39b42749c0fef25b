import type { Json } from '../../localnet/json/value.ts';
import { isJsonArray, isJsonObject } from '../../localnet/json/value.ts';

/** What an answer says but for what each chain has of its own: numbers, characters, and what looks like an address or a hash. */
export function masked(text: string): string {
  return text
    .replaceAll(/"[1-9A-HJ-NP-Za-km-z]{32,88}"/g, '"KEY"')
    .replaceAll(/'.'/g, "'C'")
    .replaceAll(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi, 'N');
}

const KEY = /^[1-9A-HJ-NP-Za-km-z]{32,88}$/;

/**
 * The shape of a value: members in their order, the kinds of leaves, and each different element of an array once. Two
 * nodes of one version give the same shape for the same question, whatever their chains hold.
 */
export function shapeOf(value: Json): string {
  if (isJsonArray(value)) return `[${[...new Set(value.map(shapeOf))].toSorted().join(' | ')}]`;
  if (isJsonObject(value)) {
    const members = Object.entries(value).map(
      ([name, part]) => `${KEY.test(name) ? 'KEY' : name}: ${shapeOf(part ?? null)}`,
    );
    return `{${[...new Set(members)].join(', ')}}`;
  }
  if (typeof value === 'string') return KEY.test(value) ? 'key' : 'text';
  if (typeof value === 'bigint') return 'integer';
  return value === null ? 'null' : typeof value;
}

/** The shape of an answer: of an error its code, and its message but for its numbers. */
export function answerShape(answer: Json): string {
  if (!isJsonObject(answer)) return shapeOf(answer);
  const { error, result } = answer;
  if (!isJsonObject(error)) return shapeOf(result ?? null);
  const { code, message, data } = error;
  const more = data === undefined ? '' : ` ${shapeOf(data)}`;
  return `${String(code)} ${masked(String(message))}${more}`;
}
