import type { AccountContext } from '../../context.ts';
import type { AccountServices } from '../../page-services.ts';
import { hoursOf, showBusy, usageQueryOf } from './usage.tsx';
import { UNITS } from '../../../usage/calendar.ts';
import { CSV_HEAD, csvLine, type Used } from '../../../usage/read-usage.ts';
import type { Reader } from '../../../usage/usage-view.ts';

/** The rows behind the page of usage, in the columns of `sluice usage --format csv`. */
export function usageCsv({ readUsed, turns }: AccountServices, context: AccountContext): Response {
  const { account, viewer, url, nowMs, request } = context;
  const { period, keyId, method } = usageQueryOf(url);
  const hours = hoursOf(period, nowMs);
  const isWanted = (used: Used) =>
    (keyId === undefined || used.key_id === keyId) && (method === undefined || used.method === method);
  const lines = linesOf(readUsed(hours, account.id), isWanted, account.name);
  const dayOf = (hour: number) => UNITS.day.text(UNITS.day.of(hour));
  const file = `usage-${dayOf(hours.fromHour)}-to-${dayOf(hours.toHour - 1)}.csv`;
  const headers = {
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': `attachment; filename="${file}"`,
  };
  if (request.method === 'HEAD') return new Response(null, { headers });
  const reader = turns.enter(viewer.userId);
  if (reader === undefined) return showBusy(context);
  return new Response(streamed(lines, reader, request.signal), { headers });
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
function streamed(lines: Generator<string>, reader: Reader, signal: AbortSignal): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let isOver = false;
  const end = () => {
    if (!isOver) reader.leave();
    isOver = true;
  };
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
  return new ReadableStream({
    async pull(controller) {
      try {
        for (;;) {
          await reader.turn(signal);
          const { done, value } = isOver ? { done: true, value: '' } : lines.next();
          if (done) {
            end();
            return controller.close();
          }
          if (value === '') continue;
          controller.enqueue(encoder.encode(value));
          return;
        }
      } catch (error) {
        end();
        throw error;
      }
    },
    cancel() {
      end();
      lines.return(undefined);
    },
  });
}
