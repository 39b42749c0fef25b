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
  confirmErrors,
  ConfirmPanel,
  type FormErrors,
} from '../../components/forms.tsx';
import { Badge, Columns, factList, Notice, Panel, Table } from '../../components/panels.tsx';
import { Link } from '../../components/links.tsx';
import type { Answer, ViewerContext, ViewerForm } from '../../context.ts';
import type { PageServices } from '../../page-services.ts';
import { paths, redirect } from '../../paths.ts';
import { confirmPage } from './accounts.tsx';

/** The user of the path, where there is one. */
function onUser<A extends Answer>(
  { auth }: PageServices,
  { params, notFound }: ViewerContext,
  answer: (user: User) => A,
): A | Response {
  const user = auth.users.byId(params['userId'] ?? '');
  return user === undefined ? notFound() : answer(user);
}

/** One user, whatever the account. */
export function userPage(services: PageServices, context: ViewerContext): Response {
  return onUser(services, context, (user) => showUser(services, context, user));
}

/** Changes another user; the operator's own login is changed in Settings, where the password is required. */
function onOther<A extends Answer>(
  services: PageServices,
  context: ViewerForm,
  act: (user: User, by: Actor) => A,
): A | Response {
  const { userId, role } = context.viewer;
  // Two operators who remove each other concurrently must not both be removed.
  if (isGone(services, context)) return context.notFound();
  return onUser(services, context, (user) =>
    user.id === userId ? showUser(services, context, user, { form: OWN }) : act(user, actorOf(userId, role)),
  );
}

/** Whether the operator was removed a moment ago. */
function isGone({ auth }: PageServices, { viewer }: ViewerContext): boolean {
  return auth.users.byId(viewer.userId) === undefined;
}

const OWN = 'This is your own user. Manage it in Settings.';

/** A new password, shown once; every session ends. */
export function newPassword(services: PageServices, context: ViewerForm): Answer {
  const { auth, random, oneTimeSecrets } = services;
  return onOther(services, context, async (user, by) => {
    const password = makePassword(random);
    const hashed = await auth.hashing.hash(password, 'known');
    if (hashed.kind === 'busy')
      return showUser(services, context, user, { form: 'The server is busy. Please try again.' });
    // Either of them may have been removed while the hash was made.
    if (isGone(services, context) || auth.users.byId(user.id) === undefined) return context.notFound();
    auth.users.setPassword(user, hashed.hash, by);
    const shown = oneTimeSecrets.put(context.viewer.userId, password);
    return redirect(`${paths.user(user.id)}?shown=${shown}`, 'user-password');
  });
}

export function signUserOut(services: PageServices, context: ViewerForm): Response {
  return onOther(services, context, (user, by) => {
    services.auth.users.signOut(user, by);
    return redirect(paths.user(user.id), 'user-signed-out');
  });
}

export function resetFactorPage(services: PageServices, context: ViewerContext): Response {
  return onUser(services, context, (user) => showSecondFactor(context, user));
}

/** Turns it off, with the e-mail typed; for who lost phone and codes. */
export function resetSecondFactor(services: PageServices, context: ViewerForm): Response {
  return onOther(services, context, (user, by) => {
    const errors = confirmErrors(context.form, user.email);
    if (errors) return showSecondFactor(context, user, errors);
    if (user.hasSecondFactor) services.auth.secondFactor.reset(user, by);
    return redirect(paths.user(user.id), 'user-second-factor-off');
  });
}

function showSecondFactor(context: ViewerContext, { id, email }: User, errors?: FormErrors): Response {
  const button = 'Reset two-factor authentication';
  return confirmPage(context, button, [email, paths.user(id)], {
    title: 'Reset',
    action: `${paths.user(id)}/second-factor`,
    phrase: email,
    button,
    errors,
    children:
      'For a user who lost their phone and backup codes. Verify their identity first: their password alone will be ' +
      'enough to sign in.',
  });
}

