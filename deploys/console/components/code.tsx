/** @jsxImportSource preact */
import { Icon } from './panels.tsx';

type CopyButtonProps = Readonly<{
  /** The id of the element whose text is copied, or its `data-full`. */
  of: string;
  label: string;
}>;

/** Copies the text of an element. Without JavaScript it is not there: the text can be selected. */
function CopyButton({ of, label }: CopyButtonProps) {
  return (
    <button type="button" class="copy script-only" data-copy={of} aria-label={label} title={label}>
      <Icon name="copy" />
    </button>
  );
}

type CopiedCodeProps = Readonly<{
  /** Unique on the page. */
  id: string;
  text: string;
  /** What the button does: "Copy the endpoint". */
  label: string;
}>;

/** A line of code or an address, whole, with a copy button. */
export function CopiedCode({ id, text, label }: CopiedCodeProps) {
  return (
    <>
      <code id={id}>{text}</code>
      <CopyButton of={id} label={label} />
    </>
  );
}

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
      <CopyButton of={id} label={`Copy address of ${of}`} />
    </span>
  );
}

/** `JUP6…TaV4`; a text that is hardly longer stays whole. */
export function shortened(address: string): string {
  if (address.length <= 2 * ENDS + 3) return address;
  return `${address.slice(0, ENDS)}…${address.slice(-ENDS)}`;
}

type SecretBoxProps = Readonly<{
  /** What it is: "API key". */
  name: string;
  secret: string;
  /** How it is stored, which is why it cannot be shown again. */
  kept?: string;
}>;

/** A secret on the one page that shows it. */
export function SecretBox({ name, secret, kept = 'We store only a hash.' }: SecretBoxProps) {
  return (
    <section class="secret-box" aria-label={`${name}, shown once`}>
      <p class="secret-warning">
        <Icon name="alert" />
        <span>
          <strong>Copy it now. You won't see it again.</strong> {kept}
        </span>
      </p>
      <div class="secret-line">
        <code class="secret" id="secret">
          {secret}
        </code>
        <CopyButton of="secret" label={`Copy ${name}`} />
      </div>
    </section>
  );
}
