/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { type Actor, actorOf } from '../../../accounts/audit.ts';
import { makePassword } from '../../../auth/passwords.ts';
import type { User } from '../../../auth/users.ts';
import { SecretBox } from '../../components/code.tsx';
import { Ago, Time } from '../../components/format.tsx';
import {
  ActionPanel,
  ButtonLink,
  ConfirmPanel,
  type FormErrors,
  isConfirmed,
} from '../../components/forms.tsx';
import { Badge, Notice } from '../../components/icons.tsx';
import { Link } from '../../components/links.tsx';
import { Columns, Facts, Panel } from '../../components/panels.tsx';
import { Table } from '../../components/table.tsx';
import type { Answer, ViewerContext, ViewerForm } from '../../context.ts';
import type { PageServices } from '../../page-services.ts';
import { paths } from '../../paths.ts';
import { redirect } from '../../redirect.ts';

function userIn({ auth }: PageServices, { params }: ViewerContext): User | undefined {
  return auth.users.byId(params['userId'] ?? '');
}

/** One user, whatever the account. */
export function userPage(services: PageServices, context: ViewerContext): Response {
  const user = userIn(services, context);
  return user === undefined ? context.notFound() : showUser(services, context, user);
}

/** Changes another user's login; the operator's own is changed under Settings, which asks for the password. */
function onOther<A extends Answer>(
  services: PageServices,
  context: ViewerForm,
  act: (user: User, by: Actor) => A,
): A | Response {
  const user = userIn(services, context);
  const { userId, role } = context.viewer;
  // Two who remove each other at once must not both be gone.
  if (user === undefined || isGone(services, context)) return context.notFound();
  if (user.id === userId) return showUser(services, context, user, { form: OWN });
  return act(user, actorOf(userId, role));
}

/** Whether the operator was removed a moment ago. */
function isGone({ auth }: PageServices, { viewer }: ViewerContext): boolean {
  return auth.users.byId(viewer.userId) === undefined;
}

const OWN = 'This is your own login. It is changed under Settings.';

/** A new password, shown once; every session ends. */
export function newPassword(services: PageServices, context: ViewerForm): Answer {
  const { auth, random, oneTimeSecrets } = services;
  return onOther(services, context, async (user, by) => {
    const password = makePassword(random);
    const hashed = await auth.hashing.hash(password, 'known');
    if (hashed.kind === 'busy')
      return showUser(services, context, user, { form: 'Too many logins are being checked. Try again.' });
    // Either of them may have been removed while the hash was made.
    if (isGone(services, context) || auth.users.byId(user.id) === undefined) return context.notFound();
    auth.users.setPassword(user, hashed.hash, by);
    const shown = oneTimeSecrets.put(context.viewer.userId, password);
    return redirect(`${paths.user(user.id)}?shown=${shown}`, 'user-password');
  });
}

/** Ends every session. */
export function signUserOut(services: PageServices, context: ViewerForm): Response {
  return onOther(services, context, (user, by) => {
    services.auth.users.signOut(user, by);
    return redirect(paths.user(user.id), 'user-signed-out');
  });
}

/** Asks for confirmation. */
export function resetFactorPage(services: PageServices, context: ViewerContext): Response {
  const user = userIn(services, context);
  return user === undefined ? context.notFound() : showSecondFactor(context, user);
}

/** Turns it off, with the e-mail typed; for who lost phone and codes. */
export function resetSecondFactor(services: PageServices, context: ViewerForm): Response {
  return onOther(services, context, (user, by) => {
    if (!isConfirmed(context.form, user.email))
      return showSecondFactor(context, user, { confirm: `That is not ${user.email}.` });
    if (user.hasSecondFactor) services.operator.resetSecondFactor(user, by);
    return redirect(paths.user(user.id), 'user-second-factor-off');
  });
}

function showSecondFactor({ show }: ViewerContext, { id, email }: User, errors?: FormErrors): Response {
  return show({
    title: 'Reset the second factor',
    crumbs: [
      { label: 'Accounts', to: paths.operatorAccounts },
      { label: email, to: paths.user(id) },
    ],
    status: errors && 422,
    body: (
      <ConfirmPanel
        title="Reset"
        action={`${paths.user(id)}/second-factor`}
        phrase={email}
        button="Reset the second factor"
        errors={errors}
      >
        For somebody who lost the phone and the backup codes: make sure that it is them. The password alone
        signs in then.
      </ConfirmPanel>
    ),
  });
}

/** Removes the login whose e-mail was typed. */
export function removeUser(services: PageServices, context: ViewerForm): Response {
  return onOther(services, context, (user, by) => {
    if (!isConfirmed(context.form, user.email))
      return showUser(services, context, user, { confirm: `That is not ${user.email}.` });
    services.auth.users.remove(user, by);
    return redirect(
      user.accountId === undefined ? paths.health : paths.operatorAccount(user.accountId),
      'user-removed',
    );
  });
}

