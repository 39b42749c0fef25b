/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { SecretBox } from '../../components/code.tsx';
import { Ago, Time } from '../../components/format.tsx';
import {
  ButtonLink,
  Buttons,
  ConfirmForm,
  type FormErrors,
  Hidden,
  isConfirmed,
  PostForm,
  Submit,
  TextField,
} from '../../components/forms.tsx';
import { Badge, Notice } from '../../components/icons.tsx';
import { Link } from '../../components/links.tsx';
import { Columns, Facts, Panel } from '../../components/panels.tsx';
import { Table } from '../../components/table.tsx';
import type { Action, AskedByViewer, Filled, Page } from '../../context.ts';
import type { PageDeps } from '../../page-services.ts';
import { filled, type Filling } from './account.tsx';
import { operatorActor } from './actor.ts';
import { accountPath, ACCOUNTS_PATH, AUDIT_PATH, userPath } from '../../paths.ts';
import { seeOther } from '../../redirect.ts';
import { makePassword } from '../../../users/initial-password.ts';
import type { UserActor } from '../../../users/note.ts';
import type { User } from '../../../users/users.ts';

type Deps = Pick<PageDeps, 'people' | 'accounts' | 'operator' | 'random' | 'reveals'>;

function userIn({ people }: Deps, { params }: AskedByViewer): User | undefined {
  return people.users.byId(params['userId'] ?? '');
}

/** `GET /operator/users/:userId`: one user, whatever the account. */
export function createUserPage(deps: Deps): Page<AskedByViewer> {
  return (asked) => {
    const user = userIn(deps, asked);
    return user === undefined ? asked.notFound() : showUser(deps, asked, user);
  };
}

/** An action on somebody else's login: one's own is changed under Settings, where the password is asked for. */
function onOther(
  deps: Deps,
  act: (user: User, asked: AskedByViewer & Filled, by: UserActor) => Response | Promise<Response>,
): Action<AskedByViewer> {
  return (asked) => {
    const user = userIn(deps, asked);
    // Two who remove each other at once must not both be gone.
    if (user === undefined || isGone(deps, asked)) return asked.notFound();
    if (user.id === asked.viewer.userId) return showUser(deps, asked, user, { form: OWN });
    return act(user, asked, operatorActor(asked));
  };
}

/** Whether the operator was removed a moment ago. */
function isGone({ people }: Deps, { viewer }: AskedByViewer): boolean {
  return people.users.byId(viewer.userId) === undefined;
}

const OWN = 'This is your own login. It is changed under Settings.';

/** `POST …/password`: a new password, shown once; every session ends. */
export function createNewPassword(deps: Deps): Action<AskedByViewer> {
  const { people, random, reveals } = deps;
  return onOther(deps, async (user, asked, by) => {
    const password = makePassword(random);
    const hashed = await people.hashing.hash(password, 'known');
    if (hashed.kind === 'busy')
      return showUser(deps, asked, user, { form: 'Too many logins are being checked. Try again.' });
    // Whoever was removed meanwhile changes nothing any more, and has nothing changed.
    if (isGone(deps, asked) || people.users.byId(user.id) === undefined) return asked.notFound();
    people.users.setPassword(user, hashed.hash, by);
    const shown = reveals.put(asked.viewer.userId, password);
    return seeOther(`${userPath(user.id)}?shown=${shown}`, 'user-password');
  });
}

/** `POST …/sign-out`: ends every session. */
export function createSignOut(deps: Deps): Action<AskedByViewer> {
  return onOther(deps, (user, _, by) => {
    deps.people.users.signOut(user, by);
    return seeOther(userPath(user.id), 'user-signed-out');
  });
}

/** `GET …/second-factor`: asks whether it is meant. */
export function createSecondFactorPage(deps: Deps): Page<AskedByViewer> {
  return (asked) => {
    const user = userIn(deps, asked);
    return user === undefined ? asked.notFound() : showSecondFactor(asked, user);
  };
}

/** `POST …/second-factor`: turns it off, with the e-mail typed; for who lost phone and codes. */
export function createResetSecondFactor(deps: Deps): Action<AskedByViewer> {
  return onOther(deps, (user, asked, by) => {
    if (!isConfirmed(asked.form, user.email))
      return showSecondFactor(asked, user, { confirm: `That is not ${user.email}.` });
    if (user.hasSecondFactor) deps.operator.resetSecondFactor(user, by);
    return seeOther(userPath(user.id), 'user-second-factor-off');
  });
}

function showSecondFactor({ show }: AskedByViewer, { id, email }: User, errors?: FormErrors): Response {
  return show({
    title: 'Reset the second factor',
    crumbs: [
      { label: 'Accounts', to: ACCOUNTS_PATH },
      { label: email, to: userPath(id) },
    ],
    status: errors && 422,
    body: (
      <Panel title="Reset" isDanger>
        <ConfirmForm
          action={`${userPath(id)}/second-factor`}
          phrase={email}
          button="Reset the second factor"
          errors={errors}
        >
          <p>
            For somebody who lost the phone and the backup codes: make sure that it is them. The password
            alone signs in then.
          </p>
        </ConfirmForm>
      </Panel>
    ),
  });
}

