import type { Encoding } from './asset.ts';

/** The smallest encoding that an `Accept-Encoding` takes (RFC 9110 12.5.3); what has `q=0` is not taken. */
export function encodingFor(acceptEncoding: string | null): Encoding {
  const weights = new Map((acceptEncoding ?? '').split(',').map(weightOf));
  const takes = (name: string) => (weights.get(name) ?? weights.get('*') ?? 0) > 0;
  if (takes('br')) return 'br';
  return takes('gzip') ? 'gzip' : 'identity';
}

function weightOf(item: string): readonly [name: string, weight: number] {
  const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase());
  const q = parameters.find((parameter) => parameter.startsWith('q='));
  const weight = q === undefined ? 1 : Number(q.slice(2));
  return [name, Number.isNaN(weight) ? 0 : weight];
}
