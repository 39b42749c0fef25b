/** @jsxImportSource preact */
import type { Asked } from '../../context.ts';
import { Notice } from '../../components/icons.tsx';

const RETRY_SECONDS = 2;

/** Said instead of usage to a user who reads it in as many places as there may be. */
export function showBusy({ show }: Pick<Asked, 'show'>): Response {
  const response = show({
    title: 'Usage',
    status: 503,
    body: (
      <Notice tone="warning">
        You are reading usage in many windows at once. Reload this one in a moment.
      </Notice>
    ),
  });
  response.headers.set('retry-after', String(RETRY_SECONDS));
  return response;
}
