import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A call and its answer, as a node's callers see them; what a node answers is UTF-8. */
export type Exchange = Readonly<{
  name: string;
  request: string;
  status: number;
  contentType: string | null;
  answer: string;
}>;

/** The id that recorded calls have. */
export const RECORDED_ID = '"compare 7"';

/** The Agave that was recorded, which a test validator of that version says of itself in `getVersion`. */
export const RECORDED_VERSION = '3.1.8';

/** What a test validator answered to each call of `questions.ts`, by its name. */
export function recordedExchanges(): ReadonlyMap<string, Exchange> {
  const path = join(import.meta.dir, `../fixtures/agave/${RECORDED_VERSION}.ndjson`);
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return new Map(
    lines.map((line): [string, Exchange] => {
      const exchange: Exchange = JSON.parse(line);
      return [exchange.name, exchange];
    }),
  );
}
