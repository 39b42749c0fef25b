import { ownPath, paths } from './paths.ts';

/** The short messages after a change. A page's own change adds its row here; the address carries the code, never a text. */
const FLASHES = {
  saved: 'Saved.',
  'account-created': 'The account was created.',
  'account-suspended': 'The account is suspended. Its keys stop working within a second.',
  'account-resumed': 'The account works again.',
  'credits-added': 'The credits were added.',
  'plan-changed': 'The plan was changed.',
  'user-created': 'The user was added.',
  'user-password': 'The user has a new password. Every session has ended.',
  'user-signed-out': 'Every session of the user has ended.',
  'user-second-factor-off': 'The second factor of the user is off.',
  'user-removed': 'The login was removed.',
  'key-created': 'The key was created.',
  'key-renamed': 'The key was renamed.',
  'key-rotated': 'The key was rotated.',
  'key-revoked': 'The key is revoked. It stops working within a second.',
  'webhook-saved': 'The webhook was saved.',
  'webhook-paused': 'The webhook is paused. Its events are recorded as skipped.',
  'webhook-resumed': 'The webhook is active again.',
  'webhook-deleted': 'The webhook was deleted.',
  'secret-rotated': 'The rotation of the secret has begun.',
  'rotation-completed': 'The new secret is in force.',
  'rotation-cancelled': 'The rotation was cancelled.',
  'delivery-resent': 'The delivery is queued to be sent again.',
  'deliveries-resent': 'The failed deliveries are queued to be sent again.',
  'test-queued': 'The test is queued. This page shows how it ends.',
  'webhook-made-before':
    'This form was sent before, and nothing was done again. Its secret is not shown a second time.',
  'password-changed': 'The password was changed. Every other session has ended.',
  'sessions-ended': 'Every other session has ended.',
  'second-factor-off': 'The second factor is off.',
} as const;

/** A message's name in an address (`?done=saved`). */
export type FlashCode = keyof typeof FLASHES;

/** The message of an address's code; `undefined` for an unknown one. */
export function flashOf(code: string | null): string | undefined {
  return code !== null && Object.hasOwn(FLASHES, code) ? FLASHES[code as FlashCode] : undefined; // just looked up
}

/**
 * Sends the browser to a page of the console (303), where the message of `flash` is shown once. A path that leads
 * elsewhere sends to the first page.
 */
export function redirect(path: string, flash?: FlashCode, cookies: readonly string[] = []): Response {
  return seeOther(withFlash(ownPath(path) ?? paths.start, flash), cookies);
}

/** Sends the browser to another origin, such as an identity provider. */
export function redirectAway(to: URL, cookies: readonly string[]): Response {
  return seeOther(to.href, cookies);
}

function seeOther(location: string, cookies: readonly string[]): Response {
  const headers = new Headers({ location });
  for (const cookie of cookies) headers.append('set-cookie', cookie);
  return new Response(null, { status: 303, headers });
}

function withFlash(path: string, flash: FlashCode | undefined): string {
  if (flash === undefined) return path;
  const [before = '', after] = path.split('#', 2);
  const joint = before.includes('?') ? '&' : '?';
  return `${before}${joint}done=${flash}${after === undefined ? '' : `#${after}`}`;
}
