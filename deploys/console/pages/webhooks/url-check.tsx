/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import type { Check } from '../../../webhooks/settings.ts';
import type { Action, AskedOfAccount } from '../../context.ts';
import { ownPath } from '../../paths.ts';
import { Icon, type Tone } from '../../components/icons.tsx';
import type { WebhookPageDeps } from '../../page-services.ts';
import { refusalText } from './refusal-text.ts';

/** Characters before a URL is worth a look: "https://a.b". */
const LOOKED_AT_FROM = 11;

/** Says under the field how the URL fares while it is typed. Without JavaScript it is checked when it is sent. */
export function UrlCheck({ path }: Readonly<{ path: string }>) {
  return (
    <div
      id="url-check"
      class="url-check script-only"
      role="status"
      hx-post={ownPath(path)}
      hx-trigger="input changed delay:500ms from:#url"
      hx-include="#url"
      hx-select="#url-check-answer"
      hx-sync="this:replace"
    />
  );
}

/** Checks a URL as the service does when a webhook is made, and makes nothing. POST, because a URL may hold a secret. */
export function urlCheckAction({ webhooks, enter }: WebhookPageDeps): Action<AskedOfAccount> {
  return async function checkUrl({ form, viewer, request, show }) {
    const url = (form.get('url') ?? '').trim();
    const answer = async (): Promise<readonly [Tone, string] | undefined> => {
      if (url.length < LOOKED_AT_FROM) return undefined;
      const entry = enter(viewer.userId);
      if (entry.kind === 'over-rate') return ['warning', refusalText(entry)];
      return toldOf(await webhooks.check({ url }, request.signal));
    };
    const [tone, text] = (await answer()) ?? ['quiet', ''];
    return show({
      title: 'Check of a URL',
      body: (
        <p id="url-check-answer" class={`tone-${tone} told`}>
          {text !== '' && <Icon name={tone === 'good' ? 'check' : 'alert'} />}
          {text}
        </p>
      ),
    });
  };
}

function toldOf(check: Check): readonly [Tone, string] {
  switch (check.kind) {
    case 'checked':
      return ['good', 'https, resolves, and every address is public.'];
    case 'unfit':
      return ['bad', `${check.text}.`];
    case 'unresolved':
      return ['warning', `${check.text}. It may be known in a moment.`];
    default:
      return unreachable(check);
  }
}
