import type { Clock } from '../../../../shared/clock.ts';
import type { AskedOfAccount, Page } from '../../asked.ts';
import type { PageDeps } from '../../page-deps.ts';
import { dayText } from '../../../usage/calendar.ts';
import type { Used } from '../../../usage/read-usage.ts';
import { CSV_HEAD, csvLine } from '../../../usage/usage-csv.ts';
import { askedUsage } from './asked-usage.ts';
import { hoursOf } from './period.ts';

/** Between two parts of a file everything else here has its turn. */
const PAUSE_MS = 1;

/** `/usage.csv`: the rows behind the page of usage, in the columns of `sluice usage --format csv`. */
export function createUsageCsv({
  readUsed,
  clock,
}: Pick<PageDeps, 'readUsed' | 'clock'>): Page<AskedOfAccount> {
  return function usageCsv({ account, url, nowMs, request }) {
    const { period, keyId, method } = askedUsage(url);
    const hours = hoursOf(period, nowMs);
    const isWanted = (used: Used) =>
      (keyId === undefined || used.keyId === keyId) && (method === undefined || used.method === method);
    const lines = linesOf(readUsed(hours, account.id), isWanted, account.name);
    const file = `usage-${dayText(Math.floor(hours.fromHour / 24))}-to-${dayText(Math.floor((hours.toHour - 1) / 24))}.csv`;
    return new Response(request.method === 'HEAD' ? null : streamed(lines, clock, request.signal), {
      headers: {
        'content-type': 'text/csv; charset=utf-8',
        'content-disposition': `attachment; filename="${file}"`,
      },
    });
  };
}

function* linesOf(
  pages: Iterable<readonly Used[]>,
  isWanted: (used: Used) => boolean,
  account: string,
): Generator<string> {
  yield CSV_HEAD;
  for (const page of pages)
    yield page
      .filter(isWanted)
      .map((used) => csvLine(used, account))
      .join('');
}

/** One part at a time, as the caller takes them. */
function streamed(lines: Generator<string>, clock: Clock, signal: AbortSignal): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const { done, value } = lines.next();
        if (done) return controller.close();
        await clock.sleep(PAUSE_MS, signal);
        if (signal.aborted) return controller.close();
        if (value === '') continue;
        controller.enqueue(encoder.encode(value));
        return;
      }
    },
    cancel: () => void lines.return(undefined),
  });
}
