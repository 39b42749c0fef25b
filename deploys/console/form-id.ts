const BYTES = 16;
const FORM_ID = /^[\w-]{22}$/;

/** The field that a form's id goes in. */
export const FORM_ID_FIELD = 'once';

/** A name for one form on one page, so that what it asks for is done once, however often it is sent. `random` gives n uniform bytes. */
export function newFormId(random: (bytes: number) => Uint8Array): string {
  return Buffer.from(random(BYTES)).toString('base64url');
}

/** The id of a form that was sent; `undefined`: it has none that was made here. */
export function formIdFrom(form: URLSearchParams): string | undefined {
  const id = form.get(FORM_ID_FIELD);
  return id !== null && FORM_ID.test(id) ? id : undefined;
}
