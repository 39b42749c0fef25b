/** @jsxImportSource preact */
import { Icon } from './panels.tsx';

/** Copies the text, or the `data-full`, of the element `of`. It is absent without JavaScript: the text can be selected. */
function copyButton(of: string, label: string) {
  return (
    <button type="button" class="copy script-only" data-copy={of} aria-label={label} title={label}>
      <Icon name="copy" />
    </button>
  );
}

/** A text with an id that is unique on the page, and the label of what it is or of its button. */
type CopiedProps = Readonly<{ id: string; text: string; label: string }>;

/** A line of code or an address, whole, with a copy button. */
export function CopiedCode({ id, text, label }: CopiedProps) {
  return (
    <>
      <code id={id}>{text}</code>
      {copyButton(id, label)}
    </>
  );
}

/** Several lines of code or data, as they are, with a copy button. A keyboard can scroll it. */
export function CodeBlock({ id, text, label }: CopiedProps) {
  return (
    <div class="code-block">
      {copyButton(id, `Copy: ${label}`)}
      <pre id={id} tabindex={0} role="region" aria-label={label}>
        <code>{text}</code>
      </pre>
    </div>
  );
}

/** An address of what `of` names, shortened in the middle, whole in its tooltip and when copied. */
export function ShortAddress({ id, address, of }: Readonly<{ id: string; address: string; of: string }>) {
  return (
    <span class="address">
      <code id={id} data-full={address} title={address}>
        {shortened(address)}
      </code>
      {copyButton(id, `Copy address of ${of}`)}
    </span>
  );
}

const ENDS = 4;

/** `JUP6…TaV4`; a text that is hardly longer stays whole. */
export function shortened(address: string): string {
  if (address.length <= 2 * ENDS + 3) return address;
  return `${address.slice(0, ENDS)}…${address.slice(-ENDS)}`;
}

/** `kept` says how the secret is stored, which is why it cannot be shown again. */
type SecretBoxProps = Readonly<{ name: string; secret: string; kept?: string }>;

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
        {copyButton('secret', `Copy ${name}`)}
      </div>
    </section>
  );
}
