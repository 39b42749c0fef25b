import { unreachable } from '../../../shared/brand.ts';
import type { PageAccount } from '../asked.ts';
import type { Viewer } from '../viewer.ts';
import type { Audience } from './route.ts';

/** Finds an account by its id; `undefined`: there is none. */
export type AccountOf = (accountId: number) => PageAccount | undefined;

export type Admission =
  | { readonly kind: 'admitted'; readonly viewer: Viewer | undefined; readonly account?: PageAccount }
  | { readonly kind: 'sign-in-first' }
  /** Also for what exists and is somebody else's, so that nobody can tell. */
  | { readonly kind: 'not-found' };

/** Whether a viewer may see a route of this audience; `accountId` is the path's own text. The only place that decides this. */
export function admit(
  audience: Audience,
  viewer: Viewer | undefined,
  accountId: string | undefined,
  accountOf: AccountOf,
): Admission {
  if (audience === 'anyone') return { kind: 'admitted', viewer };
  if (viewer === undefined) return { kind: 'sign-in-first' };
  switch (audience) {
    case 'operator':
      return viewer.role === 'operator' ? { kind: 'admitted', viewer } : { kind: 'not-found' };
    case 'account': {
      const id = idFrom(accountId);
      if (id === undefined || !maySee(viewer, id)) return { kind: 'not-found' };
      const account = accountOf(id);
      return account === undefined ? { kind: 'not-found' } : { kind: 'admitted', viewer, account };
    }
    default:
      return unreachable(audience);
  }
}

function maySee(viewer: Viewer, accountId: number): boolean {
  return viewer.role === 'operator' || viewer.accountId === accountId;
}

/** One spelling per account: `01` and `1e3` are no ids. */
function idFrom(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}
