import { createHashing, passwordComplaint } from '../../deploys/auth/passwords.ts';
import { resetSecondFactor } from '../../deploys/auth/second-factor.ts';
import { type Email, type Membership, readEmail, type User } from '../../deploys/auth/users.ts';
import { type Books, COMMAND_LINE, onBooks, unknownAccount } from '../frame/books.ts';
import { type Command, done, type Failed, failed, type Invocation } from '../frame/command.ts';
import { listed } from '../frame/values.ts';

/** A command that does one thing to one login; `act` gives what is printed. */
function onUser(
  verb: string,
  summary: string,
  act: (user: User, books: Books, invocation: Invocation) => string | Promise<string | Failed>,
): Command {
  return onBooks(`user ${verb} EMAIL`, summary, async (books, invocation) => {
    const [text = ''] = invocation.operands;
    const email = readEmail(text);
    if (email === undefined) return noEmail(text);
    const user = books.users.find(email);
    if (user === undefined) return failed(`No login for ${email}. List logins with: user list`);
    const said = await act(user, books, invocation);
    return typeof said === 'string' ? done(said, recordOf(books.users.byId(user.id) ?? user, books)) : said;
  });
}

export const userCommands: readonly Command[] = [
  onBooks(
    'user create EMAIL --account --operator',
    'Create a console login; the password is the first line of standard input.',
    async (books, invocation) => {
      const [text = ''] = invocation.operands;
      const email = readEmail(text);
      if (email === undefined) return noEmail(text);
      const membership = membershipFrom(invocation, books);
      if (typeof membership === 'string') return failed(membership);
      const taken = failed(`A login for ${email} already exists.`);
      if (books.users.find(email) !== undefined) return taken;
      const passwordHash = await hashFrom(invocation, email);
      if (typeof passwordHash !== 'string') return passwordHash;
      const created = books.users.create({ email, membership, passwordHash }, COMMAND_LINE);
      if (created.kind === 'email-taken') return taken;
      return done(`Created login ${email} (${membership.role}).`, recordOf(created.user, books));
    },
    'create',
  ),
  onBooks('user list', 'List the console logins.', (books) =>
    listed(
      books.users.list().map((user) => recordOf(user, books)),
      (record) => record,
      ({ email, role, account, second_factor }) => ({
        EMAIL: email,
        ROLE: role,
        ACCOUNT: account ?? '-',
        'TWO-FACTOR': second_factor ? 'on' : 'off',
      }),
      'No logins yet. Create one with: user create EMAIL --operator',
    ),
  ),
  onUser(
    'set-password',
    'Change the password of a login, read from the first line of standard input, and end its sessions.',
    async (user, { users }, invocation) => {
      const hash = await hashFrom(invocation, user.email);
      if (typeof hash !== 'string') return hash;
      users.setPassword(user, hash, COMMAND_LINE);
      return `Changed the password of ${user.email}; its sessions have ended.`;
    },
  ),
  onUser(
    'reset-second-factor',
    'Turn off two-factor authentication for a login whose phone and backup codes are lost.',
    (user, { store }, { world }) => {
      resetSecondFactor(store, user, COMMAND_LINE, world.clock.now());
      return `Two-factor authentication is off for ${user.email}.`;
    },
  ),
  onUser('sign-out', 'End all sessions of a login.', (user, { users }) => {
    users.signOut(user, COMMAND_LINE);
    return `Ended all sessions of ${user.email}.`;
  }),
  onUser(
    'unlink',
    'Unlink a login from its identity at the identity provider, so that another one with its email can use it.',
    (user, { users }) => {
      users.unlink(user, COMMAND_LINE);
      return `Unlinked ${user.email} from the identity provider.`;
    },
  ),
  onUser('remove', 'Delete a login and end its sessions; the account is kept.', (user, { users }) => {
    users.remove(user, COMMAND_LINE);
    return `Deleted login ${user.email}.`;
  }),
];

function membershipFrom({ options }: Invocation, { accounts }: Books): Membership | string {
  const role = options.operator === undefined ? 'customer' : 'operator';
  if (options.account === undefined)
    return role === 'operator'
      ? { role, accountId: undefined }
      : 'user create requires --account NAME or --operator.';
  const account = accounts.find(options.account);
  return account === undefined ? unknownAccount(options.account) : { role, accountId: account.id };
}

async function hashFrom({ world }: Invocation, email: Email): Promise<string | Failed> {
  const password = await world.line();
  if (password === '') return failed('The password is read from standard input, which is empty.');
  const complaint = passwordComplaint(password, email);
  if (complaint !== undefined) return failed(complaint);
  const hashed = await createHashing().hash(password, 'known');
  if (hashed.kind === 'busy') throw new Error('one hash at a time is never too many');
  return hashed.hash;
}

function recordOf({ email, role, accountId, hasSecondFactor }: User, { accounts }: Books) {
  const account = accountId === undefined ? null : (accounts.findById(accountId)?.name ?? null);
  return { email, role, account, second_factor: hasSecondFactor };
}

function noEmail(text: string) {
  return failed(`"${text}" is not an email address.`);
}
