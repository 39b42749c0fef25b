/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import type { User } from '../../../users/users.ts';
import { Badge } from '../../components/icons.tsx';
import { Buttons, Hidden, PostForm, Submit, TextField } from '../../components/forms.tsx';
import { Link } from '../../components/links.tsx';
import { Table } from '../../components/table.tsx';
import { Time } from '../../components/format.tsx';
import { type Filling, filled } from './account-forms.tsx';
import { userPath } from '../../paths.ts';

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
export const USER_ID_FIELD = 'user';

type AddUserFormProps = Readonly<{
  action: string;
  /** The new user's. */
  newId: string;
  filling: Filling | undefined;
}>;

/** Makes a user with a password that is shown once. */
export function AddUserForm({ action, newId, filling }: AddUserFormProps) {
  const { errors, errorOf, sent } = filled('user', filling);
  return (
    <PostForm action={action} errors={errors} label="Add user">
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
      <Hidden name={USER_ID_FIELD} value={sent(USER_ID_FIELD) ?? newId} />
    </PostForm>
  );
}
