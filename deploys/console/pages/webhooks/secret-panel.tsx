/** @jsxImportSource preact */
import type { Takeover } from '../../../webhooks/rotate.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';
import { Buttons, PostForm, RadioFields, Submit } from '../../components/forms.tsx';
import { Panel } from '../../components/panels.tsx';
import { Ago, Time } from '../../components/format.tsx';

/** Every choice, the calmest first. */
export const TAKEOVER_NAMES: readonly Takeover[] = ['24h', '1h', 'now'];
const CHOICES: Readonly<Record<Takeover, readonly [label: string, hint: string]>> = {
  '24h': ['In 24 hours', 'Swap the secret in your receiver at any time until then.'],
  '1h': ['In an hour', 'The same, in less time.'],
  now: ['Now', 'After a leak. What your receiver refuses in the meantime is tried again.'],
};

/** The secret of a webhook: a new one in stages, and what can be done while one waits. */
export function SecretPanel({
  webhook,
  path,
  nowMs,
}: Readonly<{ webhook: Webhook; path: string; nowMs: number }>) {
  const { nextSecretAtMs } = webhook;
  if (nextSecretAtMs !== null)
    return (
      <Panel title="Signing secret" id="secret-panel">
        <p>
          A new secret takes over at <Time atMs={nextSecretAtMs} />,{' '}
          <Ago atMs={nextSecretAtMs} nowMs={nowMs} />. Until then both sign, the new one in{' '}
          <code>X-Service-Signature-Next</code>.
        </p>
        <div class="buttons">
          <PostForm action={`${path}/rotation/switch`} isInline label="Take over now">
            <Submit>Take over now</Submit>
          </PostForm>
          <PostForm action={`${path}/rotation/cancel`} isInline label="Cancel the rotation">
            <Submit>Cancel the rotation</Submit>
          </PostForm>
        </div>
      </Panel>
    );
  return (
    <Panel title="Signing secret" id="secret-panel">
      <PostForm action={`${path}/rotation`} label="Rotate the secret">
        <RadioFields
          name="takes-over"
          legend="A new secret takes over"
          value="24h"
          options={TAKEOVER_NAMES.map((value) => ({
            value,
            label: CHOICES[value][0],
            hint: CHOICES[value][1],
          }))}
        />
        <Buttons>
          <Submit>Rotate the secret</Submit>
        </Buttons>
        <input type="hidden" name="seen" value={webhook.updatedAtMs} />
      </PostForm>
    </Panel>
  );
}