/** With `errors`, one of its forms comes back with what is wrong. */
function showUser(services: PageServices, context: ViewerContext, user: User, errors?: FormErrors): Response {
  const { id, email, accountId } = user;
  const account = accountId === undefined ? undefined : services.accounts.findById(accountId);
  const password = errors === undefined ? services.oneTimeSecrets.take(context) : undefined;
  const isOwn = id === context.viewer.userId;
  const path = paths.user(id);
  return context.show({
    title: email,
    crumbs: [
      { label: 'Accounts', to: paths.operatorAccounts },
      ...(account ? [{ label: account.name, to: paths.operatorAccount(account.id) }] : []),
    ],
    status: errors && 422,
    body: (
      <>
        {password !== undefined && <SecretBox name="password" secret={password} />}
        {errors?.['form'] && <Notice tone="bad">{errors['form']}</Notice>}
        {isOwn && (
          <Notice tone="accent">
            This is your own login. It is changed under <Link to={paths.settings}>Settings</Link>.
          </Notice>
        )}
        <Columns>
          <Panel title="Login">
            <UserFacts services={services} user={user} accountName={account?.name} />
          </Panel>
          {!isOwn && (
            <div class="panel-stack">
              <ActionPanel title="New password" action={`${path}/password`} button="Make a new password">
                Makes a password, shows it once and ends every session. Pass it on by a way you trust.
              </ActionPanel>
              <ActionPanel title="Sessions" action={`${path}/sign-out`} button="Sign out everywhere">
                Ends every session at once. Signing in again is not kept from anybody.
              </ActionPanel>
              {user.hasSecondFactor && (
                <Panel title="Second factor">
                  <p>It can be turned off for somebody who lost the phone and the backup codes.</p>
                  <div>
                    <ButtonLink to={`${path}/second-factor`}>Reset the second factor…</ButtonLink>
                  </div>
                </Panel>
              )}
            </div>
          )}
        </Columns>
        {!isOwn && (
          <ConfirmPanel
            title="Remove"
            action={`${path}/remove`}
            phrase={email}
            button="Remove this login"
            errors={errors?.['confirm'] === undefined ? undefined : errors}
          >
            The login is gone and its sessions end at once. The account, its keys and what was changed stay.
          </ConfirmPanel>
        )}
      </>
    ),
  });
}

type UserFactsProps = Readonly<{
  services: PageServices;
  user: User;
  accountName: string | undefined;
}>;

function UserFacts({ services, user, accountName }: UserFactsProps) {
  const { id, role, accountId, passwordHash, createdAtMs } = user;
  const sessions = services.auth.sessions.list(id, new Uint8Array());
  const lastUsedAtMs = Math.max(...sessions.map(({ usedAtMs }) => usedAtMs));
  return (
    <Facts
      facts={[
        ['Role', role],
        [
          'Account',
          accountId === undefined ? (
            'none'
          ) : (
            <Link to={paths.operatorAccount(accountId)}>{accountName ?? 'gone'}</Link>
          ),
        ],
        ['Second factor', <SecondFactorBadge user={user} />],
        ['Signs in by', passwordHash === undefined ? 'identity provider' : 'password'],
        [
          'Sessions',
          sessions.length === 0 ? (
            'none'
          ) : (
            <span>
              {sessions.length}, last used <Ago atMs={lastUsedAtMs} />
            </span>
          ),
        ],
        ['Since', <Time atMs={createdAtMs} />],
        ['Changes', <Link to={`${paths.audit}?actor=${encodeURIComponent(id)}`}>What they changed</Link>],
      ]}
    />
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
        ['E-mail', ({ id, email }) => <Link to={paths.user(id)}>{email}</Link>, 'head'],
        isRoleShown && ['Role', ({ role }) => role],
        ['Second factor', (user) => <SecondFactorBadge user={user} />],
        [
          'Signs in by',
          ({ passwordHash }) => (passwordHash === undefined ? 'identity provider' : 'password'),
        ],
        ['Since', ({ createdAtMs }) => <Time atMs={createdAtMs} />],
      ]}
      rows={users}
      keyOf={({ id }) => id}
      empty={empty}
    />
  );
}

/** Whether a second factor is on; its absence is a warning for operators alone. */
function SecondFactorBadge({ user: { role, hasSecondFactor } }: Readonly<{ user: User }>) {
  if (hasSecondFactor) return <Badge tone="good">on</Badge>;
  return <Badge tone={role === 'operator' ? 'warning' : 'quiet'}>off</Badge>;
}
