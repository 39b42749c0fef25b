import { createHashing, passwordComplaint } from '../../deploys/auth/passwords.ts';
import { resetSecondFactor } from '../../deploys/auth/second-factor.ts';
import { type Email, type Place, readEmail, type User } from '../../deploys/auth/users.ts';
import { type Books, withAccounts, withAccountsAwaited } from '../books.ts';
import { type Command, failed, type Invocation, type Outcome } from '../command.ts';
import { tableOf } from '../table.ts';
import { unknownAccount } from '../account-lines.ts';

const BY = { kind: 'command-line' } as const;

export const userCreate: Command = {
  words: 'user create',
  operands: ['EMAIL'],
  options: ['account', 'operator', 'config', 'json'],
  summary: 'Create a login for the console; the password is the first line of standard input.',
  act: (invocation) =>
    withAccountsAwaited(
      invocation,
      async (books) => {
        const email = readEmail(invocation.operands[0] ?? '');
        if (email === undefined) return noEmail(invocation);
        const place = placeFrom(invocation, books);
        if (typeof place === 'string') return failed(place);
        if (books.users.find(email) !== undefined) return failed(`There is a login for ${email} already.`);
        const hashed = await hashFrom(invocation, email);
        if (typeof hashed !== 'string') return hashed;
        const created = books.users.create({ email, place, passwordHash: hashed }, BY);
        if (created.kind === 'email-taken') return failed(`There is a login for ${email} already.`);
        return done(`${email} may log in as ${place.role}.\n`, recordOf(created.user, books));
      },
      'make',
    ),
};

export const userSetPassword: Command = {
  words: 'user set-password',
  operands: ['EMAIL'],
  options: ['config', 'json'],
  summary: 'Give a login another password, the first line of standard input; all of its sessions end.',
  act: (invocation) =>
    withAccountsAwaited(invocation, async (books) => {
      const user = userOf(invocation, books);
      if ('kind' in user) return user;
      const hashed = await hashFrom(invocation, user.email);
      if (typeof hashed !== 'string') return hashed;
      books.users.setPassword(user, hashed, BY);
      return done(`${user.email} has a new password; its sessions have ended.\n`, recordOf(user, books));
    }),
};

export const userList: Command = {
  words: 'user list',
  operands: [],
  options: ['config', 'json'],
  summary: 'List who may log in to the console.',
  act: (invocation) =>
    withAccounts(invocation, (books) => {
      const records = books.users.list().map((user) => recordOf(user, books));
      const rows = records.map(({ email, role, account, second_factor }) => [
        email,
        role,
        account ?? '-',
        second_factor ? 'on' : 'off',
      ]);
      const empty = 'No logins yet; user create EMAIL --operator makes one.';
      const text = tableOf(['EMAIL', 'ROLE', 'ACCOUNT', 'SECOND FACTOR'], rows, empty);
      return { kind: 'done', objects: records, text };
    }),
};

export const userResetSecondFactor = onUser(
  'user reset-second-factor',
  'Turn the second factor of a login off, when phone and backup codes are lost.',
  ({ store, users }, user, atMs) => {
    resetSecondFactor(store, user, BY, atMs);
    return users.byId(user.id) ?? user;
  },
  (email) => `The second factor of ${email} is off.\n`,
);

export const userSignOut = onUser(
  'user sign-out',
  'End every session of a login.',
  ({ users }, user) => {
    users.signOut(user, BY);
    return user;
  },
  (email) => `Every session of ${email} has ended.\n`,
);

export const userUnlink = onUser(
  'user unlink',
  'Forget who a login is at the identity provider, so that another identity of its e-mail may take it.',
  ({ users }, user) => {
    users.unlink(user, BY);
    return user;
  },
  (email) => `${email} is linked to nobody at the identity provider.\n`,
);

export const userRemove = onUser(
  'user remove',
  'Remove a login; its sessions end at once. The account stays.',
  ({ users }, user) => {
    users.remove(user, BY);
    return user;
  },
  (email) => `${email} may not log in any more.\n`,
);

/** A command that does one thing to one user; `act` gives the user as it is shown after. */
function onUser(
  words: string,
  summary: string,
  act: (books: Books, user: User, atMs: number) => User,
  said: (email: string) => string,
): Command {
  return {
    words,
    operands: ['EMAIL'],
    options: ['config', 'json'],
    summary,
    act: (invocation) =>
      withAccounts(invocation, (books) => {
        const user = userOf(invocation, books);
        if ('kind' in user) return user;
        const after = act(books, user, invocation.world.clock.now());
        return done(said(user.email), recordOf(after, books));
      }),
  };
}

function userOf(invocation: Invocation, { users }: Books): User | Extract<Outcome, { kind: 'failed' }> {
  const email = readEmail(invocation.operands[0] ?? '');
  if (email === undefined) return noEmail(invocation);
  return users.find(email) ?? failed(`There is no login for ${email}; user list shows them.`);
}

function placeFrom({ values, operator }: Invocation, { accounts }: Books): Place | string {
  const { account: name } = values;
  if (name === undefined)
    return operator
      ? { role: 'operator', accountId: undefined }
      : 'user create needs --account NAME or --operator.';
  const account = accounts.find(name);
  if (account === undefined) return unknownAccount(name);
  return { role: operator ? 'operator' : 'customer', accountId: account.id };
}

async function hashFrom({ world }: Invocation, email: Email) {
  const password = await world.line();
  if (password === '') return failed('The password is read from standard input, which has nothing.');
  const complaint = passwordComplaint(password, email);
  if (complaint !== undefined) return failed(complaint);
  const hashed = await createHashing().hash(password, 'known');
  if (hashed.kind === 'busy') throw new Error('one hash at a time is never too many');
  return hashed.hash;
}

function recordOf({ email, role, accountId, hasSecondFactor }: User, { accounts }: Books) {
  const account = accounts.list().find(({ id }) => id === accountId)?.name ?? null;
  return { email, role, account, second_factor: hasSecondFactor };
}

function done(text: string, record: object): Outcome {
  return { kind: 'done', objects: [record], text };
}

function noEmail({ operands }: Invocation) {
  return failed(`"${operands[0]}" is no e-mail address.`);
}
