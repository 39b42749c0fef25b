/** @jsxImportSource preact */
import { Link } from './components/links.tsx';
import { Empty } from './components/panels.tsx';
import type { Content } from './context.ts';
import { paths } from './paths.ts';

/** Why the console itself rejects a request. None reveals more than the viewer may know. */
export type RouteRefusal =
  | { readonly kind: 'not-found' | 'other-origin' | 'no-form' | 'too-slow' | 'broken' }
  | { readonly kind: 'wrong-method'; readonly allow: string }
  /** Too many changes by one user. */
  | { readonly kind: 'too-many'; readonly retryAfterSeconds: number };

const TEXTS: Readonly<Record<RouteRefusal['kind'], readonly [status: number, title: string, text: string]>> =
  {
    'not-found': [404, 'Not found', 'Page not found, or no access.'],
    'wrong-method': [405, 'Method not allowed', 'This address does not support this method.'],
    'other-origin': [
      403,
      'Rejected',
      'This form did not come from the console. Nothing was changed. Open the page again and resubmit it.',
    ],
    'no-form': [415, 'Rejected', 'This address accepts only forms. Nothing was changed.'],
    'too-slow': [
      408,
      'Request timeout',
      'The form took too long to arrive. Nothing was changed. Please try again.',
    ],
    'too-many': [
      429,
      'Too many changes',
      'Too many changes in a short time. Nothing was changed. Try again in',
    ],
    broken: [
      500,
      'Something went wrong',
      'An internal error occurred. The service log has the details. Try again in a moment.',
    ],
  };

/** A refusal as a page. */
export function refusalContent(refusal: RouteRefusal): Content {
  const [status, title, text] = TEXTS[refusal.kind];
  const retryAfterSeconds = refusal.kind === 'too-many' ? refusal.retryAfterSeconds : undefined;
  return {
    title,
    status,
    retryAfterSeconds,
    body: (
      <Empty title={retryAfterSeconds === undefined ? text : `${text} ${retryAfterSeconds} s.`}>
        <Link to={paths.start}>Back to home</Link>
      </Empty>
    ),
  };
}
