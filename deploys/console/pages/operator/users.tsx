/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { readEmail } from '../../../users/email.ts';
import { makePassword } from '../../../users/initial-password.ts';
import type { User } from '../../../users/users.ts';
import type { Action, AskedByViewer } from '../../asked.ts';
import { Badge } from '../../page/badge.tsx';
import { TextField } from '../../page/field.tsx';
import { Buttons, type FormErrors, Hidden, PostForm, Submit } from '../../page/form.tsx';
import { Link } from '../../page/link.tsx';
import { Table } from '../../page/table.tsx';
import { Time } from '../../page/time.tsx';
import type { PageDeps } from '../../page-deps.ts';
import { seeOther } from '../../see-other.ts';
import { type AccountPageDeps, accountIn, showAccount } from './account.tsx';
import { type Filling, filled } from './account-forms.tsx';
import { operatorActor } from './actor.ts';
import { userPath } from './paths.ts';

type UserTableProps = Readonly<{
  users: readonly User[];
  /** Absent where all are alike. */
  isRoleShown: boolean;
  empty: ComponentChildren;
}>;

/** Who may sign in. */
export function UserTable({ users, isRoleShown, empty }: UserTableProps) {
  return (
    <Table
      caption="Users"
      columns={[
        { label: 'E-mail', cell: ({ id, email }) => <Link to={userPath(id)}>{email}</Link>, isRowHead: true },
        ...(isRoleShown ? [{ label: 'Role', cell: ({ role }: User) => role }] : []),
        { label: 'Second factor', cell: (user) => <SecondFactorBadge user={user} /> },
        {
          label: 'Signs in by',
          cell: ({ passwordHash }) => (passwordHash === undefined ? 'identity provider' : 'password'),
        },
        { label: 'Since', cell: ({ createdAtMs }) => <Time atMs={createdAtMs} /> },
      ]}
      rows={users}
      keyOf={({ id }) => id}
      empty={empty}
    />
  );
}

/** Whether a second factor is on; its absence is a warning for operators alone. */
export function SecondFactorBadge({ user: { role, hasSecondFactor } }: Readonly<{ user: User }>) {
  if (hasSecondFactor) return <Badge tone="good">on</Badge>;
  return <Badge tone={role === 'operator' ? 'warning' : 'quiet'}>off</Badge>;
}

/** The form chooses the new user's id: sent twice, it leads both times to the one user and password. */
const USER_ID_FIELD = 'user';

/** Makes a user with a password that is shown once. */
export function AddUserForm({ action, filling }: Readonly<{ action: string; filling: Filling | undefined }>) {
  const { errors, errorOf, sent } = filled('user', filling);
  return (
    <PostForm action={action} errors={errors} label="Add user">
      <Hidden name={USER_ID_FIELD} value={sent(USER_ID_FIELD) ?? newId} />
      <TextField
        name="email"
        label="E-mail"
        type="email"
        value={sent('email')}
        isRequired
        maxLength={254}
        hint="A first password is made and shown once. Nothing is sent by mail."
        error={errorOf('email')}
      />
      <Buttons>
        <Submit>Add user</Submit>
      </Buttons>
    </PostForm>
  );
}

/** `POST /operator/accounts/:id/users`: a user with a first password, which the user's page shows once. */
export function createAddUser(deps: AccountPageDeps & Pick<PageDeps, 'reveals'>): Action<AskedByViewer> {
  const { people, random, reveals } = deps;
  return async function addUser(asked) {
    const account = accountIn(deps, asked);
    if (account === undefined) return asked.notFound();
    const again = (errors: FormErrors) =>
      showAccount(deps, asked, account, { of: 'user', form: asked.form, errors });
    const email = readEmail(asked.form.get('email') ?? '');
    const id = asked.form.get(USER_ID_FIELD) ?? '';
    if (email === undefined) return again({ email: 'That is no e-mail address.' });
    if (!/^[0-9a-f]{24}$/.test(id)) return again({ form: 'This form is not whole. Open the page anew.' });
    const password = makePassword(random);
    const hashed = await people.hashing.hash(password);
    if (hashed.kind === 'busy') return again({ form: 'Too many logins are being checked. Try again.' });
    const place = { role: 'customer', accountId: account.id } as const;
    const isMade = people.users.byId(id) !== undefined;
    if (!isMade) {
      const user = { id, email, place, passwordHash: hashed.hash };
      const created = people.users.create(user, operatorActor(asked));
      if (created.kind === 'email-taken') return again({ email: TAKEN });
      reveals.put(asked.viewer.userId, password, id);
    }
    const made = people.users.byId(id);
    if (made?.email !== email || made.accountId !== account.id)
      return again({ form: 'This form was sent before. Open the page anew.' });
    return seeOther(`${userPath(id)}?shown=${id}`, 'user-created');
  };
}

const TAKEN = 'There is a login of this e-mail already. Its page can make a new password.';
