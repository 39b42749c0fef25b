/** @jsxImportSource preact */
import { Link } from './components/links.tsx';
import { Empty } from './components/panels.tsx';
import type { Content } from './context.ts';
import { paths } from './paths.ts';

/** Every no of the console itself. None says more than the viewer may know. */
export type RouteRefusal =
  | { readonly kind: 'not-found' | 'other-origin' | 'no-form' | 'too-slow' | 'broken' }
  | { readonly kind: 'wrong-method'; readonly allow: string }
  /** Too many changes by one user. */
  | { readonly kind: 'too-many'; readonly retryAfterSeconds: number };

const TEXTS: Readonly<Record<RouteRefusal['kind'], readonly [status: number, title: string, text: string]>> =
  {
    'not-found': [404, 'Not found', 'There is nothing here, or it is not yours to see.'],
    'wrong-method': [405, 'That cannot be done here', 'This address does not take that kind of request.'],
    'other-origin': [
      403,
      'Refused',
      'This form did not come from the console, so nothing was changed. Open the page here and send it again.',
    ],
    'no-form': [415, 'Refused', 'This address takes forms only. Nothing was changed.'],
    'too-slow': [
      408,
      'Not received',
      'The form took too long to arrive. Nothing was changed. Send it again.',
    ],
    'too-many': [
      429,
      'Too many changes',
      'You changed much in a short time, so nothing was changed now. Send the form again in',
    ],
    broken: [
      500,
      'Something went wrong',
      'The page could not be made. The reason is in the log of the service. Try again in a moment.',
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
        <Link to={paths.start}>Go to the first page</Link>
      </Empty>
    ),
  };
}
