/** @jsxImportSource preact */
import { readFileSync } from 'node:fs';
import type { Secret } from '../../../../shared/secret.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';
import { CodeBlock, SecretBox } from '../../components/code.tsx';
import { Time } from '../../components/format.tsx';
import { ButtonLink } from '../../components/forms.tsx';
import { Panel } from '../../components/panels.tsx';
import type { Content } from '../../page.ts';
import { paths } from '../../paths.ts';
import { crumbsTo } from './webhooks.tsx';

type NewSecret = Readonly<{ webhook: Webhook; secret: Secret; title: string }>;

/** The one page with a webhook's secret: the response to the form that created it, which no cache keeps. */
export function secretContent(accountId: number, { webhook, secret, title }: NewSecret): Content {
  const { nextSecretAtMs } = webhook;
  return {
    title,
    crumbs: crumbsTo(accountId, webhook),
    body: [
      <SecretBox
        name="signing secret"
        secret={secret.reveal()}
        kept="It is stored encrypted and can't be shown again. You can rotate it at any time."
      />,
      nextSecretAtMs !== null && (
        <p>
          It becomes active at <Time atMs={nextSecretAtMs} />. Until then, its signature is sent in{' '}
          <code>X-Service-Signature-Next</code>, alongside the signature of the old secret.
        </p>
      ),
      <div class="buttons">
        <ButtonLink to={paths.webhook(accountId, webhook.id)} kind="primary" text="I have saved it" />
      </div>,
      <Panel title="Verify signatures">
        <p>
          Verify the signature over the raw bytes of the body before parsing it. Use the entire secret,
          including its prefix.
        </p>
        {VERIFIERS.map(([language, code], i) => (
          <details open={i === 0} class="snippet">
            <summary>{language}</summary>
            <CodeBlock id={`verifier-${i}`} label={`Verifier in ${language}`} text={code} />
          </details>
        ))}
      </Panel>,
    ],
  };
}

const PAGE = '../../../../docs/webhooks.md';
/** A heading without its part in brackets, and the first code below it. */
const SECTION = /^### (.+?)(?: \(.*\))?\n(?:(?!###|```).*\n)*```\w+\n([\s\S]*?)```/gm;

/** The verifiers of the page for receivers, whose code runs in the tests. */
const VERIFIERS = (() => {
  const text = readFileSync(new URL(PAGE, import.meta.url), 'utf8');
  const part = text.slice(text.indexOf('\n## Verifiers'));
  return [...part.matchAll(SECTION)].map(
    ([, language = '', code = '']) => [language, code.trimEnd()] as const,
  );
})();