/** `POST …/remove`, with the e-mail typed. */
export function createRemoveUser(deps: Deps): Action<AskedByViewer> {
  return onOther(deps, (user, asked, by) => {
    if (!isConfirmed(asked.form, user.email))
      return showUser(deps, asked, user, { confirm: `That is not ${user.email}.` });
    deps.people.users.remove(user, by);
    return seeOther(
      user.accountId === undefined ? '/operator/health' : accountPath(user.accountId),
      'user-removed',
    );
  });
}

function showUser(deps: Deps, asked: AskedByViewer, user: User, errors?: FormErrors): Response {
  const { id, email, accountId } = user;
  const account = accountId === undefined ? undefined : deps.accounts.findById(accountId);
  const password = errors === undefined ? deps.reveals.take(asked) : undefined;
  const isOwn = id === asked.viewer.userId;
  return asked.show({
    title: email,
    crumbs: [
      { label: 'Accounts', to: ACCOUNTS_PATH },
      ...(account ? [{ label: account.name, to: accountPath(account.id) }] : []),
    ],
    status: errors && 422,
    body: (
      <>
        {password !== undefined && <SecretBox name="password" secret={password} />}
        {errors?.['form'] && <Notice tone="bad">{errors['form']}</Notice>}
        {isOwn && (
          <Notice tone="accent">
            This is your own login. It is changed under <Link to="/settings">Settings</Link>.
          </Notice>
        )}
        <Columns>
          <Panel title="Login">
            <UserFacts deps={deps} user={user} nowMs={asked.nowMs} accountName={account?.name} />
          </Panel>
          {!isOwn && (
            <div class="panel-stack">
              <NewPasswordPanel user={user} />
              <SessionsPanel user={user} />
              {user.hasSecondFactor && <SecondFactorPanel user={user} />}
            </div>
          )}
        </Columns>
        {!isOwn && <RemovePanel user={user} errors={errors} />}
      </>
    ),
  });
}

type UserFactsProps = Readonly<{ deps: Deps; user: User; nowMs: number; accountName: string | undefined }>;

function UserFacts({ deps, user, nowMs, accountName }: UserFactsProps) {
  const { id, role, accountId, passwordHash, createdAtMs } = user;
  const sessions = deps.people.sessions.list(id, new Uint8Array());
  const lastUsedAtMs = Math.max(...sessions.map(({ usedAtMs }) => usedAtMs));
  return (
    <Facts
      facts={[
        { label: 'Role', value: role },
        {
          label: 'Account',
          value:
            accountId === undefined ? (
              'none'
            ) : (
              <Link to={accountPath(accountId)}>{accountName ?? 'gone'}</Link>
            ),
        },
        { label: 'Second factor', value: <SecondFactorBadge user={user} /> },
        { label: 'Signs in by', value: passwordHash === undefined ? 'identity provider' : 'password' },
        {
          label: 'Sessions',
          value:
            sessions.length === 0 ? (
              'none'
            ) : (
              <span>
                {sessions.length}, last used <Ago atMs={lastUsedAtMs} nowMs={nowMs} />
              </span>
            ),
        },
        { label: 'Since', value: <Time atMs={createdAtMs} /> },
        {
          label: 'Changes',
          value: <Link to={`${AUDIT_PATH}?actor=${encodeURIComponent(id)}`}>What they changed</Link>,
        },
      ]}
    />
  );
}

type UserPanelProps = Readonly<{ user: User }>;

function NewPasswordPanel({ user: { id } }: UserPanelProps) {
  return (
    <Panel title="New password">
      <PostForm action={`${userPath(id)}/password`} label="New password">
        <p>Makes a password, shows it once and ends every session. Pass it on by a way you trust.</p>
        <div>
          <Submit>Make a new password</Submit>
        </div>
      </PostForm>
    </Panel>
  );
}

function SessionsPanel({ user: { id } }: UserPanelProps) {
  return (
    <Panel title="Sessions">
      <PostForm action={`${userPath(id)}/sign-out`} label="Sign out">
        <p>Ends every session at once. Signing in again is not kept from anybody.</p>
        <div>
          <Submit>Sign out everywhere</Submit>
        </div>
      </PostForm>
    </Panel>
  );
}

function SecondFactorPanel({ user: { id } }: UserPanelProps) {
  return (
    <Panel title="Second factor">
      <p>It can be turned off for somebody who lost the phone and the backup codes.</p>
      <div>
        <ButtonLink to={`${userPath(id)}/second-factor`}>Reset the second factor…</ButtonLink>
      </div>
    </Panel>
  );
}

function RemovePanel({
  user: { id, email },
  errors,
}: UserPanelProps & Readonly<{ errors?: FormErrors | undefined }>) {
  return (
    <Panel title="Remove" isDanger>
      <ConfirmForm
        action={`${userPath(id)}/remove`}
        phrase={email}
        button="Remove this login"
        errors={errors?.['confirm'] === undefined ? undefined : errors}
      >
        <p>
          The login is gone and its sessions end at once. The account, its keys and what was changed stay.
        </p>
      </ConfirmForm>
    </Panel>
  );
}

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
