/** @jsxImportSource preact */
import { unreachable } from '../../shared/brand.ts';
import { Link } from './components/links.tsx';
import { Empty } from './components/panels.tsx';
import type { Content } from './context.ts';

/** Every no of the console itself. None says more than the viewer may know. */
export type RouteRefusal =
  | { readonly kind: 'not-found' }
  | { readonly kind: 'wrong-method'; readonly allow: string }
  | { readonly kind: 'other-origin' }
  | { readonly kind: 'no-form' }
  | { readonly kind: 'too-slow' }
  /** Too many changes by one user. */
  | { readonly kind: 'too-many'; readonly retryAfterSeconds: number }
  | { readonly kind: 'broken' };

/** HTTP status of a refusal. */
export function statusOf(refusal: RouteRefusal): number {
  switch (refusal.kind) {
    case 'not-found':
      return 404;
    case 'wrong-method':
      return 405;
    case 'other-origin':
      return 403;
    case 'no-form':
      return 415;
    case 'too-slow':
      return 408;
    case 'too-many':
      return 429;
    case 'broken':
      return 500;
    default:
      return unreachable(refusal);
  }
}

/** A refusal as a page. */
export function refusalContent(refusal: RouteRefusal): Content {
  const [title, sentence] = wordsOf(refusal);
  return {
    title,
    status: statusOf(refusal),
    body: (
      <Empty title={sentence}>
        <Link to="/">Go to the first page</Link>
      </Empty>
    ),
  };
}

function wordsOf(refusal: RouteRefusal): readonly [title: string, sentence: string] {
  switch (refusal.kind) {
    case 'not-found':
      return ['Not found', 'There is nothing here, or it is not yours to see.'];
    case 'wrong-method':
      return ['That cannot be done here', 'This address does not take that kind of request.'];
    case 'other-origin':
      return [
        'Refused',
        'This form did not come from the console, so nothing was changed. Open the page here and send it again.',
      ];
    case 'no-form':
      return ['Refused', 'This address takes forms only. Nothing was changed.'];
    case 'too-slow':
      return ['Not received', 'The form took too long to arrive. Nothing was changed. Send it again.'];
    case 'too-many':
      return [
        'Too many changes',
        `You changed much in a short time, so nothing was changed now. Send the form again in ${refusal.retryAfterSeconds} s.`,
      ];
    case 'broken':
      return [
        'Something went wrong',
        'The page could not be made. The reason is in the log of the service. Try again in a moment.',
      ];
    default:
      return unreachable(refusal);
  }
}
