/** @jsxImportSource preact */
import { CopyButton } from './copy-button.tsx';
import { Icon } from './icon.tsx';

type SecretBoxProps = Readonly<{
  /** What it is: "API key". */
  name: string;
  secret: string;
  /** How it is kept, and so why nobody can show it again. */
  kept?: string;
}>;

/** A secret on the one page that shows it. */
export function SecretBox({
  name,
  secret,
  kept = 'Only a fingerprint of it is kept, so nobody can show it again.',
}: SecretBoxProps) {
  return (
    <section class="secret-box" aria-label={`${name}, shown once`}>
      <p class="secret-warning">
        <Icon name="alert" />
        <span>
          <strong>Copy it now: it is shown this once.</strong> {kept}
        </span>
      </p>
      <div class="secret-line">
        <code class="secret" id="secret">
          {secret}
        </code>
        <CopyButton of="secret" label={`Copy the ${name}`} />
      </div>
    </section>
  );
}
