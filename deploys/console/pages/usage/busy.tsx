/** @jsxImportSource preact */
import type { Asked } from '../../asked.ts';
import { Notice } from '../../page/notice.tsx';

/** Said instead of usage while as many as there may be read it. */
export function showBusy({ show }: Pick<Asked, 'show'>): Response {
  return show({
    title: 'Usage',
    status: 503,
    body: (
      <Notice tone="warning">
        The usage of this account is being read in many windows at once. Reload this one in a moment.
      </Notice>
    ),
  });
}
