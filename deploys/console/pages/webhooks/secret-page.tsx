/** @jsxImportSource preact */
import type { Secret } from '../../../../shared/secret.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';
import type { AskedOfAccount } from '../../context.ts';
import { CodeBlock, SecretBox } from '../../components/code.tsx';
import { ButtonLink, Buttons } from '../../components/forms.tsx';
import { Panel } from '../../components/panels.tsx';
import { Time } from '../../components/format.tsx';
import { webhookPath, webhooksPath } from '../../paths.ts';
import { hostOf } from './shown-webhook.tsx';
import { readVerifiers } from './verifiers.ts';

type Made = Readonly<{ webhook: Webhook; secret: Secret; title: string }>;

const VERIFIERS = readVerifiers();

/** The one page with a webhook's secret: the answer to the form that made it, which no cache keeps. */
export function showSecret({ account, show }: AskedOfAccount, { webhook, secret, title }: Made): Response {
  const { nextSecretAtMs } = webhook;
  return show({
    title,
    crumbs: [
      { label: 'Webhooks', to: webhooksPath(account) },
      { label: hostOf(webhook), to: webhookPath(account, webhook.id) },
    ],
    body: (
      <>
        <SecretBox
          name="signing secret"
          secret={secret.reveal()}
          kept="It is kept sealed, to sign with, and no page can show it again. A new one can be made at any time."
        />
        {nextSecretAtMs !== null && (
          <p>
            It takes over at <Time atMs={nextSecretAtMs} />. Until then it signs in{' '}
            <code>X-Service-Signature-Next</code>, beside the old one.
          </p>
        )}
        <Buttons>
          <ButtonLink to={webhookPath(account, webhook.id)} kind="primary">
            I have stored it
          </ButtonLink>
        </Buttons>
        <Panel title="Verify what arrives">
          <p>
            Check the signature over the raw bytes of the body before you parse it. The secret is used whole,
            prefix included.
          </p>
          {VERIFIERS.map(({ language, code }, i) => (
            <details key={language} open={i === 0} class="snippet">
              <summary>{language}</summary>
              <CodeBlock id={`verifier-${i}`} label={`Verifier in ${language}`} text={code} />
            </details>
          ))}
        </Panel>
      </>
    ),
  });
}
