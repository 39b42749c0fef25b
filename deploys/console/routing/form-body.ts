const FORM_TYPE = 'application/x-www-form-urlencoded';

/** The fields of a posted form; `undefined` when the body is something else. The listener bounds its size. */
export async function formFrom(request: Request): Promise<URLSearchParams | undefined> {
  const type = request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== FORM_TYPE) return undefined;
  return new URLSearchParams(await request.text());
}
