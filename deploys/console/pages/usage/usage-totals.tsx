/** @jsxImportSource preact */
import type { Counts } from '../../../usage/report.ts';
import { bytesText, countText, shareText } from '../../components/format.tsx';
import { Stats } from '../../components/panels.tsx';

/** Everything of a time together. */
export function UsageTotals({ total }: Readonly<{ total: Counts }>) {
  const { calls, credits, refunded, errors, refused, bytesOut } = total;
  return (
    <Stats
      stats={[
        { label: 'Requests', value: countText(calls) },
        { label: 'Credits', value: countText(credits - refunded) },
        {
          label: 'Errors',
          value: countText(errors),
          note: calls === 0 ? undefined : `${shareText(errors / calls)} of requests`,
        },
        {
          label: 'Refused',
          value: countText(refused),
          note: calls + refused === 0 ? undefined : `${shareText(refused / (calls + refused))} of all`,
        },
        { label: 'Sent', value: bytesText(bytesOut) },
      ]}
    />
  );
}
