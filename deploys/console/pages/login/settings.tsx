/** @jsxImportSource preact */
import { actorOf } from '../../../accounts/audit.ts';
import type { AuthService } from '../../../auth/auth-service.ts';
import { passwordComplaint } from '../../../auth/passwords.ts';
import type { SessionRow } from '../../../auth/sessions.ts';
import { Time } from '../../components/format.tsx';
import { ButtonLink, PostForm } from '../../components/forms.tsx';
import { Badge } from '../../components/icons.tsx';
import { type Column, Columns, Panel, TablePanel } from '../../components/panels.tsx';
import type { Answer, FormContext, PageContext } from '../../context.ts';
import type { LoginServices } from '../../page-services.ts';
import { paths, withNext } from '../../paths.ts';
import { redirect } from '../../redirect.ts';
import {
  field,
  type FormRefusal,
  forSelf,
  NewPasswordField,
  notTried,
  PasswordField,
  type Self,
} from './sign-in.tsx';

/** The password, the second factor, and where one is signed in. */
export function settingsPage(services: LoginServices, context: PageContext): Answer {
  return forSelf(services, context, (self) => show(services.auth, context, self));
}

/** Ends every session but this one. */
export function signOutOthers(services: LoginServices, context: FormContext): Answer {
  return forSelf(services, context, ({ user, session }) => {
    services.auth.users.signOut(user, actorOf(user.id, user.role), session.tokenHash);
    return redirect(paths.settings, 'sessions-ended');
  });
}

/** Sets a new password, with the one that holds now. */
export function changePassword(services: LoginServices, context: FormContext): Answer {
  const { users, login, hashing } = services.auth;
  return forSelf(services, context, async (self) => {
    const { user, session } = self;
    const again = (refusal: FormRefusal) => show(services.auth, context, self, refusal);
    const confirmed = await login.confirm(user, field(context.form, 'password'));
    if (confirmed.kind === 'too-many' || confirmed.kind === 'busy') return again(notTried(confirmed));
    if (confirmed.kind === 'wrong')
      return again({ errors: { password: 'Incorrect password.' }, status: 422 });
    const wanted = field(context.form, 'new-password');
    const complaint = passwordComplaint(wanted, user.email);
    if (complaint !== undefined) return again({ errors: { 'new-password': complaint }, status: 422 });
    const hashed = await hashing.hash(wanted, 'known');
    if (hashed.kind === 'busy') return again(notTried(hashed));
    users.setPassword(user, hashed.hash, actorOf(user.id, user.role), session.tokenHash);
    return redirect(paths.settings, 'password-changed');
  });
}

function show(auth: AuthService, context: PageContext, self: Self, refusal?: FormRefusal): Response {
  const { user, session } = self;
  const { oidc } = auth.config;
  const sessions = auth.sessions.list(user.id, session.tokenHash);
  const isOn = user.hasSecondFactor;
  return context.show({
    ...refusal,
    title: 'Settings',
    body: (
      <>
        <p>
          {user.email} <Badge tone="quiet">{user.role}</Badge>
        </p>
        <Columns>
          <Panel title="Password" id="password-panel">
            {user.passwordHash === undefined ? (
              <p>You sign in with {oidc?.name ?? 'an identity provider'}.</p>
            ) : (
              <PostForm
                action={paths.password}
                button="Change password"
                kind="primary"
                errors={refusal?.errors}
              >
                <PasswordField label="Current password" />
                <NewPasswordField label="New password" />
              </PostForm>
            )}
            {oidc && user.subject === undefined && (
              <ButtonLink to={withNext(paths.provider, paths.settings)}>Link {oidc.name}</ButtonLink>
            )}
          </Panel>
          <Panel
            title="Two-factor authentication"
            aside={isOn ? <Badge tone="good">On</Badge> : <Badge tone="quiet">Off</Badge>}
          >
            <p>Require a code from an authenticator app, so a stolen password isn't enough.</p>
            <ButtonLink to={paths.secondFactor}>{isOn ? 'Turn off' : 'Set up'}</ButtonLink>
          </Panel>
        </Columns>
        <TablePanel
          title="Active sessions"
          id="sessions"
          aside={
            sessions.length > 1 && (
              <PostForm action={paths.otherSessions} button="Sign out all other sessions" isInline />
            )
          }
          columns={SESSION_COLUMNS}
          rows={sessions}
          keyOf={({ createdAtMs }) => createdAtMs}
          empty={<p>No active sessions.</p>}
        />
      </>
    ),
  });
}

const SESSION_COLUMNS: readonly Column<SessionRow>[] = [
  [
    'Browser',
    ({ userAgent, isThis }) => (
      <>
        <span class="agent">{userAgent === '' ? 'Unknown' : userAgent}</span>{' '}
        {isThis && <Badge tone="accent">This session</Badge>}
      </>
    ),
    'head',
  ],
  ['Signed in', ({ createdAtMs }) => <Time atMs={createdAtMs} />],
  // A use is written down once a minute.
  ['Last used', ({ usedAtMs }) => <Time atMs={usedAtMs} />],
];