export function removeUser(services: PageServices, context: ViewerForm): Response {
  return onOther(services, context, (user, by) => {
    const errors = confirmErrors(context.form, user.email);
    if (errors) return showUser(services, context, user, errors);
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
      ['Accounts', paths.operatorAccounts],
      ...(account ? [[account.name, paths.operatorAccount(account.id)] as const] : []),
    ],
    status: errors && 422,
    body: (
      <>
        {password !== undefined && <SecretBox name="password" secret={password} />}
        {errors?.['form'] && <Notice tone="bad">{errors['form']}</Notice>}
        {isOwn && (
          <Notice tone="accent">
            This is your own user. Manage it in <Link to={paths.settings}>Settings</Link>.
          </Notice>
        )}
        <Columns>
          <Panel title="User">{userFacts(services, user, account?.name)}</Panel>
          {!isOwn && (
            <div class="panel-stack">
              <ActionPanel title="Reset password" action={`${path}/password`} button="Reset password">
                Generates a new password, shows it once and ends all sessions. Share it securely.
              </ActionPanel>
              <ActionPanel title="Sessions" action={`${path}/sign-out`} button="End all sessions">
                Ends all sessions immediately. The user can sign in again.
              </ActionPanel>
              {user.hasSecondFactor && (
                <Panel title="Two-factor authentication">
                  <p>Turn it off for a user who lost their phone and backup codes.</p>
                  <div>
                    <ButtonLink to={`${path}/second-factor`} text="Reset two-factor authentication…" />
                  </div>
                </Panel>
              )}
            </div>
          )}
        </Columns>
        {!isOwn && (
          <ConfirmPanel
            title="Remove user"
            action={`${path}/remove`}
            phrase={email}
            button="Remove user"
            errors={errors?.['confirm'] === undefined ? undefined : errors}
          >
            Deletes the login and ends its sessions. The account, its API keys and the audit log are kept.
          </ConfirmPanel>
        )}
      </>
    ),
  });
}

function userFacts({ auth }: PageServices, user: User, accountName: string | undefined) {
  const { id, role, accountId, createdAtMs } = user;
  const sessions = auth.sessions.list(id, new Uint8Array());
  const lastUsedAtMs = Math.max(...sessions.map(({ usedAtMs }) => usedAtMs));
  return factList([
    ['Role', ROLES[role]],
    [
      'Account',
      accountId === undefined ? (
        'None'
      ) : (
        <Link to={paths.operatorAccount(accountId)}>{accountName ?? 'Deleted'}</Link>
      ),
    ],
    ['Two-factor authentication', secondFactorBadge(user)],
    ['Sign-in method', signInMethod(user)],
    [
      'Sessions',
      sessions.length === 0 ? (
        'None'
      ) : (
        <span>
          {sessions.length}, last used <Ago atMs={lastUsedAtMs} />
        </span>
      ),
    ],
    ['Created', <Time atMs={createdAtMs} />],
    ['Audit log', <Link to={`${paths.audit}?actor=${encodeURIComponent(id)}`}>Changes by this user</Link>],
  ]);
}

const ROLES = { operator: 'Operator', customer: 'Customer' };

function signInMethod({ passwordHash }: User): string {
  return passwordHash === undefined ? 'Identity provider' : 'Password';
}

export function userTable(users: readonly User[], isRoleShown: boolean, empty: ComponentChildren) {
  return (
    <Table
      caption="Users"
      columns={[
        ['Email', ({ id, email }) => <Link to={paths.user(id)}>{email}</Link>, 'head'],
        isRoleShown && ['Role', ({ role }) => ROLES[role]],
        ['Two-factor authentication', secondFactorBadge],
        ['Sign-in method', signInMethod],
        ['Created', ({ createdAtMs }) => <Time atMs={createdAtMs} />],
      ]}
      rows={users}
      empty={empty}
    />
  );
}

/** Whether two-factor authentication is on; its absence is a warning for operators alone. */
function secondFactorBadge({ role, hasSecondFactor }: User) {
  if (hasSecondFactor) return <Badge tone="good">On</Badge>;
  return <Badge tone={role === 'operator' ? 'warning' : 'quiet'}>Off</Badge>;
}
