/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { makePassword } from '../../../auth/passwords.ts';
import type { User } from '../../../auth/users.ts';
import { SecretBox } from '../../components/code.tsx';
import { Ago, Time } from '../../components/format.tsx';
import { ButtonLink, ConfirmPanel, FormPanel, unconfirmed } from '../../components/forms.tsx';
import { Link } from '../../components/links.tsx';
import { Badge, Columns, factList, Notice, Panel, Table } from '../../components/panels.tsx';
import type { PageServices } from '../../page-services.ts';
import { operatorPage, type FormRefusal, type ViewerContext } from '../../page.ts';
import { paths, redirect } from '../../paths.ts';

/** Changes another user: the operator's own login is changed in Settings, where the password is required. */
function onOther<A>(
  { auth }: PageServices,
  { viewer }: ViewerContext,
  user: User,
  change: () => A,
): A | FormRefusal | undefined {
  // Two operators who remove each other concurrently must not both be removed.
  if (auth.users.byId(viewer.userId) === undefined) return undefined;
  return user.id === viewer.userId ? { notice: OWN, errors: { form: OWN } } : change();
}

const OWN = 'This is your own user. Manage it in Settings.';
const userOf = ({ auth }: PageServices, { params }: ViewerContext) => auth.users.byId(params['userId'] ?? '');

/** One user, whatever the account. */
export const userPage = operatorPage({
  path: paths.user(':userId'),
  find: userOf,
  show(services, context, user) {
    const { id, email, accountId } = user;
    const account = accountId === undefined ? undefined : services.accounts.findById(accountId);
    const { returned } = context;
    const password = returned ? undefined : services.oneTimeSecrets.take(context);
    const isOwn = id === context.viewer.userId;
    return {
      title: email,
      crumbs: [
        ['Accounts', paths.operatorAccounts],
        ...(account ? [[account.name, paths.operatorAccount(account.id)] as const] : []),
      ],
      body: [
        password !== undefined && <SecretBox name="password" secret={password} />,
        returned?.notice && <Notice tone="bad">{returned.notice}</Notice>,
        isOwn && (
          <Notice tone="accent">
            This is your own user. Manage it in <Link to={paths.settings}>Settings</Link>.
          </Notice>
        ),
        <Columns>
          <Panel title="User">{userFacts(services, user, account?.name)}</Panel>
          {!isOwn && changePanels(user)}
        </Columns>,
        !isOwn && (
          <ConfirmPanel
            title="Remove user"
            action={`${paths.user(id)}/remove`}
            phrase={email}
            button="Remove user"
          >
            Deletes the login and ends its sessions. The account, its API keys and the audit log are kept.
          </ConfirmPanel>
        ),
      ],
    };
  },
  forms: {
    /** A new password, shown once; every session ends. */
    '/password': (services, context, user) =>
      onOther(services, context, user, async () => {
        const { auth, random, oneTimeSecrets } = services;
        const { viewer, actor } = context;
        const password = makePassword(random);
        const hashed = await auth.hashing.hash(password, 'known');
        if (hashed.kind === 'busy') return { notice: 'The server is busy. Please try again.' };
        // Either of them may have been removed while the hash was made.
        if ([viewer.userId, user.id].some((id) => auth.users.byId(id) === undefined)) return undefined;
        auth.users.setPassword(user, hashed.hash, actor);
        const shown = oneTimeSecrets.put(viewer.userId, password);
        return redirect(`${paths.user(user.id)}?shown=${shown}`, 'user-password');
      }),
    '/sign-out': (services, context, user) =>
      onOther(services, context, user, () => {
        services.auth.users.signOut(user, context.actor);
        return redirect(paths.user(user.id), 'user-signed-out');
      }),
    '/remove': (services, context, user) =>
      onOther(services, context, user, () => {
        const refusal = unconfirmed(context.form, user.email);
        if (refusal) return refusal;
        services.auth.users.remove(user, context.actor);
        const { accountId } = user;
        const to = accountId === undefined ? paths.health : paths.operatorAccount(accountId);
        return redirect(to, 'user-removed');
      }),
  },
});

/** Turns a second factor off, with the e-mail typed; for who lost phone and codes. */
export const resetFactorPage = operatorPage({
  path: `${paths.user(':userId')}/second-factor`,
  find: userOf,
  show: (_, __, { id, email }) => ({
    title: 'Reset two-factor authentication',
    crumbs: [
      ['Accounts', paths.operatorAccounts],
      [email, paths.user(id)],
    ],
    body: (
      <ConfirmPanel
        title="Reset"
        action={`${paths.user(id)}/second-factor`}
        phrase={email}
        button="Reset two-factor authentication"
      >
        For a user who lost their phone and backup codes. Verify their identity first: their password alone
        will be enough to sign in.
      </ConfirmPanel>
    ),
  }),
  forms: {
    '': (services, context, user) =>
      onOther(services, context, user, () => {
        const refusal = unconfirmed(context.form, user.email);
        if (refusal) return refusal;
        if (user.hasSecondFactor) services.auth.secondFactor.reset(user, context.actor);
        return redirect(paths.user(user.id), 'user-second-factor-off');
      }),
  },
});

/** Panels of changes to another user that leave the login. */
function changePanels({ id, hasSecondFactor }: User) {
  const path = paths.user(id);
  return (
    <div class="panel-stack">
      <FormPanel title="Reset password" action={`${path}/password`} button="Reset password">
        <p>Generates a new password, shows it once and ends all sessions. Share it securely.</p>
      </FormPanel>
      <FormPanel title="Sessions" action={`${path}/sign-out`} button="End all sessions">
        <p>Ends all sessions immediately. The user can sign in again.</p>
      </FormPanel>
      {hasSecondFactor && (
        <Panel title="Two-factor authentication">
          <p>Turn it off for a user who lost their phone and backup codes.</p>
          <div>
            <ButtonLink to={`${path}/second-factor`} text="Reset two-factor authentication…" />
          </div>
        </Panel>
      )}
    </div>
  );
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
