import type { FlashCode } from './page/flash.ts';
import { ownPath } from './own-path.ts';

/**
 * Sends the browser to a page of the console after a change (303), where the message of `flash` is shown once.
 * A path that leads elsewhere sends to the first page.
 */
export function seeOther(path: string, flash?: FlashCode): Response {
  return new Response(null, { status: 303, headers: { location: withFlash(ownPath(path) ?? '/', flash) } });
}

function withFlash(path: string, flash: FlashCode | undefined): string {
  if (flash === undefined) return path;
  const [before = '', after] = path.split('#', 2);
  const joint = before.includes('?') ? '&' : '?';
  return `${before}${joint}done=${flash}${after === undefined ? '' : `#${after}`}`;
}
