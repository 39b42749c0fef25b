/** Who looks at the console. */
export type Viewer = Readonly<{
  userId: string;
  email: string;
  /** An operator sees every account; a customer sees their own. */
  role: 'operator' | 'customer';
  /** The account the user belongs to; an operator may have none. */
  accountId: number | undefined;
}>;

/** Finds who a request's session belongs to; `undefined`: nobody, or the session has ended. Never throws for a bad cookie. */
export type ViewerOf = (request: Request) => Promise<Viewer | undefined>;
