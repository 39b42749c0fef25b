/** @jsxImportSource preact */
import { CopyButton } from './copy-button.tsx';

type CodeBlockProps = Readonly<{
  /** Unique on the page. */
  id: string;
  /** What it is, read out: "Request headers". */
  label: string;
  text: string;
}>;

/** Several lines of code or data, as they are, with a copy button. A keyboard can scroll it. */
export function CodeBlock({ id, label, text }: CodeBlockProps) {
  return (
    <div class="code-block">
      <CopyButton of={id} label={`Copy: ${label}`} />
      <pre id={id} tabindex={0} role="region" aria-label={label}>
        <code>{text}</code>
      </pre>
    </div>
  );
}

/** Characters kept at each end of an address. */
const ENDS = 4;

type AddressProps = Readonly<{
  /** Unique on the page. */
  id: string;
  address: string;
  /** What it is the address of, for the button's label. */
  of: string;
}>;

/** An address shortened in the middle, whole in its tooltip and when copied. */
export function ShortAddress({ id, address, of }: AddressProps) {
  return (
    <span class="address">
      <code id={id} data-full={address} title={address}>
        {shortened(address)}
      </code>
      <CopyButton of={id} label={`Copy the address of ${of}`} />
    </span>
  );
}

/** `JUP6…TaV4`; a text that is hardly longer stays whole. */
export function shortened(address: string): string {
  if (address.length <= 2 * ENDS + 3) return address;
  return `${address.slice(0, ENDS)}…${address.slice(-ENDS)}`;
}
