/** @jsxImportSource preact */
import type { Webhook } from '../../../webhooks/webhook.ts';
import { Badge } from '../../components/icons.tsx';
import { Ago } from '../../components/format.tsx';

/** How a webhook stands, at a glance; a rotation may wait beside any state. */
export function WebhookState({ webhook, nowMs }: Readonly<{ webhook: Webhook; nowMs: number }>) {
  return (
    <span class="badges">
      <MainState webhook={webhook} nowMs={nowMs} />
      {webhook.nextSecretAtMs !== null && <Badge tone="waiting">rotation pending</Badge>}
    </span>
  );
}

function MainState({ webhook, nowMs }: Readonly<{ webhook: Webhook; nowMs: number }>) {
  const { pausedAtMs, failingSinceMs } = webhook;
  if (pausedAtMs !== null)
    return (
      <Badge tone="quiet" icon="pause">
        paused
      </Badge>
    );
  if (failingSinceMs === null) return <Badge tone="good">healthy</Badge>;
  return (
    <Badge tone="bad">
      failing, began <Ago atMs={failingSinceMs} nowMs={nowMs} />
    </Badge>
  );
}

/** A webhook's URL as text, its host in bold. It is never a link: it is for a machine. */
export function WebhookUrl({ url }: Readonly<{ url: string }>) {
  const { protocol, host, pathname, search } = new URL(url);
  return (
    <span class="url">
      {protocol}
      {'//'}
      <strong>{host}</strong>
      {pathname === '/' && search === '' ? '' : `${pathname}${search}`}
    </span>
  );
}

/** The host of a webhook, by which people know it. */
export function hostOf({ url }: Pick<Webhook, 'url'>): string {
  return new URL(url).host;
}

/** Which programs a webhook wants, in a few words; `labelOf` names an address. */
export function programsText(
  { programs }: Pick<Webhook, 'programs'>,
  labelOf: (address: string) => string,
): string {
  if (programs === null) return 'all programs';
  const [first = '', second] = programs;
  if (programs.length === 1) return labelOf(first);
  return programs.length === 2 && second !== undefined
    ? `${labelOf(first)}, ${labelOf(second)}`
    : `${labelOf(first)} and ${programs.length - 1} more`;
}
