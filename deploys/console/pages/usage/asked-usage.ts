import { type Dimension, type Measure, MEASURES } from '../../../usage/usage-grid.ts';
import { type Period, periodFrom } from './period.ts';

/** What an address asks of usage. */
export type AskedUsage = Readonly<{
  period: Period;
  by: Dimension;
  measure: Measure;
  /** Of one key or one method alone. */
  keyId: string | undefined;
  method: string | undefined;
}>;

const TEXT_CHARACTERS_MAX = 128;

/** Reads the query; what is not understood is as if it were not there. */
export function askedUsage({ searchParams }: URL): AskedUsage {
  const keyId = textFrom(searchParams.get('key'));
  const method = textFrom(searchParams.get('method'));
  const by = searchParams.get('by');
  return {
    period: periodFrom(searchParams.get('period')),
    by: by === 'method' || by === 'key' ? by : method === undefined ? 'method' : 'key',
    measure: MEASURES.find((name) => name === searchParams.get('show')) ?? 'calls',
    keyId,
    method,
  };
}

function textFrom(text: string | null): string | undefined {
  return text === null || text === '' ? undefined : text.slice(0, TEXT_CHARACTERS_MAX);
}
