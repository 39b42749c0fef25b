/** @jsxImportSource preact */
import type { KeyRow, KeyState } from '../../../accounts/key-row.ts';
import { Badge, type Tone } from '../../components/icons.tsx';

/** Why a name of a key is refused. */
export const BAD_KEY_NAME = 'A name is 1 to 64 printable characters without a space at either end.';
/** Why a form that was not made here, or was changed on its way, is refused. */
export const STALE_FORM =
  'This form is not from this page any more. Open the page again and send it once more.';

const STATES: Readonly<Record<KeyState, readonly [Tone, string]>> = {
  active: ['good', 'Active'],
  expiring: ['warning', 'Ends soon'],
  expired: ['quiet', 'Ended'],
  revoked: ['bad', 'Revoked'],
};

/** Where a key stands, in words. */
export function KeyBadge({ state }: Readonly<{ state: KeyState }>) {
  const [tone, word] = STATES[state];
  return <Badge tone={tone}>{word}</Badge>;
}

/** All that is kept of a key's text. */
export function KeyEnds({ row: { prefix, last4 } }: Readonly<{ row: Pick<KeyRow, 'prefix' | 'last4'> }>) {
  return (
    <code class="nowrap">
      {prefix}…{last4}
    </code>
  );
}
