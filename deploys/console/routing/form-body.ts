import type { Clock } from '../../../shared/clock.ts';

const FORM_TYPE = 'application/x-www-form-urlencoded';
/** How long the body of a form may take to arrive; one of 64 KiB needs moments on any line. */
const FORM_MS = 15_000;

/** What came with a POST: the fields of a form, something else, or nothing whole within `FORM_MS`. */
export type FormBody =
  | { readonly kind: 'form'; readonly form: URLSearchParams }
  | { readonly kind: 'no-form' }
  | { readonly kind: 'too-slow' };

/** Reads a posted form. The listener bounds its size. Rejects when the connection ends before the form does. */
export async function formFrom(request: Request, { sleep }: Pick<Clock, 'sleep'>): Promise<FormBody> {
  const type = request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== FORM_TYPE) return { kind: 'no-form' };
  const read = new AbortController();
  const late = sleep(FORM_MS, read.signal).then(() => undefined);
  try {
    const text = await Promise.race([request.text(), late]);
    return text === undefined ? { kind: 'too-slow' } : { kind: 'form', form: new URLSearchParams(text) };
  } finally {
    read.abort();
  }
}
