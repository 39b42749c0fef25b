import { unreachable } from '../../../shared/brand.ts';
import type { Busy } from '../hashing.ts';
import type { TooMany } from '../login.ts';

/**
 * Why a form comes back: what to say, at which of its fields if at one, with which status, and when to try again (whole
 * seconds).
 */
export type FormRefusal = Readonly<{
  sentence: string;
  status: number;
  field?: string | undefined;
  retryAfterSeconds?: number;
}>;

/** Why it is not tried at all. */
export function notTried(result: TooMany | Busy): FormRefusal {
  switch (result.kind) {
    case 'too-many': {
      const { retryAfterSeconds } = result;
      const wait =
        retryAfterSeconds < 120
          ? `${retryAfterSeconds} seconds`
          : `${Math.ceil(retryAfterSeconds / 60)} minutes`;
      return { sentence: `Too many attempts. Try again in ${wait}.`, status: 429, retryAfterSeconds };
    }
    case 'busy':
      return {
        sentence: 'Too many people log in at this moment. Try again in a few seconds.',
        status: 503,
        retryAfterSeconds: 2,
      };
    default:
      return unreachable(result);
  }
}

/** The answer with the refusal's status and `Retry-After`. */
export function refused(response: Response, { retryAfterSeconds }: FormRefusal): Response {
  if (retryAfterSeconds !== undefined) response.headers.set('retry-after', String(retryAfterSeconds));
  return response;
}

/** What is said at a field. */
export function errorAt(refusal: FormRefusal | undefined, field: string): string | undefined {
  return refusal?.field === field ? refusal.sentence : undefined;
}

/** What is said of the form as a whole. */
export function errorOfForm(refusal: FormRefusal | undefined): string | undefined {
  return refusal?.field === undefined ? refusal?.sentence : undefined;
}
