import type { Action, Asked, AskedByViewer, AskedOfAccount, Page } from '../asked.ts';

/** Who may see a route. */
export type Audience = 'anyone' | 'account' | 'operator';

/** What a route answers; a method without a function is a 405. */
export type Answers<A extends Asked> = Readonly<{
  get?: Page<A> | undefined;
  post?: Action<A> | undefined;
}>;

/** One row of the console's table. */
export type Route =
  | Readonly<{ path: string; audience: 'anyone'; answers: Answers<Asked> }>
  | Readonly<{ path: string; audience: 'operator'; answers: Answers<AskedByViewer> }>
  | Readonly<{ path: string; audience: 'account'; answers: Answers<AskedOfAccount> }>;

/** A page for everybody, signed in or not. */
export function forAnyone(path: string, answers: Answers<Asked>): Route {
  return { path, audience: 'anyone', answers };
}

/** A page about an account, under `/accounts/:accountId`: its own users and every operator see it. */
export function forAccount(path: string, answers: Answers<AskedOfAccount>): Route {
  return { path: `/accounts/:accountId${path}`, audience: 'account', answers };
}

/** A page under `/operator` that does not exist for customers. */
export function forOperator(path: string, answers: Answers<AskedByViewer>): Route {
  return { path: `/operator${path}`, audience: 'operator', answers };
}
