import { createHashing, passwordComplaint } from '../../deploys/auth/passwords.ts';
import { resetSecondFactor } from '../../deploys/auth/second-factor.ts';
import { type Email, type Place, readEmail, type User } from '../../deploys/auth/users.ts';
import { type Books, COMMAND_LINE, onBooks, unknownAccount } from '../frame/books.ts';
import { type Command, done, failed, type Invocation } from '../frame/command.ts';
import { tableOf } from '../frame/values.ts';

const userCreate = onBooks(
  'user create EMAIL --account --operator',
  'Create a console login; the password is the first line of standard input.',
  async (books, invocation) => {
    const [text = ''] = invocation.operands;
    const email = readEmail(text);
    if (email === undefined) return noEmail(text);
    const place = placeFrom(invocation, books);
    if (typeof place === 'string') return failed(place);
    if (books.users.find(email) !== undefined) return failed(`A login for ${email} already exists.`);
    const hashed = await hashFrom(invocation, email);
    if (typeof hashed !== 'string') return hashed;
    const created = books.users.create({ email, place, passwordHash: hashed }, COMMAND_LINE);
    if (created.kind === 'email-taken') return failed(`A login for ${email} already exists.`);
    return done(`Created login ${email} (${place.role}).`, recordOf(created.user, books));
  },
  'create',
);

const userSetPassword = onBooks(
  'user set-password EMAIL',
  'Change the password of a login, read from the first line of standard input, and end its sessions.',
  async (books, invocation) => {
    const user = userOf(invocation, books);
    if ('kind' in user) return user;
    const hashed = await hashFrom(invocation, user.email);
    if (typeof hashed !== 'string') return hashed;
    books.users.setPassword(user, hashed, COMMAND_LINE);
    return done(`Changed the password of ${user.email}; its sessions have ended.`, recordOf(user, books));
  },
);

const userList = onBooks('user list', 'List the console logins.', (books) => {
  const records = books.users.list().map((user) => recordOf(user, books));
  const rows = records.map(({ email, role, account, second_factor }) => [
    email,
    role,
    account ?? '-',
    second_factor ? 'on' : 'off',
  ]);
  const empty = 'No logins yet. Create one with: user create EMAIL --operator';
  const text = tableOf(['EMAIL', 'ROLE', 'ACCOUNT', 'TWO-FACTOR'], rows, empty);
  return { kind: 'done', objects: records, text };
});

/** A command that does one thing to one login. */
function onUser(
  verb: string,
  summary: string,
  act: (books: Books, user: User, atMs: number) => void,
  said: (email: string) => string,
): Command {
  return onBooks(`user ${verb} EMAIL`, summary, (books, invocation) => {
    const user = userOf(invocation, books);
    if ('kind' in user) return user;
    act(books, user, invocation.world.clock.now());
    return done(said(user.email), recordOf(books.users.byId(user.id) ?? user, books));
  });
}

export const userCommands: readonly Command[] = [
  userCreate,
  userList,
  userSetPassword,
  onUser(
    'reset-second-factor',
    'Turn off two-factor authentication for a login whose phone and backup codes are lost.',
    ({ store }, user, atMs) => resetSecondFactor(store, user, COMMAND_LINE, atMs),
    (email) => `Two-factor authentication is off for ${email}.`,
  ),
  onUser(
    'sign-out',
    'End all sessions of a login.',
    ({ users }, user) => users.signOut(user, COMMAND_LINE),
    (email) => `Ended all sessions of ${email}.`,
  ),
  onUser(
    'unlink',
    'Unlink a login from its identity at the identity provider, so that another one with its email can use it.',
    ({ users }, user) => users.unlink(user, COMMAND_LINE),
    (email) => `Unlinked ${email} from the identity provider.`,
  ),
  onUser(
    'remove',
    'Delete a login and end its sessions; the account is kept.',
    ({ users }, user) => users.remove(user, COMMAND_LINE),
    (email) => `Deleted login ${email}.`,
  ),
];

function userOf({ operands: [text = ''] }: Invocation, { users }: Books) {
  const email = readEmail(text);
  if (email === undefined) return noEmail(text);
  return users.find(email) ?? failed(`No login for ${email}. List logins with: user list`);
}

function placeFrom({ values, flags }: Invocation, { accounts }: Books): Place | string {
  const role = flags.has('operator') ? 'operator' : 'customer';
  if (values.account === undefined)
    return role === 'operator'
      ? { role, accountId: undefined }
      : 'user create requires --account NAME or --operator.';
  const account = accounts.find(values.account);
  return account === undefined ? unknownAccount(values.account) : { role, accountId: account.id };
}

async function hashFrom({ world }: Invocation, email: Email) {
  const password = await world.line();
  if (password === '') return failed('The password is read from standard input, which is empty.');
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

function noEmail(text: string) {
  return failed(`"${text}" is not an email address.`);
}
